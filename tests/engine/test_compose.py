"""Compose: problems are numbered once, mean steps add up, and what no finding claims is told."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from advisor_core.result.evidence import Evidence
from advisor_core.result.finding import Advice, Claim, Finding, Impact
from advisor_core.result.problem import Problem
from advisor_core.result.run import Environment, LedgerEntry, LedgerStep, Profile, RunResult, Tool
from advisor_core.result.view import BarRow, Bars, BarsView, Grid, TableColumn, TableView
from advisor_core.run.compose import VIEWED_RANKS, compose
from advisor_core.run.compose_mean_steps import all_means, rank_means
from advisor_core.run.compose_problems import compose_problems
from advisor_core.text.base import Text

TEXT = Text(en="text", zh="文本")
WALLS: dict[tuple[str | None, int], int] = {(None, 0): 1000, (None, 1): 1000}


def finding(name: str, claims: dict[int, int] | None = None, rank: int | None = 0, **changes: Any) -> Finding:
    """A finding whose fingerprint is its name, and which claims ns of ``idle/sync`` on each rank."""
    claimed = {0: 1} if claims is None else claims
    own = claimed.get(rank, 0) if rank is not None else 0
    impact = Impact(
        ns_per_step=own,
        gross_ns_per_step=own,
        share_of_step=own / 1000,
        basis="exact",
        claims=[Claim(rank=on, path="idle/sync", ns=ns) for on, ns in claimed.items()],
    )
    fields: dict[str, Any] = {
        "rule": name.upper(),
        "name": name,
        "fingerprint": name,
        "title": TEXT,
        "why": TEXT,
        "verify": TEXT,
        "severity": "low",
        "confidence": "high",
        "rank": rank,
        "ranks": sorted(claimed),
        "step": None,
        "subject": {},
        "impact": impact,
        "observation": {},
        "units": {},
        "condition": "true",
        "evidence": [Evidence(kind="metric", title=TEXT)],
        "advice": [Advice(kind="investigate", text=TEXT)],
    }
    return Finding.model_validate(fields | changes)


def problems(*findings: Finding) -> dict[str, Problem]:
    return {problem.number: problem for problem in compose_problems(findings, WALLS)}


def step(rank: int, entries: dict[str, int], role: str | None = None, number: int = 1) -> LedgerStep:
    leaves = [LedgerEntry(path=path, ns=ns) for path, ns in entries.items()]
    return LedgerStep(rank=rank, step=number, wall_ns=sum(entries.values()), entries=leaves, role=role)


def result(ledger: list[LedgerStep], findings: list[Finding], **fields: Any) -> RunResult:
    return RunResult(
        tool=Tool(name="npu-advisor", version="1"),
        inputs=[],
        environment=Environment(),
        profile=Profile(kind="training", ranks=[0], steps=[]),
        ledger=ledger,
        findings=findings,
        rules=[],
        views=fields.pop("views", []),
        diagnostics=[],
        **fields,
    )


# --- problems


def test_causes_stand_under_their_symptom() -> None:
    found = problems(
        finding("symptom", {0: 10}, explained_by=["cause", "other"], severity="medium"),
        finding("alone", {0: 300}),
        finding("cause", {0: 100}, severity="high", explained_by=["deep"]),
        finding("other", {0: 20}),
        finding("deep", {0: 90}),
    )
    assert {number: problem.findings for number, problem in found.items()} == {
        "F1": ["symptom", "cause", "deep", "other"],
        "F1a": ["cause", "deep"],
        "F1a1": ["deep"],
        "F1b": ["other"],
        "F2": ["alone"],
    }
    first = found["F1"]
    assert (first.stake_ns, first.share_of_step, first.own_ns, first.severity) == (220, 0.22, 10, "high")
    assert (first.causes, first.actor, first.depth, first.parent) == (["F1a", "F1b"], "F1a", 0, None)
    assert (found["F1a1"].depth, found["F1a1"].parent, found["F1a1"].symptoms) == (2, "F1a", ["F1a"])


def test_a_link_from_either_side_is_enough_and_unknown_links_are_left_out() -> None:
    found = problems(finding("s", explained_by=["c1", "gone"]), finding("c1"), finding("c2", explains=["s", "gone"]))
    assert [problem.findings[0] for problem in found.values()] == ["s", "c1", "c2"]
    assert list(found) == ["F1", "F1a", "F1b"]


def test_a_circle_of_explanations_is_cut() -> None:
    found = problems(
        finding("a", explained_by=["b"]), finding("b", explained_by=["a"]), finding("c", explained_by=["c"])
    )
    assert [(number, problem.findings[0]) for number, problem in found.items()] == [
        ("F1", "a"),
        ("F1a", "b"),
        ("F2", "c"),
    ]


def test_a_cause_of_two_symptoms_stands_once_and_is_linked() -> None:
    found = problems(finding("s1", explained_by=["c"]), finding("s2", explained_by=["c"]), finding("c"))
    assert (found["F1"].causes, found["F2"].causes, found["F2"].also_causes) == (["F1a"], [], ["F1a"])
    assert found["F1a"].symptoms == ["F1", "F2"]


def test_time_at_stake_is_of_one_rank() -> None:
    causes = [finding("r0", {0: 100}, 0), finding("r1", {1: 300}, 1)]
    found = problems(finding("s", {0: 10, 1: 20}, 0, explained_by=["r0", "r1"]), *causes)
    assert (found["F1"].rank, found["F1"].stake_ns, found["F1"].share_of_step) == (0, 110, 0.11)
    found = problems(finding("s", {}, None, explained_by=["r0", "r1"]), *causes)
    assert (found["F1"].rank, found["F1"].stake_ns) == (1, 300)


def test_without_time_at_stake_the_problem_says_why() -> None:
    measured = Impact(ns_per_step=0, gross_ns_per_step=5, share_of_step=0, basis="upper_bound")
    found = problems(finding("none", {}), finding("elsewhere", {}, impact=measured), finding("some", {0: 7}))
    assert [(problem.time, problem.basis) for problem in found.values()] == [
        ("none", "exact"),
        ("counted_elsewhere", "upper_bound"),
        ("at_stake", "exact"),
    ]


LINKS = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=12)


@given(LINKS)
def test_every_finding_is_one_problem(links: list[tuple[int, int]]) -> None:
    findings = [
        finding(f"f{n}", explained_by=[f"f{cause}" for symptom, cause in links if symptom == n]) for n in range(8)
    ]
    found = compose_problems(findings, WALLS)
    assert sorted(problem.findings[0] for problem in found) == sorted(f.fingerprint for f in findings)
    assert len({problem.number for problem in found}) == len(found)
    by_number = {problem.number: problem for problem in found}
    for problem in found:
        assert all(by_number[cause].parent == problem.number for cause in problem.causes)
        assert {*problem.also_causes, *problem.symptoms, problem.actor} <= by_number.keys()


# --- mean steps


ENTRIES = st.dictionaries(st.sampled_from(["compute/matmul", "idle/sync", "idle/copy"]), st.integers(0, 10**9))


@given(st.lists(st.tuples(st.integers(0, 3), ENTRIES), min_size=1, max_size=12))
def test_mean_steps_add_up_and_are_exact_to_a_nanosecond(steps: list[tuple[int, dict[str, int]]]) -> None:
    ledger = [step(rank, entries) for rank, entries in steps]
    ranks = rank_means(ledger)
    for mean in all_means(ranks):
        assert sum(mean.entries.values()) == mean.wall_ns
    for (_, rank), mean in ranks.items():
        own = [entries for on, entries in steps if on == rank]
        assert mean.steps == len(own) and mean.wall_ns == sum(sum(e.values()) for e in own) // len(own)
        for path, ns in mean.entries.items():
            assert abs(ns - sum(entries.get(path, 0) for entries in own) / len(own)) < 1


def test_an_iteration_is_the_sum_of_its_roles() -> None:
    ledger = [
        step(0, {"idle/sync": 10}, "rollout"),
        step(1, {"idle/sync": 20}, "rollout"),
        step(0, {"compute": 7}, "update"),
    ]
    means = {(mean.role, mean.rank): mean.wall_ns for mean in all_means(rank_means(ledger))}
    assert means == {
        (None, None): 22, ("rollout", None): 15, ("update", None): 7,
        ("rollout", 0): 10, ("rollout", 1): 20, ("update", 0): 7,
    }  # fmt: skip


# --- what no finding claims


def test_what_no_finding_claims_is_listed_above_the_limit() -> None:
    ledger = [step(0, {"compute/matmul": 880, "idle/sync": 100, "idle/unknown": 20})]
    composed = compose(result(ledger, [finding("f", {0: 90})]))
    assert [(entry.rank, entry.path, entry.ns) for entry in composed.unexplained] == [(0, "compute/matmul", 880)]
    assert (composed.coverage.known_share, composed.coverage.claimed_share) == (0.98, 0.09)
    assert composed.mean_steps[0].rank is None and composed.problems[0].share_of_step == 0.09


def test_a_result_without_a_ledger_has_no_mean_step() -> None:
    composed = compose(result([], []))
    assert not composed.mean_steps and not composed.problems and not composed.unexplained


def test_a_result_holds_the_views_of_few_ranks_those_of_findings_first() -> None:
    views = [
        BarsView(id=f"v{rank}", title=TEXT, unit="ns", rank=rank, data=Bars(rows=[BarRow(label="x", value=rank)]))
        for rank in range(9)
    ]
    whole = BarsView(id="all", title=TEXT, unit="ns", data=Bars(rows=[]))
    ledger = [step(rank, {"idle/sync": 10}) for rank in range(9)]
    composed = compose(result(ledger, [finding("f", {7: 5}, 7)], views=[whole, *views]))
    assert [view.id for view in composed.views] == ["all", "v0", "v1", "v2", "v7"]
    assert len(composed.views) == 1 + VIEWED_RANKS


def first_looks(*entries: list[str], rank: int = 0) -> TableView:
    data = Grid(columns=[TableColumn(label=TEXT)] * 2, rows=[[TEXT, None] for _ in entries], entries=list(entries))
    return TableView(id="first-looks", title=TEXT, rank=rank, data=data)


def problems_named(view: Any) -> list[str]:
    return [row[-1].en for row in view.data.rows]


def test_a_table_names_the_problems_that_claim_time_of_each_row() -> None:
    """``big`` claims more than ``small``, and ``elsewhere`` the time of another rank."""
    findings = [finding("small", {0: 5}), finding("big", {0: 20}), finding("elsewhere", {1: 50}, 1)]
    ledger = [step(rank, {"idle/sync": 100}) for rank in (0, 1)]
    view = first_looks(["idle"], ["idle/sync"], ["compute", "idle/copy"])
    composed = compose(result(ledger, findings, views=[view]))
    numbers = {problem.findings[0]: problem.number for problem in composed.problems}
    expected = f"{numbers['big']}, {numbers['small']}"
    assert problems_named(composed.views[0]) == [expected, expected, "none"]
    again = compose(composed)
    assert problems_named(again.views[0]) == problems_named(composed.views[0])


def test_of_many_problems_a_table_names_those_with_most_time() -> None:
    findings = [finding(f"f{place}", {0: 1 + place}) for place in range(9)]
    composed = compose(result([step(0, {"idle/sync": 100})], findings, views=[first_looks(["idle"])]))
    (named,) = problems_named(composed.views[0])
    numbers = {problem.findings[0]: problem.number for problem in composed.problems}
    assert (
        named.startswith(numbers["f8"]) and named.endswith("and 3 more") and numbers["f0"] not in named.split(" and")[0]
    )


def test_time_that_others_took_first_is_told_with_their_numbers() -> None:
    """The symptom measured 900 ns and got 500; 300 stand under its cause, 60 and 40 under findings that are none."""
    symptom = finding("symptom", {0: 500}, explained_by=["cause"])
    symptom = symptom.model_copy(update={"impact": symptom.impact.model_copy(update={"gross_ns_per_step": 900})})
    elsewhere = [finding("large", {0: 60}), finding("small", {0: 50}), finding("least", {0: 9})]
    told = problems(symptom, finding("cause", {0: 300}), *elsewhere)
    assert [(one.number, one.ns) for one in told["F1"].shared] == [("F2", 60), ("F3", 40)]
    assert not any(problem.shared for number, problem in told.items() if number != "F1")


def test_time_on_other_entries_ranks_or_below_the_finding_is_not_shared() -> None:
    symptom = finding("symptom", {0: 500}, explained_by=["cause"])
    symptom = symptom.model_copy(update={"impact": symptom.impact.model_copy(update={"gross_ns_per_step": 900})})
    other = finding("other", {1: 100}, rank=1)
    assert not problems(symptom, finding("cause", {0: 300}), other)["F1"].shared
