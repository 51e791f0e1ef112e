"""The ledger as a table, its largest stretches, the ranks side by side, and what no rule explains."""

from __future__ import annotations

from collections.abc import Sequence

from advisor_core.api import Text
from advisor_core.api.renderers import Heatmap, HeatmapView
from reports import tables
from reports.blocks import Block, Code, Column, Details, Figure, Line, Paragraph, Row, Section, Swatch, Table, line
from reports.comparison.words import signed, signed_share
from reports.headline import rank_name
from reports.labels import Labels, TimeColumn
from reports.ledgers import Ledger, LedgerRow, together
from reports.outline import ALL_RANKS, Outline
from reports.sections.grid import cut, grid
from reports.steps import StepBeside, Steps, steps_of

ALL_STEPS = 12
"""So many steps of a rank are listed; of more only those that say something."""

HEAT_ENTRIES = 8
"""Entries of the ledger that are compared between many ranks."""


def time_column(outline: Outline, t: Labels) -> TimeColumn:
    """How the times of the ledger are written, wherever one is named: in one unit, with one precision."""
    return t.column(max((ledger.wall_ns for ledger in outline.columns), default=0))


def ledger_table(rows: Sequence[LedgerRow], outline: Outline, t: Labels) -> Table:
    """Entries as a tree, and for each rank or role shown its time, in one unit, and its share of the step."""
    unit = time_column(outline, t)
    notes = any(row.detail or row.reasons for row in rows)
    columns = [Column(t("ledger.entry"), style="label-cell")]
    for ledger in outline.columns:
        name = rank_name(ledger, outline, t)
        columns += [Column(unit.unit, numeric=True, group=name), Column("%", numeric=True, group=name, style="share")]
    if notes:
        columns.append(Column(t("ledger.detail"), style="note"))

    def amounts(cells: Sequence[tuple[int, float]]) -> list[Line]:
        return [
            cell
            for ns, share in cells
            for cell in (line(unit(ns) if ns else "–"), line(f"{100 * share:.1f}" if ns else ""))
        ]

    body = []
    for row in rows:
        name = t("word.others", count=row.others) if row.others else t.path(row.path)
        label = line(Swatch(row.path) if row.depth == 0 else None, name)
        body.append(Row((label, *amounts(row.cells), *([_note(row, t)] if notes else [])), depth=row.depth))
    totals = amounts([(ledger.wall_ns, 1.0) for ledger in outline.columns])
    body.append(Row((line(t("ledger.total")), *totals, *([()] if notes else [])), total=True))
    return Table(tuple(columns), tuple(body), "ledger")


def _note(row: LedgerRow, t: Labels) -> Line:
    details = t("word.clause").join(f"{name}{t('word.colon')}{value}" for name, value in tables.pairs(row.detail, t))
    return line(t("word.semicolon").join(part for part in (details, *(t.of(text) for text in row.reasons)) if part))


def accounted_for(outline: Outline, t: Labels) -> str:
    """How much of the step is accounted for."""
    coverage = outline.result.coverage
    return t("ledger.known", known=t.share(coverage.known_share), claimed=t.share(coverage.claimed_share))


def ledger(outline: Outline, t: Labels) -> Section:
    """The whole ledger."""
    means = t("ledger.means") if any(ledger.mean.steps > 1 for ledger in outline.by_rank) else ""
    booked = f" {accounted_for(outline, t)}" if outline.one_run else ""
    blocks: list[Block] = [
        Paragraph(line(f"{t('ledger.note')}{means}{booked}"), "lead"),
        ledger_table(outline.rows, outline, t),
    ]
    for table in (tables.stretches(led, outline.result, t) for led in outline.detailed):
        if table.rows:
            blocks.append(Details(line(table.title), (grid(table),), extra=True))
    for led in outline.detailed:
        own = steps_of(outline.result, led.role, led.rank)
        if own is not None:
            blocks.append(_steps(own, led, t))
    if len(outline.by_rank) > ALL_RANKS and not outline.has_roles:
        blocks.append(Figure(_side_by_side(outline, t), t("ledger.by_rank")))
    return Section("ledger", t("ledger.title"), tuple(blocks))


def _steps(own: Steps, led: Ledger, t: Labels) -> Details:
    """How far the steps of a rank lie apart; of many only those that are unlike the others, and the extremes."""
    named = own.steps if len(own.steps) <= ALL_STEPS else _notable(own)
    summary = t(
        "steps.summary",
        count=len(own.steps),
        mean=t.time(own.mean_ns),
        deviation=t.time(own.deviation_ns),
        share=t.share(own.deviation_ns / own.mean_ns if own.mean_ns else 0.0),
        shortest=t.time(own.shortest.wall_ns),
        longest=t.time(own.longest.wall_ns),
    )
    told = t("steps.few") if own.steps[0].unlike is None else t("steps.unlike", count=len(own.unlike))
    columns = (
        Column(t("steps.step")),
        Column(t("steps.time"), numeric=True),
        Column(t("steps.apart"), numeric=True),
        Column(t("steps.differs")),
    )
    rows = [
        Row(
            (
                line("–" if step.step is None else str(step.step)),
                line(t.time(step.wall_ns)),
                line(signed_share(step.apart, t)),
                line(_differs(step, t)),
            )
        )
        for step in named
    ]
    title = (f"{led.role} · " if led.role else "") + t("steps.title", rank=led.rank)
    table = Table(columns, tuple(rows), "narrow")
    blocks = (Paragraph(line(f"{summary} {told}")), table, *cut(len(own.steps), len(named), t))
    return Details(line(title), blocks, extra=True)


def _notable(own: Steps) -> tuple[StepBeside, ...]:
    ends = (own.shortest, own.longest)
    notable = [step for step in own.steps if step.unlike or step in ends]
    kept = sorted(notable, key=lambda step: (step not in ends, -abs(step.apart)))[:ALL_STEPS]
    return tuple(step for step in notable if step in kept)


def _differs(step: StepBeside, t: Labels) -> str:
    """The entries that make most of the difference of a step, with how much more it has of each."""
    named = (f"{signed(ns, t)} {t.trail(path)}" for path, ns in step.differs)
    return t("word.semicolon").join(named)


def _side_by_side(outline: Outline, t: Labels) -> HeatmapView:
    """Which share of the step each of many ranks spends where: ranks across, the largest ledger entries down."""
    entries = (outline.mean if outline.one_run else together(outline.by_rank)).entries
    paths = sorted(entries, key=lambda path: (-entries[path], path))[:HEAT_ENTRIES]
    title = t("ledger.by_rank")
    return HeatmapView(
        id="ledger-by-rank",
        purpose="ledger",
        title=Text(en=title, zh=title),
        unit="ratio",
        data=Heatmap(
            rows=[t.trail(path) for path in paths],
            columns=[str(ledger.rank) for ledger in outline.by_rank],
            values=[[led.share(led.entries.get(path, 0)) for led in outline.by_rank] for path in paths],
        ),
    )


def unexplained(outline: Outline, t: Labels, rows: int) -> Section:
    """The entries that no finding claims."""
    limit = t.share(outline.result.coverage.unexplained_from)
    entries = outline.unexplained
    if not entries:
        none = Paragraph(line(t("unexplained.none", limit=limit)))
        return Section("unexplained", t("unexplained.title"), (none,))
    roles = [Column(t("phases.phase"))] if outline.has_roles else []
    columns = (
        *roles,
        Column(t("inputs.rank")),
        Column(t("ledger.entry")),
        Column(t("unexplained.unclaimed"), numeric=True),
        Column(t("unexplained.share"), numeric=True),
    )
    body = [
        Row(
            (
                *([line(Code(entry.role or ""))] if roles else []),
                line(t("unexplained.worst", rank=entry.rank, count=ranks) if ranks > 1 else str(entry.rank)),
                line(f"{t.trail(entry.path)} ", Code(entry.path, "faint")),
                line(t.time(entry.ns)),
                line(t.share(entry.share_of_step)),
            )
        )
        for entry, ranks in entries[:rows]
    ]
    note = Paragraph(line(t("unexplained.note", limit=limit)), "lead")
    table = Table(columns, tuple(body), "narrow")
    return Section("unexplained", t("unexplained.title"), (note, table, *cut(len(entries), rows, t)))
