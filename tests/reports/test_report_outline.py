"""What all renderers share: the verdict, the ledger as a tree, findings under their symptoms, what stays open."""

from __future__ import annotations

import re
from types import ModuleType
from typing import Any

import pytest

from advisor_core.result.finding import Claim, Finding, Impact
from advisor_core.text.base import Text
from reports.html import HtmlRenderer
from reports.labels import Labels, catalogue, shorten, visible
from reports.markdown import MarkdownRenderer
from reports.outline import Outline, arrange, percents, unclaimed, verdict, what_ran

WALLS = {(None, 0): 1000, (None, 1): 1000}


def finding(example: ModuleType, fingerprint: str, ns: int = 1, **changes: Any) -> Finding:
    base = example.findings()[0]
    impact = base.impact.model_copy(update={"ns_per_step": ns, "share_of_step": ns / 1000, "claims": []})
    defaults = {"fingerprint": fingerprint, "explains": [], "explained_by": [], "impact": impact}
    return base.model_copy(update=defaults | changes)


def test_verdict_says_the_largest_part_first_and_adds_up(example: ModuleType) -> None:
    result = example.alexnet()
    one = result.model_copy(update={"ledger": result.ledger[:1]})
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
    result = example.alexnet().model_copy(update={"ledger": [example.ledger_step(0, entries)]})
    rows = Outline(result).rows
    waits = [row for row in rows if row.depth == 2]
    assert len(waits) == 12
    assert waits[-1].others == 29
    assert sum(row.cells[0][0] for row in waits) == sum(entries.values())


def test_causes_stand_under_their_symptom(example: ModuleType) -> None:
    items = Outline(example.alexnet()).items
    assert [(item.number, item.finding.rule) for root in items for item in root.walk()] == [
        ("F1", "COM001"), ("F1a", "COM004"), ("F2", "HD001"), ("F2a", "HD002"), ("F2b", "HD004"), ("F3", "NS005"),
    ]  # fmt: skip
    assert items[0].actor.finding.rule == "COM004"
    assert items[0].stake.ns == 98_912_350 + 2_813_720
    assert items[1].stake.basis == "upper_bound"
    assert items[1].severity == "high"


def test_a_link_from_either_side_is_enough_and_unknown_links_are_left_out(example: ModuleType) -> None:
    found = [
        finding(example, "s", explained_by=["c1", "gone"]),
        finding(example, "c1"),
        finding(example, "c2", explains=["s", "gone"]),
    ]
    (root,) = arrange(found, WALLS)
    assert [item.finding.fingerprint for item in root.walk()] == ["s", "c1", "c2"]


def test_a_circle_of_explanations_is_cut(example: ModuleType) -> None:
    found = [
        finding(example, "a", explained_by=["b"]),
        finding(example, "b", explained_by=["a"]),
        finding(example, "c", explained_by=["c"]),
    ]
    roots = arrange(found, WALLS)
    assert [item.finding.fingerprint for root in roots for item in root.walk()] == ["a", "b", "c"]


def test_a_cause_of_two_symptoms_stands_once_and_is_linked(example: ModuleType) -> None:
    found = [
        finding(example, "s1", explained_by=["c"]),
        finding(example, "s2", explained_by=["c"]),
        finding(example, "c"),
    ]
    first, second = arrange(found, WALLS)
    (cause,) = first.causes
    assert second.causes == ()
    assert second.also_causes == ((cause.anchor, "F1a"),)
    assert [number for _, number in cause.symptoms] == ["F1", "F2"]


def test_anchors_are_safe_and_unique(example: ModuleType) -> None:
    found = [finding(example, name) for name in ("a", "a", '"><script>', "", "a b", "a-b")]
    anchors = [item.anchor for item in arrange(found, WALLS)]
    assert len(set(anchors)) == len(anchors)
    assert all(anchor.replace("-", "").isalnum() for anchor in anchors)


def test_time_at_stake_is_of_one_rank(example: ModuleType) -> None:
    def claimed(name: str, rank: int | None, by_rank: dict[int, int], causes: tuple[str, ...] = ()) -> Finding:
        claims = [Claim(rank=on, path="idle/sync", ns=ns) for on, ns in by_rank.items()]
        own = by_rank.get(rank, 0) if rank is not None else 0
        impact = Impact(ns_per_step=own, gross_ns_per_step=own, share_of_step=0, basis="exact", claims=claims)
        return finding(example, name, impact=impact, rank=rank, explained_by=list(causes))

    causes = [claimed("r0", 0, {0: 100}), claimed("r1", 1, {1: 300})]
    (root,) = arrange([claimed("s", 0, {0: 10, 1: 20}, ("r0", "r1")), *causes], WALLS)
    assert (root.stake.ns, root.stake.share) == (110, 0.11)
    (root,) = arrange([claimed("s", None, {}, ("r0", "r1")), *causes], WALLS)
    assert root.stake.ns == 300


def test_what_no_finding_claims_is_listed_above_the_limit(example: ModuleType) -> None:
    outline = Outline(example.alexnet())
    left = unclaimed(outline.by_rank, outline.result.findings)
    assert left[None, 0]["communication/wait/rank 5"] == 0
    assert all(ns >= 0 for entries in left.values() for ns in entries.values())
    assert [(entry.rank, entry.path) for entry in outline.unexplained] == [(1, "idle/sync")]
    nothing = Outline(example.nothing_found())
    assert nothing.unexplained[0].path == "communication/wait/rank 5"
    assert nothing.claimed_share == 0


def test_a_claim_of_an_inner_node_takes_from_all_below(example: ModuleType) -> None:
    outline = Outline(example.alexnet())
    claims = [{"rank": 0, "path": "idle/host", "ns": 10**12}, {"rank": 0, "path": "no/such", "ns": 5}]
    impact = outline.result.findings[0].impact.model_validate(
        {"ns_per_step": 1, "gross_ns_per_step": 1, "share_of_step": 0, "basis": "exact", "claims": claims}
    )
    left = unclaimed(outline.by_rank, [finding(example, "x", impact=impact, rank=0, ranks=[0])])
    assert not any(ns for path, ns in left[None, 0].items() if path.startswith("idle/host"))
    assert left[None, 0]["idle/sync"] == example.RANK0["idle/sync"]


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
