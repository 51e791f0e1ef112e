"""What all renderers share: the verdict, the ledger as a tree, findings under their symptoms, what stays open."""

from __future__ import annotations

import re
from types import ModuleType

import pytest

from advisor_core.text.base import Text
from reports.headline import percents, verdict, what_ran
from reports.html import HtmlRenderer
from reports.labels import Labels, catalogue, shorten, visible
from reports.markdown import MarkdownRenderer
from reports.outline import Outline


def test_verdict_says_the_largest_part_first_and_adds_up(example: ModuleType) -> None:
    result = example.alexnet()
    one = example.recomposed(result, {"ledger": result.ledger[:1], "findings": []})
    assert verdict(Outline(one), Labels("en")) == (
        "Of 136.6 ms, 75 % is communication not covered by computing (72 % waiting for rank 5), "
        "19 % idle, 6 % computing."
    )
    assert verdict(Outline(one), Labels("zh")) == (
        "136.6 ms 中，75 % 是未被计算掩盖的通信（其中 72 % 等待 rank 5），19 % 空闲，6 % 计算。"
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
    outline = Outline(example.alexnet())
    rank0 = outline.by_rank[0]
    assert [node.path for node in rank0.roots] == ["compute", "communication", "idle"]
    assert sum(node.ns for node in rank0.roots) == rank0.wall_ns == example.WALL
    assert sum(leaf.ns for node in rank0.roots for leaf in node.leaves()) == example.WALL
    children = rank0.roots[2].children
    assert [node.ns for node in children] == sorted((node.ns for node in children), reverse=True)


def test_many_siblings_share_a_line_and_lose_nothing(example: ModuleType) -> None:
    entries = {f"communication/wait/rank {rank}": 1_000 + rank for rank in range(40)}
    result = example.recomposed(example.alexnet(), {"ledger": [example.ledger_step(0, entries)], "findings": []})
    rows = Outline(result).rows
    waits = [row for row in rows if row.depth == 2]
    assert len(waits) == 12
    assert waits[-1].others == 29
    assert sum(row.cells[0][0] for row in waits) == sum(entries.values())


def test_the_tree_is_that_of_the_problems(example: ModuleType) -> None:
    outline = Outline(example.alexnet())
    written = [(item.number, item.finding.rule) for root in outline.items for item in root.walk()]
    assert written == [
        ("F1", "COM001"), ("F1a", "COM004"), ("F2", "HD001"), ("F2a", "HD002"), ("F2b", "HD004"), ("F3", "NS005"),
    ]  # fmt: skip
    assert [number for number, _ in written] == [problem.number for problem in outline.result.problems]
    assert outline.actor(outline.items[0]).finding.rule == "COM004"


def test_anchors_are_safe_and_unique(example: ModuleType) -> None:
    base = example.alexnet()
    names = ("a", '"><script>', "", "a b", "a-b")
    found = [base.findings[-1].model_copy(update={"fingerprint": name, "explains": []}) for name in names]
    anchors = [item.anchor for item in Outline(example.recomposed(base, {"findings": found})).items]
    assert len(set(anchors)) == len(anchors) == len(names)
    assert all(anchor.replace("-", "").isalnum() for anchor in anchors)


def test_top_shows_different_problems(example: ModuleType) -> None:
    top = Outline(example.many_ranks()).top
    assert len({item.finding.rule for item, _ in top}) == 3
    assert top[0][1] == 63


def test_what_ran_is_honest_about_what_is_missing(example: ModuleType) -> None:
    labels = Labels("en")
    facts = {fact.key: fact.value for fact in what_ran(Outline(example.alexnet()), labels)}
    assert facts["ran.ranks"] == "0, 1 of 8"
    assert facts["ran.steps"] == "1 (step 50)"
    assert facts["ran.parallel"] == "dp 8"
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
        fields = [set(re.findall(r"{(\w+)", text)) for text in texts.values()]
        assert fields[0] == fields[1], key


def test_what_cannot_be_seen_becomes_visible() -> None:
    assert visible("a\x1b[31m\u202eb\ud800") == "a\ufffd[31m\ufffdb\ufffd"
    assert shorten("x" * 100, 11) == "xxxxxx…xxxx"


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_an_unknown_entry_says_why_and_what_would_tell(example: ModuleType, lang: str) -> None:
    result = example.alexnet()
    reason, collect = Text(en="no planes <odd>", zh="没有 plane <odd>"), Text(en="take level 1", zh="用 level1 采集")
    step = result.ledger[0]
    entries = [
        entry.model_copy(update={"reason": reason, "collect": collect}) if entry.path == "idle/unknown" else entry
        for entry in step.entries
    ]
    result = result.model_copy(update={"ledger": [step.model_copy(update={"entries": entries}), *result.ledger[1:]]})
    (row,) = [row for row in Outline(result).rows if row.path == "idle/unknown"]
    assert row.reasons == (reason, collect)
    for page in (HtmlRenderer().render(result, lang), MarkdownRenderer().render(result, lang)):
        assert collect.of(lang) in page and "<odd>" not in page.replace("\\<odd\\>", "")
    assert "no planes &lt;odd&gt;" in HtmlRenderer().render(result, "en")
