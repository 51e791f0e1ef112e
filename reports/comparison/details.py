"""Behind the first page: the ledgers side by side, operators, collectives, memory, ranks, steps, settings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from advisor_core.api.renderers import CollectiveDifference, Comparison, OperatorDifference
from reports.blocks import Block, Code, Column, Details, Line, Paragraph, Row, Section, Swatch, Table, Words, line
from reports.comparison.sides import either, sides
from reports.comparison.words import number, sign, signed
from reports.labels import Labels, TimeColumn
from reports.ledgers import ledger_rows
from reports.sections.grid import cut

ROWS = 24
SHOWN = 0.001
"""Share of the earlier step from which the difference of an operator is shown: most differ by less in any two runs."""


def ledger(comparison: Comparison, t: Labels) -> Iterator[Section]:
    """Both ledgers as one tree."""
    if not comparison.ledger:
        return
    columns = sides(comparison)
    unit = t.column(max(side.wall_ns for side in columns))
    names = ("compare.before", "compare.after", "compare.difference")
    heads = (Column(t("compare.entry"), style="label-cell"), *_numeric(unit.unit, [t(name) for name in names]))

    def cells(before: int, after: int) -> tuple[Line, ...]:
        return _amount(before, unit), _amount(after, unit), line(f"{sign(after - before)}{unit(abs(after - before))}")

    body = []
    for row in ledger_rows(columns, either(comparison)):
        name = t("word.others", count=row.others) if row.others else t.path(row.path)
        swatch = Swatch(row.path) if row.depth == 0 else None
        body.append(Row((line(swatch, name), *cells(row.cells[0][0], row.cells[1][0])), depth=row.depth))
    walls = cells(columns[0].wall_ns, columns[1].wall_ns)
    body.append(Row((line(t("compare.step")), *walls), total=True))
    yield Section("ledger", t("compare.ledger"), (Table(heads, tuple(body), "ledger"),))


def _amount(ns: int, unit: TimeColumn) -> Line:
    return line(unit(ns) if ns else "–")


def _numeric(group: str, titles: Sequence[str]) -> tuple[Column, ...]:
    return tuple(Column(title, numeric=True, group=group) for title in titles)


def operators(comparison: Comparison, t: Labels) -> Iterator[Section]:
    """Operators that changed, by type, and by shapes."""
    if "operators" in comparison.withheld:
        return
    if not comparison.operators:
        yield Section("operators", t("compare.operators"), (Paragraph(line(t("compare.operators_none"))),))
        return
    least = SHOWN * comparison.verdict.before_ns
    types, shapes = (
        [row for row in rows if abs(row.difference_ns) >= least]
        for rows in (comparison.operators, comparison.operator_shapes)
    )
    blocks: list[Block] = [Paragraph(line(t("compare.operators_note")), "small")]
    if types:
        blocks += [_operator_table(types, t, with_shapes=False), *cut(len(types), ROWS, t)]
    if smaller := len(comparison.operators) - len(types):
        blocks.append(Paragraph(line(t("compare.smaller", count=smaller, share=t.share(SHOWN))), "small"))
    if shapes:
        by_shape = (_operator_table(shapes, t, with_shapes=True), *cut(len(shapes), ROWS, t))
        blocks.append(Details(line(t("compare.by_shape")), by_shape))
    yield Section("operators", t("compare.operators"), tuple(blocks))


def _operator_table(rows: Sequence[OperatorDifference], t: Labels, with_shapes: bool) -> Table:
    shapes = (Column(t("compare.shapes"), style="long"),) if with_shapes else ()
    heads = (
        Column(t("compare.operator"), style="long"),
        *shapes,
        Column(t("compare.what"), style="short"),
        Column(t("compare.calls_head"), numeric=True),
        *(Column(t(f"compare.{name}"), numeric=True) for name in ("before", "after", "difference")),
        Column(t("compare.by_count"), numeric=True),
        Column(t("compare.by_time"), numeric=True),
    )
    return Table(heads, tuple(_operator(row, t, with_shapes) for row in rows[:ROWS]))


def _operator(row: OperatorDifference, t: Labels, with_shapes: bool) -> Row:
    role = line(Code(row.role), " ") if row.role else ()
    name = line(Code(row.type)) if row.type is not None else line(t("compare.unlisted"))
    shapes = (
        line(Code(row.shapes, "cell")) if row.shapes else line(t("compare.unlisted") if row.shapes is None else "–")
    )
    return Row(
        (
            (*role, *name),
            *([shapes] if with_shapes else []),
            line(t(f"compare.operator.{row.change}")),
            line(_ran(row.calls_before, row.calls_after)),
            *_times(row.before_ns, row.after_ns, t),
            line(signed(row.by_count_ns, t) if row.by_count_ns else "–"),
            line(signed(row.by_time_ns, t) if row.by_time_ns else "–"),
        )
    )


def _ran(before: float, after: float) -> str:
    return number(before) if before == after else f"{number(before)} → {number(after)}"


def _times(before: int, after: int, t: Labels) -> tuple[Line, ...]:
    return line(t.time(before)), line(t.time(after)), line(Words(signed(after - before, t), "strong"))


def collectives(comparison: Comparison, t: Labels) -> Iterator[Section]:
    """Communication by kind, group and size, and how much of it is covered."""
    if not comparison.collectives:
        return
    old, new = comparison.covered
    shares = None if old is None or new is None else t("compare.covered", before=t.share(old), after=t.share(new))
    heads = (
        Column(t("compare.operation")),
        Column(t("compare.group")),
        Column(t("compare.size"), numeric=True),
        Column(t("compare.calls_head"), numeric=True),
        *(Column(t(f"compare.{name}"), numeric=True) for name in ("before", "after", "difference")),
        *_numeric(t("compare.waiting"), [t("compare.before"), t("compare.after")]),
    )
    shown = tuple(_collective(row, t) for row in comparison.collectives[:ROWS])
    note = Paragraph(line(t("compare.collectives_note")), "small")
    coverage = () if shares is None else (Paragraph(line(shares)),)
    blocks = (*coverage, note, Table(heads, shown), *cut(len(comparison.collectives), ROWS, t))
    yield Section("communication", t("compare.collectives"), blocks)


def _collective(row: CollectiveDifference, t: Labels) -> Row:
    role = line(Code(row.role), " ") if row.role else ()
    name = line(Code(row.operation)) if row.operation is not None else line(t("compare.unlisted"))
    return Row(
        (
            (*role, *name),
            line(_group(row, t)),
            line(_unknown(row, t) if row.bytes is None else t.quantity(row.bytes, "bytes")),
            line(_ran(row.calls_before, row.calls_after)),
            *_times(row.before_ns, row.after_ns, t),
            line(t.time(row.waiting_before_ns)),
            line(t.time(row.waiting_after_ns)),
        )
    )


def _group(row: CollectiveDifference, t: Labels) -> str:
    if row.members is None:
        return _unknown(row, t)
    if row.spacing is None:
        return t("compare.group_of", members=row.members)
    return t("compare.group_spaced", members=row.members, spacing=row.spacing)


def _unknown(row: CollectiveDifference, t: Labels) -> str:
    return t("word.unknown" if row.listed else "compare.unlisted")


def apis(comparison: Comparison, t: Labels) -> Iterator[Section]:
    """Calls of the host by API."""
    least = SHOWN * comparison.verdict.before_ns
    rows = [row for row in comparison.apis if abs(row.difference_ns) >= least]
    if not rows:
        return
    heads = (
        Column(t("compare.api"), style="long"),
        Column(t("compare.api_level"), style="short"),
        Column(t("compare.calls_head"), numeric=True),
        *(Column(t(f"compare.{name}"), numeric=True) for name in ("before", "after", "difference")),
    )
    shown = (
        Row(
            (
                (*(line(Code(row.role), " ") if row.role else ()), *line(Code(row.name))),
                line(row.level),
                line(_ran(row.calls_before, row.calls_after)),
                *_times(row.before_ns, row.after_ns, t),
            )
        )
        for row in rows[:ROWS]
    )
    note = Paragraph(line(t("compare.apis_note")), "small")
    yield Section("apis", t("compare.apis"), (note, Table(heads, tuple(shown)), *cut(len(rows), ROWS, t)))


def memory(comparison: Comparison, t: Labels) -> Iterator[Section]:
    """The peaks of memory by rank."""
    if not comparison.memory:
        return
    pair = [t("compare.before"), t("compare.after")]
    heads = (
        Column(t("inputs.rank")),
        *_numeric(t("compare.allocated"), pair),
        *_numeric(t("compare.reserved"), pair),
    )
    rows = [
        Row(
            (
                line(_rank(row.role, row.rank, row.rank_after)),
                *(
                    line(t.quantity(size, "bytes"))
                    for size in (row.allocated_before, row.allocated_after, row.reserved_before, row.reserved_after)
                ),
            )
        )
        for row in comparison.memory
    ]
    table = Table(heads, tuple(rows[:ROWS]), "narrow")
    yield Section("memory", t("compare.memory"), (table, *cut(len(rows), ROWS, t)))


def _rank(role: str | None, rank: int, other: int) -> str:
    numbers = str(rank) if rank == other else f"{rank} → {other}"
    return f"{role} · {numbers}" if role else numbers


def ranks(comparison: Comparison, t: Labels) -> Iterator[Section]:
    """Ranks, phases and steps side by side."""
    if not comparison.ranks:
        return
    of_ranks = sorted(comparison.ranks, key=lambda row: -abs(row.difference_ns))
    blocks: list[Block] = [
        *_beside(
            t("inputs.rank"), [(_rank(r.role, r.rank, r.rank_after), r.before_ns, r.after_ns) for r in of_ranks], t
        )
    ]
    if comparison.phases:
        phases = [(phase.phase or t("phases.outside"), phase.before_ns, phase.after_ns) for phase in comparison.phases]
        blocks += _beside(t("phases.phase"), phases, t)
    if len(comparison.steps) > 1:
        names = [_step(step.step, step.step_after) for step in comparison.steps]
        steps = [(name, s.before_ns, s.after_ns) for name, s in zip(names, comparison.steps, strict=True)]
        blocks.append(Details(line(t("compare.steps_title")), tuple(_beside(t("compare.step_id"), steps, t))))
    yield Section("ranks", t("compare.ranks"), tuple(blocks))


def _step(step: int | None, other: int | None) -> str:
    names = ["–" if one is None else str(one) for one in (step, other)]
    return names[0] if names[0] == names[1] else " → ".join(names)


def _beside(name: str, rows: Sequence[tuple[str, int | None, int | None]], t: Labels) -> Iterator[Block]:
    heads = (Column(name), *(Column(t(f"compare.{side}"), numeric=True) for side in ("before", "after", "difference")))
    body = tuple(
        Row(
            (
                line(label),
                line("–" if before is None else t.time(before)),
                line("–" if after is None else t.time(after)),
                line("–" if before is None or after is None else signed(after - before, t)),
            )
        )
        for label, before, after in rows[:ROWS]
    )
    yield Table(heads, body, "narrow")
    yield from cut(len(rows), ROWS, t)


def settings(comparison: Comparison, t: Labels) -> Iterator[Section]:
    """Environment variables that are not the same."""
    if not comparison.settings:
        return
    heads = (Column(t("compare.variable")), Column(t("compare.before")), Column(t("compare.after")))
    rows = tuple(
        Row((line(Code(name)), *(_value(value, t) for value in values))) for name, values in comparison.settings.items()
    )
    yield Section("settings", t("compare.settings"), (Table(heads, rows, "narrow"),))


def _value(value: str | None, t: Labels) -> Line:
    if value is None:
        return line(Words(t("env.not_recorded"), "faint"))
    return line(Code(value) if value else Words(t("env.unset"), "faint"))


def withheld(comparison: Comparison, t: Labels) -> Iterator[Section]:
    """The parts that are left out, so that their absence says nothing."""
    if comparison.withheld:
        what = t.join([t(f"compare.conclusion.{one}") for one in comparison.withheld])
        note = Paragraph(line(t("compare.withheld_note", what=what)))
        yield Section("withheld", t("compare.withheld"), (note,))
