"""What all renderers share: the verdict, the ledger as a tree, findings under their symptoms, what stays open."""

from __future__ import annotations

import re
from types import ModuleType

import pytest

from advisor_core.result.run import LedgerEntry
from advisor_core.text.base import Text
from reports.headline import percents, verdict, what_ran
from reports.html import HtmlRenderer
from reports.labels import Labels, catalogue, shorten, visible
from reports.markdown import MarkdownRenderer
from reports.outline import Outline

UNITS = {"unit", "units", "counted", "Unit", "Counted"}
"""What the ledger is of; the languages may need another form of it."""


def test_verdict_says_the_largest_part_first_and_adds_up(example: ModuleType) -> None:
    """The first step of rank 0 of two that wait for rank 2, added up by hand from its entries; what 51, 48
    and 0 % lack goes to the largest remainder, that of computing (48.57 %)."""
    result = example.two_of_four()
    step = result.ledger[0]
    parts = {root: sum(e.ns for e in step.entries if e.path.startswith(root)) for root in ("communication", "compute")}
    waits = next(entry.ns for entry in step.entries if entry.path == "communication/wait/rank 2")
    shares = {name: round(100 * ns / step.wall_ns) for name, ns in {**parts, "wait": waits}.items()}
    assert (step.wall_ns, shares) == (118_078_301, {"communication": 51, "compute": 49, "wait": 46})
    one = example.recomposed(result.model_copy(update={"ledger": [step], "findings": []}))
    assert verdict(Outline(one), Labels("en")) == (
        "Of 118.1 ms, 51 % is communication not covered by computing (46 % waiting for rank 2), "
        "49 % computing (32 % matmul), < 1 % idle."
    )
    assert verdict(Outline(one), Labels("zh")) == (
        "118.1 ms 中，51 % 是未被计算掩盖的通信（其中 46 % 等待 rank 2），49 % 计算（其中 32 % 矩阵乘），< 1 % 空闲。"
    )
    assert "mean of 2 ranks" in verdict(Outline(result), Labels("en"))
    assert "mean of 64 ranks and 2 steps" in verdict(Outline(example.many_ranks()), Labels("en"))


def test_verdict_without_a_ledger_says_so(example: ModuleType) -> None:
    assert "does not say" in verdict(Outline(example.empty()), Labels("en"))


@pytest.mark.parametrize("values", [[1, 1, 1], [0.335, 0.335, 0.33], [7], [1, 999], [5, 0, 5]])
def test_percents_add_up_to_a_hundred(values: list[float]) -> None:
    assert sum(percents(values)) == 100


def test_percents_of_nothing() -> None:
    assert percents([0, 0]) == [0, 0]
    assert percents([]) == []


def test_the_tree_keeps_every_nanosecond(example: ModuleType) -> None:
    result = example.training()
    steps = [step for step in result.ledger if step.rank == 0]
    wall = round(sum(step.wall_ns for step in steps) / len(steps))
    rank0 = Outline(result).by_rank[0]
    assert [node.path for node in rank0.roots] == ["compute", "communication", "idle"]
    assert sum(node.ns for node in rank0.roots) == rank0.wall_ns == wall
    assert sum(leaf.ns for node in rank0.roots for leaf in node.leaves()) == wall
    children = rank0.roots[2].children
    assert [node.ns for node in children] == sorted((node.ns for node in children), reverse=True)


def test_many_siblings_share_a_line_and_lose_nothing(example: ModuleType) -> None:
    """A step that waited for 40 ranks, each a little longer: more than the lines of a table; no simulated job does."""
    base = example.training()
    waits = [LedgerEntry(path=f"communication/wait/rank {rank}", ns=1_000 + rank) for rank in range(40)]
    whole = sum(entry.ns for entry in waits)
    step = base.ledger[0].model_copy(update={"entries": waits, "wall_ns": whole})
    rows = Outline(example.recomposed(base.model_copy(update={"ledger": [step], "findings": []}))).rows
    shown = [row for row in rows if row.depth == 2]
    assert len(shown) == 12
    assert shown[-1].others == 29
    assert sum(row.cells[0][0] for row in shown) == whole


def test_the_tree_is_that_of_the_problems(example: ModuleType) -> None:
    """Symptoms and causes as the findings name each other; F2 is communication that nothing covers."""
    outline = Outline(example.training())
    written = [(item.number, item.finding.rule) for root in outline.items for item in root.walk()]
    assert [number for number, _ in written] == [problem.number for problem in outline.result.problems]
    assert sorted(rule for _, rule in written) == sorted(finding.rule for finding in outline.result.findings)
    finding = {item.number: item.finding for root in outline.items for item in root.walk()}
    below = [number for number in finding if len(number) > 2]
    assert len(below) > 10
    for number in below:
        parent = finding[max((other for other in finding if number.startswith(other) and other != number), key=len)]
        assert finding[number].fingerprint in parent.explained_by, number
    symptom = next(item for item in outline.items if item.finding.rule == "CO001")
    assert [item.finding.rule for item in symptom.walk()] == ["CO001", "CO003", "CO002", "CO010", "CO006", "CO005"]
    assert outline.actor(symptom).finding.rule == "CO003", "the cause with most time"


def test_anchors_are_safe_and_unique(example: ModuleType) -> None:
    base = example.training()
    names = ("a", '"><script>', "", "a b", "a-b")
    alone = {"explains": [], "explained_by": []}
    found = [base.findings[0].model_copy(update={"fingerprint": name, **alone}) for name in names]
    result = example.recomposed(base.model_copy(update={"findings": found}))
    anchors = [item.anchor for item in Outline(result).items]
    assert len(set(anchors)) == len(anchors) == len(names)
    assert all(anchor.replace("-", "").isalnum() for anchor in anchors)


def test_top_shows_different_problems(example: ModuleType) -> None:
    top = Outline(example.many_findings()).top
    assert len({item.finding.rule for item, _ in top}) == 3
    assert top[0][1] == 63


def test_beside_the_plan_stands_nothing_that_it_wins(example: ModuleType) -> None:
    outline = Outline(example.training())
    assert outline.planned
    for item, _ in outline.beside_plan:
        assert not {below.number for below in item.walk()} & outline.planned
    without = outline.result.model_copy(update={"plan": None})
    assert Outline(without).beside_plan == Outline(without).kinds


def test_a_cause_that_the_plan_leaves_out_stands_beside_it(example: ModuleType) -> None:
    base = example.training()
    symptom = next(item for item in Outline(base).items if len(item.causes) > 1)
    kept = [action for action in base.plan.actions if action.problem == symptom.causes[0].number]
    left = next(cause for cause in symptom.causes[1:] if cause.problem.severity != "low")
    plan = base.plan.model_copy(update={"actions": [action.model_copy(update={"covers": []}) for action in kept]})
    beside = [item.number for item, _ in Outline(base.model_copy(update={"plan": plan})).beside_plan]
    assert kept and symptom.number not in beside and left.number in beside


def test_what_ran_is_honest_about_what_is_missing(example: ModuleType) -> None:
    labels = Labels("en")
    facts = {fact.key: fact.value for fact in what_ran(Outline(example.two_of_four()), labels)}
    assert facts["ran.ranks"] == "0, 1 of 4"
    assert facts["ran.steps"] == "3 (10 to 12)"
    assert facts["ran.parallel"] == "dp 4"
    one = {fact.key: fact.value for fact in what_ran(Outline(example.launch_blocking()), labels)}
    assert one["ran.ranks"] == "0"
    empty = {fact.key: fact.value for fact in what_ran(Outline(example.empty()), labels)}
    assert empty["ran.chip"] == empty["ran.step_time"] == "not recorded"


def test_paths_have_labels_and_unknown_ones_are_readable() -> None:
    en, zh = Labels("en"), Labels("zh")
    assert en.path("communication/wait/rank 12") == "for rank 12"
    assert en.trail("communication/wait/rank 12") == "waiting for rank 12"
    assert zh.trail("communication/wait/rank 12") == "等待 rank 12"
    assert en.trail("idle/host/python") == "host: Python code"
    assert en.trail("idle/unknown") == "idle: cause unknown"
    assert en.path("idle/new_thing") == "new thing"


def test_every_label_exists_in_both_languages() -> None:
    for key, texts in catalogue().items():
        assert set(texts) == {"en", "zh"}, key
        assert texts["en"].strip() and texts["zh"].strip(), key
        fields = [set(re.findall(r"{(\w+)", text)) - UNITS for text in texts.values()]
        assert fields[0] == fields[1], key


def test_what_cannot_be_seen_becomes_visible() -> None:
    assert visible("a\x1b[31m\u202eb\ud800") == "a\ufffd[31m\ufffdb\ufffd"
    assert shorten("x" * 100, 11) == "xxxxxx…xxxx"


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_an_entry_says_why_and_what_would_tell(example: ModuleType, lang: str) -> None:
    """Nothing is unknown in these simulated jobs: another entry is given what an unknown one has."""
    result = example.training()
    reason, collect = Text(en="no planes <odd>", zh="没有 plane <odd>"), Text(en="take level 1", zh="用 level1 采集")
    step = result.ledger[0]
    entries = [
        entry.model_copy(update={"reason": reason, "collect": collect}) if entry.path == "idle/sync" else entry
        for entry in step.entries
    ]
    result = result.model_copy(update={"ledger": [step.model_copy(update={"entries": entries}), *result.ledger[1:]]})
    (row,) = [row for row in Outline(result).rows if row.path == "idle/sync"]
    assert row.reasons == (reason, collect)
    for page in (HtmlRenderer().render(result, lang), MarkdownRenderer().render(result, lang)):
        assert collect.of(lang) in page and "<odd>" not in page.replace("\\<odd\\>", "")
    assert "no planes &lt;odd&gt;" in HtmlRenderer().render(result, "en")
