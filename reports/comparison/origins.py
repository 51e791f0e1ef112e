"""Two devices: how much work each does, where the difference comes from, and what their kernels compute."""

from __future__ import annotations

from collections.abc import Iterator

from advisor_core.api.renderers import Amounts, Comparison, ComputedDifference, Division, Origin, PassDifference
from reports.blocks import (
    Block,
    Code,
    Column,
    Figure,
    Items,
    Line,
    Paragraph,
    Row,
    Section,
    Swatch,
    Table,
    Waterfall,
    WaterfallPart,
    Words,
    line,
)
from reports.comparison.words import number, signed
from reports.labels import Labels
from reports.sections.grid import cut

MATTERS = 0.01
"""Share of the longer step from which an origin stands by itself, as `advisor_core.compare.causes.MATTERS`."""

ROWS = 60
SHOWN = 0.001
"""Share of all kernel time from which what kernels compute has a row."""

_COMPUTE = "compute/"
_NAMED = ("computation", "operation")


def origin_name(path: str, t: Labels) -> str:
    """An origin in words: what kernels compute, else an entry of the ledger."""
    if not path.startswith(_COMPUTE):
        return t.trail(path)
    kind, _, name = path.removeprefix(_COMPUTE).partition("/")
    return computed_name(kind, name, t)


def computed_name(kind: str, name: str, t: Labels) -> str:
    """A kind of computation, or a formula or an operation by its name."""
    if kind not in _NAMED or not name:
        return t(f"compare.computed.{kind}")
    for key in (f"compare.formula.{name}", f"path.compute/{name}"):
        if key in t:
            return t(key)
    return name


def apart(comparison: Comparison) -> tuple[list[Origin], int]:
    """The origins that stand by themselves, and the sum of those that are too small."""
    verdict = comparison.verdict
    ends = _ends(comparison)
    least = MATTERS * max(ends or (verdict.before_ns, verdict.after_ns))
    shown = [origin for origin in comparison.origins if abs(origin.difference_ns) >= least]
    return shown, sum(origin.difference_ns for origin in comparison.origins) - sum(one.difference_ns for one in shown)


def _ends(comparison: Comparison) -> tuple[int, int] | None:
    """The times that the origins lead from and to: of the steps, or, where these are not compared, of the kernels."""
    if comparison.ledger:
        return comparison.verdict.before_ns, comparison.verdict.after_ns
    return None if comparison.amounts is None else comparison.amounts.kernel_ns


def origin_waterfall(comparison: Comparison, t: Labels) -> Waterfall | None:
    """The difference in its origins; ``None`` where there is none."""
    ends = _ends(comparison)
    if ends is None or not any(origin.difference_ns for origin in comparison.origins):
        return None
    shown, rest = apart(comparison)
    parts = tuple(WaterfallPart(origin_name(one.path, t), one.path, one.difference_ns) for one in shown)
    if rest:
        parts = (*parts, WaterfallPart(t("compare.rest"), "", rest))
    kernels = "" if comparison.ledger else "_kernels"
    return Waterfall(*ends, (t(f"compare.before{kernels}"), t(f"compare.after{kernels}")), parts)


def amounts(comparison: Comparison, t: Labels) -> Iterator[Block]:
    """How much work both sides do, and how well, before any difference is told."""
    if comparison.amounts is not None:
        told = tuple(line(text) for text in amount_lines(comparison.amounts, t))
        yield Section("amounts", t("compare.amounts_title"), (Items(told, "plain"),))


def amount_lines(told: Amounts, t: Labels) -> Iterator[str]:
    """The amounts, a sentence each."""
    if told.same is None:
        yield t("compare.amounts.unknown")
    elif told.same and told.shared is not None:
        yield t("compare.amounts.same", shared=t.share(told.shared))
    else:
        shared = "" if told.shared is None else t("compare.amounts.shared", shared=t.share(told.shared))
        yield t("compare.amounts.other", shared=shared)
    for what, (old, new) in told.samples.items():
        counts = {"before": number(old), "after": number(new), "what": t(f"compare.sample.{what}")}
        if what in told.ns_per_sample:
            times = [t.time(ns) for ns in told.ns_per_sample[what]]
            yield t("compare.amounts.samples_timed", **counts, one=times[0], other=times[1])
        else:
            yield t("compare.amounts.samples", **counts)
    if told.flops is not None:
        amounts_done = {
            side: f"{flops / 1e12:.3g}" for side, flops in zip(("before", "after"), told.flops, strict=True)
        }
        per = told.ns_per_tflop or told.kernel_ns_per_tflop
        if per is not None and not told.same:
            key = "compare.amounts.flops_timed" if told.ns_per_tflop else "compare.amounts.flops_kernels"
            yield t(key, **amounts_done, one=t.time(per[0]), other=t.time(per[1]))
        else:
            yield t("compare.amounts.flops", **amounts_done)
    for name, pair in (("mfu", told.mfu), ("bandwidth", told.bandwidth)):
        if any(value is not None for value in pair):
            shares = [t("word.unknown") if value is None else t.share(value) for value in pair]
            yield t(f"compare.amounts.{name}", before=shares[0], after=shares[1])


def origins(comparison: Comparison, t: Labels) -> Iterator[Block]:
    """Where the difference comes from: a waterfall, and each part divided."""
    if (drawn := origin_waterfall(comparison, t)) is None:
        return
    shown, rest = apart(comparison)
    rows = [_origin(one, t) for one in shown]
    if rest:
        rows.append(Row((line(t("compare.rest")), *_blank(3), line(signed(rest, t)), *_blank(4))))
    total = drawn.after_ns - drawn.before_ns
    step = t("compare.step" if comparison.ledger else "compare.kernels")
    ends = (line(t.time(drawn.before_ns)), line(t.time(drawn.after_ns)))
    rows.append(Row((line(step), line("–"), *ends, line(signed(total, t)), *_blank(4)), total=True))
    columns = (Column(t("compare.origin"), style="long"), *_columns(t))
    blocks: tuple[Block, ...] = (Figure(drawn, t("compare.waterfall")), Table(columns, tuple(rows)), *_notes(t))
    yield Section("origins", t("compare.origins"), blocks)


def _notes(t: Labels) -> Iterator[Paragraph]:
    for key in ("compare.origins_note", "compare.origins_chip", "compare.origins_names"):
        yield Paragraph(line(t(key)), "small")


def _columns(t: Labels) -> tuple[Column, ...]:
    group = t("compare.of_it")
    return (
        Column(t("compare.kernels_head"), numeric=True),
        *(Column(t(f"compare.{name}"), numeric=True) for name in ("before", "after", "difference")),
        *(Column(t(f"compare.of.{name}"), numeric=True, group=group) for name in ("chip", "work", "above", "untold")),
    )


def _blank(count: int) -> tuple[Line, ...]:
    return (line("–"),) * count


def _origin(origin: Origin, t: Labels) -> Row:
    name = line(Swatch(origin.path.partition("/")[0]), origin_name(origin.path, t))
    return Row((name, *_cells(origin, origin.division, t)))


def _cells(told: Origin | ComputedDifference, division: Division | None, t: Labels) -> tuple[Line, ...]:
    difference = line(Words(signed(told.difference_ns, t), "strong"))
    if division is None:
        return line("–"), line(t.time(told.before_ns)), line(t.time(told.after_ns)), difference, *_blank(4)
    parts = (division.chip_ns, division.work_ns, division.above_ns, division.untold_ns)
    return (
        line(kernels(division)),
        _side(told.before_ns, division.least_before_ns, t),
        _side(told.after_ns, division.least_after_ns, t),
        difference,
        *(line(signed(ns, t) if ns else "–") for ns in parts),
    )


def kernels(division: Division) -> str:
    """How many kernels each side has for it."""
    return _both(division.kernels_before, division.kernels_after)


def _both(before: float, after: float) -> str:
    """Two counts, once where they are the same."""
    one, other = number(before), number(after)
    return one if one == other else f"{one} → {other}"


def _side(ns: int, least: int | None, t: Labels) -> Line:
    """A time, and which part of it the bound of the chip is."""
    if not ns:
        return line("–")
    reached = None if least is None else Words(f" ({t.share(least / ns)})", "faint")
    return line(t.time(ns), reached)


def division_words(origin: Origin, t: Labels) -> str:
    """An origin in one line: times, kernels, and what the difference is made of, largest first."""
    division = origin.division
    said = t(
        "compare.origin.times",
        name=origin_name(origin.path, t),
        before=t.time(origin.before_ns),
        after=t.time(origin.after_ns),
    )
    if division is None:
        return said
    parts = {
        "chip": division.chip_ns,
        "work": division.work_ns,
        "above": division.above_ns,
        "untold": division.untold_ns,
    }
    named = sorted((part for part in parts.items() if part[1]), key=lambda part: -abs(part[1]))
    told = [t(f"compare.origin.{name}", time=signed(ns, t)) for name, ns in named]
    return t("word.clause").join([said, t("compare.origin.kernels", kernels=kernels(division)), *told])


def computed(comparison: Comparison, t: Labels) -> Iterator[Section]:
    """What the kernels of both sides compute, by kind and size."""
    least = SHOWN * sum(max(row.before_ns, row.after_ns) for row in comparison.computed)
    rows = [row for row in comparison.computed if max(row.before_ns, row.after_ns) >= least]
    if not rows:
        return
    heads = (Column(t("compare.computed_head"), style="long"), Column(t("compare.sizes"), style="long"), *_columns(t))
    table = Table(heads, tuple(_computed(row, t) for row in rows[:ROWS]))
    note = Paragraph(line(t("compare.computed_note")), "small")
    yield Section("computed", t("compare.computed_title"), (note, table, *cut(len(rows), ROWS, t)))


def passes(comparison: Comparison, t: Labels) -> Iterator[Section]:
    """The kernels of both sides by pass and part of the model."""
    if not comparison.passes:
        return
    heads = (
        Column(t("compare.pass")),
        Column(t("compare.part"), style="long"),
        Column(t("compare.kernels_head"), numeric=True),
        *(Column(t(f"compare.{name}"), numeric=True) for name in ("before", "after", "difference")),
    )
    rows = tuple(_pass(row, t) for row in comparison.passes[:ROWS])
    note = Paragraph(line(t("compare.passes_note")), "small")
    yield Section(
        "passes", t("compare.passes_title"), (note, Table(heads, rows), *cut(len(comparison.passes), ROWS, t))
    )


def _pass(row: PassDifference, t: Labels) -> Row:
    role = line(Code(row.role), " ") if row.role else ()
    name = t(f"compare.pass.{row.in_pass}") if row.in_pass else t("compare.unlisted")
    block = t(f"compare.block.{row.block}") if f"compare.block.{row.block}" in t else row.block or "–"
    return Row(
        (
            (*role, *line(name)),
            line(block),
            line(_both(row.kernels_before, row.kernels_after)),
            *(line(t.time(ns) if ns else "–") for ns in (row.before_ns, row.after_ns)),
            line(Words(signed(row.difference_ns, t), "strong")),
        )
    )


def _computed(row: ComputedDifference, t: Labels) -> Row:
    role = line(Code(row.role), " ") if row.role else ()
    before, after = row.dtypes
    dtype = before if before == after or not after else after if not before else f"{before} → {after}"
    sized = row.kind not in _NAMED
    name = computed_name(row.kind, "" if sized else row.what or "", t)
    size = line(t("compare.unlisted")) if row.what is None else line("–")
    if sized and row.what is not None:
        size = line(Code(row.what) if row.what else t("compare.size_untold"), f" {dtype}" if dtype else None)
    return Row(((*role, *line(name)), size, *_cells(row, row.division, t)))
