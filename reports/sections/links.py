"""The links between ranks as a matrix of bandwidth, with the slow ones marked, and a table behind it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from advisor_core.api.renderers import Link, LinkMatrix
from reports.blocks import (
    Block,
    Column,
    Details,
    Figure,
    Items,
    Line,
    LinkMap,
    Paragraph,
    Row,
    Section,
    Table,
    Words,
    line,
)
from reports.labels import Labels
from reports.outline import Outline
from reports.sections.grid import cut
from reports.sections.problem_words import linked

ROWS = 24


def links(outline: Outline, t: Labels) -> Iterator[Section]:
    """Nothing where no links are recorded."""
    matrices = [block for matrix in outline.result.links for block in _matrix(matrix, outline, t)]
    if matrices:
        yield Section("links", t("links.title"), (*matrices, Paragraph(line(t("links.note")), "small")))


def link_map(matrix: LinkMatrix) -> LinkMap:
    """The matrix as drawn."""
    place = {rank: number for number, rank in enumerate(matrix.rows)}
    last = matrix.ranks_per_cell - 1
    return LinkMap(
        tuple(f"{rank}–{rank + last}" if last else str(rank) for rank in matrix.rows),
        tuple((place[cell.source], place[cell.target], cell.bandwidth, bool(cell.findings)) for cell in matrix.cells),
    )


def _matrix(matrix: LinkMatrix, outline: Outline, t: Labels) -> Iterator[Block]:
    if matrix.role is not None:
        yield Paragraph(line(Words(t("word.role", role=matrix.role), "strong")), "bare")
    if matrix.cells:
        several = matrix.ranks_per_cell > 1
        title = t("links.map_of", count=matrix.ranks_per_cell) if several else t("links.map")
        yield Figure(link_map(matrix), title)
    summed = (
        line(
            t(
                "links.transport",
                transport=one.transport,
                count=one.links,
                **{name: t.quantity(getattr(one, name), "B/s") for name in ("least", "median", "most")},
            )
        )
        for one in matrix.transports
    )
    yield Items(tuple(summed), "plain")
    slow = [link for link in matrix.links if link.findings]
    if slow:
        yield Paragraph(line(t("links.called_slow", count=len(slow))))
        yield _table(slow, outline, t)
    else:
        yield Paragraph(line(t("links.none_slow")))
    for key in ("unplaced", "assumed"):
        if count := getattr(matrix, key):
            yield Paragraph(line(t(f"links.{key}", count=count)), "small")
    if matrix.links:
        left = cut(matrix.recorded - matrix.unplaced, min(ROWS, len(matrix.links)), t)
        yield Details(line(t("links.more")), (_table(matrix.links, outline, t), *left), extra=True)


def _table(links: Sequence[Link], outline: Outline, t: Labels) -> Table:
    heads = ("source", "target", "kind", "bandwidth", "median", "bytes", "lost", "finding")
    columns = tuple(Column(t(f"links.{head}"), numeric=head not in ("kind", "finding")) for head in heads)
    return Table(columns, tuple(Row(_cells(link, outline, t)) for link in links[:ROWS]))


def _cells(link: Link, outline: Outline, t: Labels) -> tuple[Line, ...]:
    return (
        line(str(link.source)),
        line(str(link.target)),
        line(link.transport),
        line(t.quantity(link.bandwidth, "B/s")),
        line("–" if link.median_bandwidth is None else t.quantity(link.median_bandwidth, "B/s")),
        line(t.quantity(link.bytes, "bytes")),
        line(t.time(link.lost_ns)),
        linked((outline.numbers[fingerprint] for fingerprint in link.findings), outline) or line("–"),
    )
