"""Claims: no nanosecond is promised twice, causes come before symptoms, and each finding stands with its own."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from advisor_core.result.evidence import Evidence
from advisor_core.result.finding import Advice, Finding, Impact, PartShare
from advisor_core.result.run import LedgerEntry, LedgerStep
from advisor_core.run.claims import Want, claim_all, link, rank_findings
from advisor_core.text.base import Text

TEXT = Text(en="text", zh="文本")
BOOKS = {"compute/matmul": 500, "communication/wait/rank 5": 300, "communication/transmit": 100, "idle/sync": 100}


def ledger(rank: int = 0, step: int | None = 1, **changes: int) -> LedgerStep:
    booked = {**BOOKS, **changes}
    entries = [LedgerEntry(path=path, ns=ns) for path, ns in booked.items()]
    return LedgerStep(rank=rank, step=step, wall_ns=sum(booked.values()), entries=entries)


def finding(rule: str, gross: int, *, rank: int = 0, ranks: tuple[int, ...] = (), about: str = "") -> Finding:
    return Finding(
        rule=rule,
        name=rule.lower(),
        fingerprint=f"{rule}{about}",
        title=TEXT,
        why=TEXT,
        verify=TEXT,
        severity="high",
        confidence="high",
        rank=rank,
        ranks=list(ranks or (rank,)),
        step=None,
        subject={},
        impact=Impact(ns_per_step=0, gross_ns_per_step=gross, share_of_step=0, basis="exact"),
        observation={},
        units={},
        condition="true",
        evidence=[Evidence.model_validate({"kind": "metric", "title": TEXT, "rank": rank})],
        advice=[Advice(kind="investigate", text=TEXT)],
    )


def claimed(findings: list[Finding]) -> dict[str, dict[str, int]]:
    return {
        found.fingerprint: {f"{claim.rank} {claim.path}": claim.ns for claim in found.impact.claims}
        for found in findings
    }


def test_a_cause_claims_before_its_symptom_which_keeps_the_rest() -> None:
    found = [finding("SYMPTOM", 400), finding("CAUSE", 300)]
    wants: list[dict[int, list[Want]]] = [{0: [(400, ["communication"])]}, {0: [(300, ["communication/wait"])]}]
    done = claim_all(found, wants, {"CAUSE": ["SYMPTOM"]}, [ledger()])
    assert claimed(done) == {
        "CAUSE": {"0 communication/wait/rank 5": 300},
        "SYMPTOM": {"0 communication/transmit": 100},
    }
    assert done[1].impact.ns_per_step == 300 and done[1].impact.share_of_step == 0.3


def test_a_symptom_wants_no_more_than_its_causes_left_of_what_it_measured() -> None:
    """Without this a symptom that measured 250 of an entry would take 250 more beside its cause."""
    found = [finding("SYMPTOM", 250), finding("CAUSE", 250)]
    wants: list[dict[int, list[Want]]] = [{0: [(250, ["compute"])]}, {0: [(250, ["compute/matmul"])]}]
    done = claim_all(found, wants, {"CAUSE": ["SYMPTOM"]}, [ledger()])
    assert claimed(done) == {"CAUSE": {"0 compute/matmul": 250}, "SYMPTOM": {}}


def test_of_two_that_want_the_same_the_larger_takes_it() -> None:
    found = [finding("SMALL", 60), finding("LARGE", 70)]
    wants: list[dict[int, list[Want]]] = [{0: [(60, ["idle"])]}, {0: [(70, ["idle"])]}]
    assert claimed(claim_all(found, wants, {}, [ledger()])) == {
        "SMALL": {"0 idle/sync": 30},
        "LARGE": {"0 idle/sync": 70},
    }


def test_paths_are_claimed_in_the_order_in_which_they_are_given_and_below_each_the_largest_first() -> None:
    found, paths = [finding("A", 250)], ["idle/sync", "communication"]
    done = claim_all(found, [{0: [(250, paths)]}], {}, [ledger()])
    assert claimed(done) == {"A": {"0 idle/sync": 100, "0 communication/wait/rank 5": 150}}
    below = claim_all([finding("A", 350)], [{0: [(350, ["communication"])]}], {}, [ledger()])
    assert claimed(below) == {"A": {"0 communication/wait/rank 5": 300, "0 communication/transmit": 50}}


def test_a_cause_that_was_not_found_puts_nobody_behind() -> None:
    found = [finding("LARGE", 400), finding("SMALL", 300)]
    wants: list[dict[int, list[Want]]] = [{0: [(400, ["compute"])]}, {0: [(300, ["compute"])]}]
    done = claim_all(found, wants, {"ABSENT": ["LARGE"]}, [ledger()])
    assert claimed(done) == {"LARGE": {"0 compute/matmul": 400}, "SMALL": {"0 compute/matmul": 100}}


def test_a_finding_claims_on_each_of_its_ranks_and_shows_its_own() -> None:
    found = [finding("A", 100, rank=1, ranks=(0, 1))]
    wants: list[dict[int, list[Want]]] = [{0: [(40, ["idle"])], 1: [(100, ["idle"])]}]
    (done,) = claim_all(found, wants, {}, [ledger(0), ledger(1)])
    assert claimed([done]) == {"A": {"0 idle/sync": 40, "1 idle/sync": 100}}
    assert done.impact.ns_per_step == 100


def test_steps_are_averaged_and_a_rank_without_a_ledger_claims_nothing() -> None:
    steps = [ledger(step=1), ledger(step=2, **{"idle/sync": 300})]
    found = [finding("A", 1000), finding("B", 10, rank=7)]
    wants: list[dict[int, list[Want]]] = [{0: [(1000, ["idle"])]}, {7: [(10, ["idle"])]}]
    done = claim_all(found, wants, {}, steps)
    assert claimed(done) == {"A": {"0 idle/sync": 200}, "B": {}}
    assert done[1].impact.share_of_step == 0


PATHS = ["compute", "compute/matmul", "communication", "communication/wait", "communication/wait/rank 5", "idle", "no"]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["A", "B", "C", "D"]),
            st.dictionaries(
                st.integers(0, 2), st.tuples(st.integers(0, 900), st.lists(st.sampled_from(PATHS), max_size=3))
            ),
        ),
        max_size=12,
    ),
    st.dictionaries(st.sampled_from(["A", "B", "C", "D"]), st.lists(st.sampled_from(["A", "B", "C", "D"]), max_size=3)),
)
def test_claims_never_exceed_the_ledger(
    wanted: list[tuple[str, dict[int, tuple[int, list[str]]]]], explains: dict[str, list[str]]
) -> None:
    """Whatever rules want and however they explain each other, circles included."""
    found = [
        finding(rule, max((gross for gross, _ in wants.values()), default=0), about=str(number))
        for number, (rule, wants) in enumerate(wanted)
    ]
    parts: list[dict[int, list[Want]]] = [{rank: [want] for rank, want in wants.items()} for _, wants in wanted]
    done = claim_all(found, parts, explains, [ledger(0), ledger(1)])
    for rank in (0, 1):
        left = dict(BOOKS)
        for number, one in enumerate(done):
            own = [claim for claim in one.impact.claims if claim.rank == rank]
            assert sum(claim.ns for claim in own) <= wanted[number][1].get(rank, (0, []))[0]
            for claim in own:
                left[claim.path] -= claim.ns
        assert min(left.values()) >= 0
    assert len(link(rank_findings(done), explains)) == len(done)


def linked(findings: list[Finding], explains: dict[str, list[str]]) -> dict[str, Any]:
    return {found.fingerprint: found.explained_by for found in link(findings, explains)}


def test_what_explains_a_cause_is_linked_with_the_cause_only() -> None:
    chain = {"WHO": ["WAIT", "UNCOVERED"], "WAIT": ["UNCOVERED"]}
    found = [finding("WHO", 3), finding("WAIT", 2), finding("UNCOVERED", 1)]
    assert linked(found, chain) == {"WHO": [], "WAIT": ["WHO"], "UNCOVERED": ["WAIT"]}
    assert linked([found[0], found[2]], chain) == {"WHO": [], "UNCOVERED": ["WHO"]}


def test_findings_on_different_ranks_do_not_explain_each_other() -> None:
    found = [finding("CAUSE", 3, rank=1), finding("SYMPTOM", 1, rank=0)]
    assert linked(found, {"CAUSE": ["SYMPTOM"]}) == {"CAUSE": [], "SYMPTOM": []}


def test_a_broad_claim_never_takes_time_from_a_finer_one_that_it_does_not_know() -> None:
    found = [finding("BROAD", 900), finding("FINE", 100), finding("FINER", 60)]
    wants: list[dict[int, list[Want]]] = [
        {0: [(900, ["communication"])]},
        {0: [(100, ["communication/wait"])]},
        {0: [(60, ["communication/wait/rank 5"])]},
    ]
    done = claimed(claim_all(found, wants, {}, [ledger()]))
    assert done["FINER"] == {"0 communication/wait/rank 5": 60}
    assert done["FINE"] == {"0 communication/wait/rank 5": 100}
    assert sum(done["BROAD"].values()) == 400 - 160, "what is left"


def test_a_link_of_the_rules_comes_before_how_broad_their_claims_are() -> None:
    found = [finding("CAUSE", 300), finding("SYMPTOM", 300)]
    wants: list[dict[int, list[Want]]] = [{0: [(300, ["communication"])]}, {0: [(300, ["communication/wait"])]}]
    done = claimed(claim_all(found, wants, {"CAUSE": ["SYMPTOM"]}, [ledger()]))
    assert sum(done["CAUSE"].values()) == 300


def test_claims_that_are_above_each_other_have_no_order_of_their_own() -> None:
    found = [finding("ONE", 300), finding("TWO", 200)]
    wants: list[dict[int, list[Want]]] = [
        {0: [(300, ["communication", "idle/sync"])]},
        {0: [(200, ["communication/wait", "idle"])]},
    ]
    done = claimed(claim_all(found, wants, {}, [ledger()]))
    assert sum(done["ONE"].values()) == 300, "the larger first"


def test_a_symptom_of_one_part_is_explained_by_what_lies_there() -> None:
    """Three quarters of the cause lie in decode: prefill keeps what these do not explain."""
    places = {"prefill": {"prefill": 1.0}, "decode": {"decode": 1.0}, "": {"decode": 0.75, "training": 0.25}}

    def at(one: Finding, about: str) -> Finding:
        parts = [PartShare(part=part, share=share) for part, share in places[about].items()]
        return one.model_copy(update={"parts": parts, "subject": {"recorded_part": about} if about else {}})

    found = [
        at(finding("SYMPTOM", 40, about="-prefill"), "prefill"),
        at(finding("SYMPTOM", 80, about="-decode"), "decode"),
        at(finding("CAUSE", 40), ""),
    ]
    wants: list[dict[int, list[Want]]] = [{0: [(one.impact.gross_ns_per_step, ["idle"])]} for one in found]
    explains = {"CAUSE": ["SYMPTOM"]}
    done = claim_all(found, wants, explains, [ledger(**{"idle/sync": 1000})])
    assert claimed(done) == {
        "SYMPTOM-prefill": {"0 idle/sync": 40},
        "SYMPTOM-decode": {"0 idle/sync": 50},
        "CAUSE": {"0 idle/sync": 40},
    }
    linked = {one.fingerprint: one.explained_by for one in link(done, explains)}
    assert linked == {"SYMPTOM-prefill": [], "SYMPTOM-decode": ["CAUSE"], "CAUSE": []}
