"""The spread over the ranks: what each part of a step takes on the fastest, the middle and the slowest of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from advisor_core.api.renderers import RankTime, Spread
from reports.blocks import (
    Below,
    Block,
    Boxes,
    Code,
    Column,
    Details,
    Figure,
    Line,
    Paragraph,
    Row,
    Section,
    Table,
    Words,
    line,
)
from reports.labels import Labels
from reports.outline import Outline

PARTS = {
    "compute": "computing",
    "communication": "communicating",
    "communication/wait": "waiting",
    "idle": "idle",
}
"""The names of these parts in the map of ranks and its table."""

SHOWN = ("phase", "part")
"""The kinds that are drawn; the others are tables that are folded away."""

NAMED = 3
"""Outliers that are named; report.json has more."""


def spread(outline: Outline, t: Labels) -> Iterator[Section]:
    """Nothing where there are no two ranks to compare."""
    by_role: dict[str | None, list[Spread]] = {}
    for one in sorted(outline.result.spread, key=lambda one: one.kind != "phase"):
        by_role.setdefault(one.role, []).append(one)
    blocks = [block for role, own in by_role.items() for block in _of_role(role, own, t)]
    if blocks:
        yield Section("spread", t("spread.title"), (*blocks, Paragraph(line(t("spread.note")), "small")))


def boxes(found: Sequence[Spread], t: Labels) -> Boxes:
    """The spreads as drawn."""
    return Boxes(tuple(_short(one, t) for one in found), tuple(found))


def _short(one: Spread, t: Labels) -> str:
    return t(f"ranks.column.{PARTS[one.name]}") if one.kind == "part" and one.name in PARTS else _name(one, t)


def _of_role(role: str | None, found: Sequence[Spread], t: Labels) -> Iterator[Block]:
    if role is not None:
        yield Paragraph(line(Words(t("word.role", role=role), "strong")), "bare")
    for kind in ("phase", "part", "operator", "collective"):
        own = [one for one in found if one.kind == kind]
        if not own:
            continue
        if kind in SHOWN:
            yield from (Figure(boxes(own, t), t(f"spread.{kind}")), _table(own, t))
        else:
            yield Details(line(t(f"spread.{kind}")), (_table(own, t),), extra=True)


def _name(one: Spread, t: Labels) -> str:
    if one.kind == "part":
        return t(f"ranks.{PARTS[one.name]}_ns") if one.name in PARTS else t.trail(one.name)
    if one.kind != "collective" or one.members is None:
        return one.name
    return t("spread.of_members", name=one.name, count=one.members)


def _table(found: Sequence[Spread], t: Labels) -> Table:
    heads = ("least", "quarter", "median", "three_quarters", "most", "outlier")
    columns = (
        Column(t(f"spread.column.{found[0].kind}"), style="long"),
        Column(t("ran.ranks"), numeric=True),
        *(Column(t(f"spread.{head}"), numeric=head != "outlier") for head in heads),
    )
    return Table(columns, tuple(Row(_cells(one, t)) for one in found))


def _cells(one: Spread, t: Labels) -> tuple[Line, ...]:
    name = _name(one, t)
    quartiles = ("–", "–", "–") if one.quartiles is None else tuple(map(t.time, one.quartiles))
    outliers = [f"{t('word.rank', rank=time.rank)} {t.time(time.ns)}" for time in one.outliers[:NAMED]]
    if len(one.outliers) > NAMED:
        outliers.append(t("spread.more", count=len(one.outliers) - NAMED))
    return (
        line(name if one.kind == "part" else Code(name, "cell")),
        line(str(one.ranks)),
        _end(one.least, t),
        *(line(quartile) for quartile in quartiles),
        _end(one.most, t),
        line(t.join(outliers) or "–"),
    )


def _end(time: RankTime, t: Labels) -> Line:
    return line(t.time(time.ns), Below(line(t("word.rank", rank=time.rank))))
