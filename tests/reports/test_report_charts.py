"""The drawings of a page: which of them stand on the first page, and what is left out for want of room."""

from __future__ import annotations

import re
from html import unescape
from types import ModuleType
from typing import Any

import pytest

from advisor_core.api.renderers import Grid, TableColumn, TableView, View
from advisor_core.result.run import RunResult
from advisor_core.text.base import Text
from reports import html
from reports.html import HtmlRenderer

PAGE = 850_000
"""Bytes that the page of a large job may take: it leaves 150 kB of a megabyte for what is added."""


def charts(page: str) -> str:
    (section,) = (part for part in page.split("<section ") if part.startswith('aria-labelledby="charts"'))
    return section


def drawn(page: str, views: list[View], lang: str = "en") -> list[View]:
    section = letters(re.sub("<[^>]+>", " ", unescape(charts(page))))
    return [view for view in views if letters(str(view.title.of(lang))) in section]


def letters(text: str) -> str:
    """Without what a page writes in another way: markup, and kinds of spaces."""
    return re.sub(r"[^\w]+", " ", text)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_page_of_many_ranks_leaves_room(example: ModuleType, lang: str) -> None:
    assert len(HtmlRenderer().render(example.many_ranks(), lang).encode()) < PAGE


def test_ranks_are_drawn_as_a_whole_and_the_page_says_what_is_left_out(example: ModuleType) -> None:
    result: RunResult = example.many_ranks()
    page = HtmlRenderer().render(result, "en")
    shown = drawn(page, result.views)
    of_rank: dict[int, list[View]] = {}
    for view in result.views:
        if view.rank is not None and view.purpose not in ("phases", "settings", "step", "first_looks"):
            of_rank.setdefault(view.rank, []).append(view)
    whole = {rank for rank, views in of_rank.items() if all(any(view is one for one in shown) for view in views)}
    left = {rank for rank, views in of_rank.items() if not any(view is one for one in shown for view in views)}
    assert whole and left and whole | left == of_rank.keys()
    assert result.findings[0].rank in whole, "the rank of the first problem is drawn first"
    (told,) = re.findall(
        r"To keep this page small (\d+) drawings of single ranks are left out \(rank ([\d, ]+)\)", page
    )
    assert set(map(int, told[1].split(", "))) == left


def test_a_rank_that_takes_all_the_room_is_drawn_as_far_as_it_fits(
    example: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    result: RunResult = example.training()
    everything = len(drawn(HtmlRenderer().render(result, "en"), result.views))
    assert "To keep this page small" not in HtmlRenderer().render(example.nothing_found(), "en")
    monkeypatch.setattr(html, "ROOM", 20_000)
    page = HtmlRenderer().render(result, "en")
    assert 0 < len(drawn(page, result.views)) < everything
    assert "To keep this page small" in page


def looks(rank: int) -> TableView:
    title = Text(en=f"Looks of rank {rank}", zh=f"rank {rank}")
    data = Grid(columns=[TableColumn(label=title)], rows=[[title]], entries=[])
    return TableView(id=f"first-looks-rank{rank}", purpose="first_looks", title=title, rank=rank, data=data)


def test_what_to_look_at_first_stands_on_the_first_page(example: ModuleType) -> None:
    """Of the slowest rank; those of others stay with the other drawings."""
    base: RunResult = example.training()
    views: list[Any] = [view for view in base.views if not view.id.startswith("first-looks")]
    result = base.model_copy(update={"views": [*views, looks(0), looks(1)]})
    walls = {mean.rank: mean.wall_ns for mean in result.mean_steps if mean.rank is not None}
    slow, quick = sorted((0, 1), key=lambda rank: -walls[rank])
    page = HtmlRenderer().render(result, "en")
    first, rest = page.split("<nav", 1)
    assert f"Looks of rank {slow}" in first and f"Looks of rank {quick}" not in first
    assert f"Looks of rank {quick}" in charts(rest) and f"Looks of rank {slow}" not in charts(rest)
