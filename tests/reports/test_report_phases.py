"""The phases at a glance: times, shares and ranks as the result has them, for roles and for marks."""

from __future__ import annotations

from types import ModuleType

import pytest

from reports.headline import verdict, what_ran
from reports.html import HtmlRenderer
from reports.labels import Labels
from reports.markdown import MarkdownRenderer
from reports.outline import Outline
from reports.phases import phase_label, phase_ledgers
from reports.terminal import summary


def test_roles_are_rows(example: ModuleType) -> None:
    result, alone = example.of_roles(), example.alexnet()
    walls = {step.rank: step.wall_ns for step in alone.ledger}
    rows = result.phase_summaries
    assert [row.phase for row in rows] == list(result.profile.roles)
    for row in rows:
        assert row.ns == round(sum(walls.values()) / len(walls))
        assert row.share == 0.5 and row.ranks == 2
        assert sum(row.parts[key] for key in ("compute", "communication", "idle")) == pytest.approx(1, abs=2e-6)
        work = {
            step.rank: sum(
                e.ns for e in step.entries if not e.path.startswith(("communication/wait", "communication/unknown"))
            )
            for step in alone.ledger
        }
        assert (row.longest.rank, row.longest.ns) == max(work.items(), key=lambda pair: pair[1])
        assert (row.shortest.rank, row.shortest.ns) == min(work.items(), key=lambda pair: pair[1])
        longest, shortest = max(work.values()), min(work.values())
        assert row.spread == pytest.approx((longest - (longest + shortest) / 2) / longest, abs=1e-6)
    assert phase_ledgers(alone) == {}


def test_an_iteration_is_the_sum_of_its_roles(example: ModuleType) -> None:
    result, alone = Outline(example.of_roles()), Outline(example.alexnet())
    labels = Labels("en")
    assert result.mean.wall_ns == 2 * alone.mean.wall_ns
    assert result.mean.entries == {path: 2 * ns for path, ns in alone.mean.entries.items()}
    assert [ledger.role for ledger in result.shown] == list(example.of_roles().profile.roles)
    assert "2 roles" in verdict(result, labels) and "2 profiled" in verdict(result, labels)
    facts = {fact.key: fact.value for fact in what_ran(result, labels)}
    assert facts["ran.phase"] == "reinforcement learning" and "rollout" in facts["ran.roles"]
    assert facts["ran.iteration"] == labels.wall(result.mean.wall_ns)
    # what is at stake is a share of the role's own step
    stakes, own = ([(p.stake_ns, p.share_of_step) for p in outline.result.problems] for outline in (result, alone))
    assert sorted(stakes) == sorted(own * 2)
    assert result.result.coverage == alone.result.coverage


def test_rules_that_say_the_same_of_all_roles_are_told_once(example: ModuleType) -> None:
    result, alone = Outline(example.of_roles()), Outline(example.alexnet())
    assert len(example.of_roles().rules) == 2 * len(example.alexnet().rules)
    assert result.outcomes == alone.outcomes
    for state, found in result.rules.items():
        assert [rule.rule for rule in found] == [rule.rule for rule in alone.rules[state]]
        assert all(rule.role == ", ".join(example.of_roles().profile.roles) for rule in found)
        assert [rule.findings for rule in found] == [2 * rule.findings for rule in alone.rules[state]]


def test_marks_divide_the_step(example: ModuleType) -> None:
    result = example.marked()
    rows = result.phase_summaries
    assert [(row.phase, phase_label(row, Labels("en"))) for row in rows] == [
        ("rollout", "rollout"),
        ("", "outside of all phases"),
    ]
    walls = [step.wall_ns for step in example.alexnet().ledger]
    assert sum(row.ns for row in rows) == pytest.approx(sum(walls) / 2)
    assert rows[1].parts["idle"] == 1 and rows[1].longest is None
    assert rows[0].parts["idle"] == 0 and rows[0].longest is not None
    ((name, ledger),) = phase_ledgers(result).items()
    assert name == "rollout" and ledger.wall_ns == pytest.approx(rows[0].ns, abs=1)
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
    assert 'id="phases"' not in HtmlRenderer().render(example.alexnet(), "en")
    assert "Phases" not in MarkdownRenderer().render(example.alexnet(), "en")
