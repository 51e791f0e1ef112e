"""The phases at a glance: times, shares and ranks as the result has them, for roles and for marks."""

from __future__ import annotations

from types import ModuleType

import pytest

from advisor_core.result.run import LedgerStep
from reports.headline import verdict, what_ran
from reports.html import HtmlRenderer
from reports.labels import Labels
from reports.markdown import MarkdownRenderer
from reports.outline import Outline
from reports.phases import phase_label, phase_ledgers
from reports.terminal import summary


def in_work(step: LedgerStep) -> int:
    """What a rank did in a step, without waiting for others."""
    waits = ("communication/wait", "communication/unknown")
    return sum(entry.ns for entry in step.entries if not entry.path.startswith(waits))


def test_roles_are_rows(example: ModuleType) -> None:
    """Each role was recorded for one step on two ranks: its row is the mean of the two ledgers."""
    result = example.of_roles()
    rows = result.phase_summaries
    assert [row.phase for row in rows] == list(result.profile.roles) and len(rows) == 4
    whole = sum(step.wall_ns for step in result.ledger) / 2
    for row in rows:
        steps = {step.rank: step for step in result.ledger if step.role == row.phase}
        assert len(steps) == row.ranks == 2
        assert row.ns == round(sum(step.wall_ns for step in steps.values()) / 2)
        assert row.share == pytest.approx(row.ns / whole, abs=1e-6)
        assert sum(row.parts[key] for key in ("compute", "communication", "idle")) == pytest.approx(1, abs=2e-6)
        work = {rank: in_work(step) for rank, step in steps.items()}
        assert (row.longest.rank, row.longest.ns) == max(work.items(), key=lambda pair: pair[1])
        assert (row.shortest.rank, row.shortest.ns) == min(work.items(), key=lambda pair: pair[1])
        longest, shortest = max(work.values()), min(work.values())
        assert row.spread == pytest.approx((longest - (longest + shortest) / 2) / longest, abs=1e-6)
    assert phase_ledgers(example.training()) == {}


def test_an_iteration_is_the_sum_of_its_roles(example: ModuleType) -> None:
    job = example.of_roles()
    result = Outline(job)
    labels = Labels("en")
    rows = [mean for mean in job.mean_steps if mean.role is not None and mean.rank is not None]
    by_role = {role: [mean for mean in rows if mean.role == role] for role in job.profile.roles}
    assert all(len(means) == 2 for means in by_role.values())
    walls = [sum(mean.wall_ns for mean in means) / 2 for means in by_role.values()]
    assert result.mean.wall_ns == pytest.approx(sum(walls), abs=len(walls))
    computed = sum(ns for mean in rows for path, ns in mean.entries.items() if path == "compute/matmul") / 2
    assert result.mean.entries["compute/matmul"] == pytest.approx(computed, abs=len(walls))
    assert [ledger.role for ledger in result.shown] == list(job.profile.roles)
    assert "4 roles" in verdict(result, labels) and "2 profiled" in verdict(result, labels)
    facts = {fact.key: fact.value for fact in what_ran(result, labels)}
    assert facts["ran.phase"] == "reinforcement learning" and "rollout" in facts["ran.roles"]
    assert facts["ran.iteration"] == labels.wall(result.mean.wall_ns)
    # what is at stake is a share of the role's own step
    shown = {finding.fingerprint: finding for finding in job.findings}
    at_stake = [problem for problem in job.problems if problem.stake_ns and problem.depth == 0]
    assert at_stake
    for problem in at_stake:
        role = shown[problem.findings[0]].role
        wall = next(mean.wall_ns for mean in by_role[role] if mean.rank == problem.rank)
        assert problem.share_of_step == pytest.approx(problem.stake_ns / wall, rel=1e-3)


def test_rules_that_say_the_same_of_all_roles_are_told_once(example: ModuleType) -> None:
    job = example.of_roles()
    roles = list(job.profile.roles)
    told = [rule for found in Outline(job).rules.values() for rule in found]
    judged = [rule for rule in job.rules if rule.only_for is None]
    each = {(rule.rule, rule.role): rule.state for rule in judged}
    assert len(each) == len(judged) == len({rule.rule for rule in judged}) * len(roles)
    joined = 0
    for rule in told:
        of = rule.role.split(", ") if rule.role else []
        assert {each[rule.rule, role] for role in of} == {rule.state}, rule.rule
        joined += len(of) > 1
    assert joined > len(told) / 2
    assert sorted((rule.rule, role) for rule in told for role in rule.role.split(", ")) == sorted(each)


def test_marks_divide_the_step(example: ModuleType) -> None:
    result = example.marked()
    rows = result.phase_summaries
    labels = [phase_label(row, Labels("en")) for row in rows]
    assert [row.phase for row in rows if row.phase][:2] == ["rollout", "log_prob"] and "rollout" in labels
    assert [label for row, label in zip(rows, labels, strict=True) if not row.phase] in ([], ["outside of all phases"])
    walls = [step.wall_ns for step in result.ledger]
    assert sum(row.ns for row in rows) == pytest.approx(sum(walls) / len(walls), abs=len(rows))
    for row in rows:
        times = [phase for phase in result.phases if phase.phase == row.phase]
        idle = sum(ns for phase in times for path, ns in phase.entries.items() if path.startswith("idle/"))
        assert row.parts["idle"] == pytest.approx(idle / sum(phase.wall_ns for phase in times), abs=1e-5)
    ledgers = phase_ledgers(result)
    assert list(ledgers) == [row.phase for row in rows if row.phase]
    for row in rows:
        if row.phase:
            ledger = ledgers[row.phase]
            assert ledger.wall_ns == pytest.approx(row.ns, abs=len(ledger.entries)), "each entry is rounded"
    said = summary(result, "en", [])
    assert "Phases: rollout" in said


@pytest.mark.parametrize("name", ["of_roles", "marked"])
@pytest.mark.parametrize(("lang", "title"), [("en", "Phases"), ("zh", "各阶段")])
def test_the_first_page_shows_the_phases(example: ModuleType, name: str, lang: str, title: str) -> None:
    result = getattr(example, name)()
    page = HtmlRenderer().render(result, lang)
    assert page.index(f">{title}</h2>") < page.index('id="findings"')
    text = MarkdownRenderer().render(result, lang)
    assert f"## {title}\n" in text and text.index(f"## {title}") < text.index("### F1")


def test_without_phases_nothing_is_said_of_them(example: ModuleType) -> None:
    assert 'id="phases"' not in HtmlRenderer().render(example.training(), "en")
    assert "Phases" not in MarkdownRenderer().render(example.training(), "en")
