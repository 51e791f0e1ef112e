"""The matrix of links: readable at any size, slow links framed and listed."""

from __future__ import annotations

import re
from types import ModuleType

import pytest

from advisor_core.result.links import Link, LinkCell, LinkMatrix, TransportLinks
from reports.blocks import Details, Figure, Section, Table, Words
from reports.charts.link_map import draw_link_map
from reports.charts.svg import MAX_MARKS, WIDTH
from reports.labels import Labels
from reports.outline import Outline
from reports.sections.links import ROWS, link_map, links

EN = Labels("en")
GB = 10**9


def full(rows: int, per_cell: int = 1, slow: tuple[str, ...] = ()) -> LinkMatrix:
    """Each row sends to each other one; from the first to the second at a tenth of the bandwidth."""
    first = [row * per_cell for row in range(rows)]
    pairs = [(a, b) for a in first for b in first if a != b or per_cell > 1]

    def of(a: int, b: int) -> float:
        return GB if (a, b) == (0, per_cell) else 10.0 * GB

    return LinkMatrix(
        ranks_per_cell=per_cell,
        rows=first,
        cells=[
            LinkCell(source=a, target=b, bandwidth=of(a, b), links=1, findings=list(slow) if of(a, b) == GB else [])
            for a, b in pairs
        ],
        transports=[TransportLinks(transport="HCCS", links=len(pairs), least=GB, median=10 * GB, most=10 * GB)],
        links=[
            Link(
                source=a,
                target=b,
                transport="HCCS",
                group="7",
                bytes=1000,
                bandwidth=of(a, b),
                median_bandwidth=10.0 * GB,
                lost_ns=0,
                findings=list(slow) if of(a, b) == GB else [],
            )
            for a, b in pairs[:64]
        ],
        recorded=len(pairs),
    )


@pytest.mark.parametrize(("rows", "per_cell", "digits"), [(2, 1, True), (8, 1, True), (8, 8, True), (32, 32, False)])
def test_the_drawing_holds_every_cell_within_its_width(rows: int, per_cell: int, digits: bool) -> None:
    matrix = full(rows, per_cell, ("abc",))
    chart = draw_link_map(link_map(matrix), "Links", EN)
    assert chart.svg.count(">10.0</text>") == (len(matrix.cells) - 1 if digits else 0)
    assert len(re.findall("<(?:rect|path)", chart.svg)) <= MAX_MARKS
    rects = re.findall(r'<rect [^>]*x="([\d.]+)"[^>]*width="([\d.]+)"', chart.svg)
    paths = re.findall(r"M([\d.]+) [\d.]+h([\d.]+)", chart.svg)
    assert len(paths) == (0 if digits else len(matrix.cells))
    assert max(float(x) + float(width) for x, width in [*rects, *paths]) <= WIDTH
    assert chart.svg.count('class="slow"') == 1 and "slow, by a finding" in [entry.label for entry in chart.legend]


def section(example: ModuleType, matrix: LinkMatrix, t: Labels = EN) -> Section:
    (told,) = links(Outline(example.training().model_copy(update={"links": [matrix]})), t)
    return told


def test_slow_links_are_listed_with_their_problem_and_all_others_behind(example: ModuleType) -> None:
    found = example.training().problems[0]
    told = section(example, full(8, slow=(found.findings[0],)))
    (slow,) = [block for block in told.blocks if isinstance(block, Table)]
    assert len(slow.rows) == 1
    assert slow.rows[0].cells[3] == (Words("1.00 GB/s"),)
    assert found.number in str(slow.rows[0].cells[-1])
    (behind,) = [block for block in told.blocks if isinstance(block, Details)]
    table = next(block for block in behind.blocks if isinstance(block, Table))
    assert len(table.rows) == ROWS and behind.extra


def test_what_is_not_known_is_told(example: ModuleType) -> None:
    matrix = full(2).model_copy(update={"unplaced": 3, "assumed": 1})
    told = str(section(example, matrix).blocks)
    assert "3 links are not drawn" in told and "1 link is of a group" in told
    assert "No finding calls a link slow." in told
    unplaced = section(example, matrix.model_copy(update={"cells": [], "rows": [], "links": []}))
    assert not any(isinstance(block, Figure) for block in unplaced.blocks)
    assert "3 条链路未绘出" in str(section(example, matrix, Labels("zh")).blocks)


def test_no_links_no_section(example: ModuleType) -> None:
    assert list(links(Outline(example.training().model_copy(update={"links": []})), EN)) == []
