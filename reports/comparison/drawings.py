"""Parts of the model, modules and holders of memory of both sides."""

from __future__ import annotations

from collections.abc import Iterator

from advisor_core.api.renderers import Comparison, DrawnDifference, DrawnPart
from reports.blocks import Block, Code, Column, Details, Line, Paragraph, Row, Section, Table, Words, line
from reports.comparison.words import sign
from reports.labels import Labels
from reports.sections.grid import cut

ROWS = 60


def drawings(comparison: Comparison, t: Labels) -> Iterator[Section]:
    """A table for each drawing that divides a whole by rows and that both sides have."""
    if not comparison.drawings:
        return
    blocks: list[Block] = [Paragraph(line(t("compare.drawings_note")), "small")]
    for drawn in comparison.drawings:
        name = f"compare.drawing.{drawn.kind}"
        title = line(Code(drawn.role), " ") if drawn.role else ()
        heading = line(*title, t(name) if name in t else t.of(drawn.title))
        blocks.append(Details(heading, (_table(drawn, t), *cut(len(drawn.parts), ROWS, t))))
    yield Section("drawings", t("compare.drawings"), tuple(blocks))


def _table(drawn: DrawnDifference, t: Labels) -> Table:
    heads = (
        Column(t("compare.part"), style="long"),
        *(Column(t(f"compare.{side}"), numeric=True) for side in ("before", "after", "difference")),
    )
    return Table(heads, tuple(_row(part, drawn.unit, t) for part in drawn.parts[:ROWS]))


def _row(part: DrawnPart, unit: str, t: Labels) -> Row:
    label = part.label if isinstance(part.label, str) else t.of(part.label)
    difference = line("–")
    if part.before is not None and part.after is not None:
        moved = part.after - part.before
        difference = line(Words(f"{sign(moved)}{t.quantity(abs(moved), unit)}", "strong"))
    return Row((line(label), _amount(part.before, unit, t), _amount(part.after, unit, t), difference))


def _amount(value: float | None, unit: str, t: Labels) -> Line:
    return line("–" if value is None else t.quantity(value, unit))
