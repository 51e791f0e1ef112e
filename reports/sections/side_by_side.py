"""Ranks over one step on one clock, and the passes over the stages of a pipeline."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from statistics import fmean

from advisor_core.api.renderers import Iteration, PipelinePasses, SideBySide
from reports.blocks import (
    Block,
    Code,
    Column,
    Details,
    Figure,
    Line,
    Paragraph,
    Row,
    Section,
    Table,
    Timed,
    Times,
    line,
)
from reports.labels import Labels
from reports.outline import Outline
from reports.view_tables import longest_first, time_by_key

LANES = 8
"""Ranks that roles are drawn of, as many as a timeline shows."""

PARTS = 4
"""Columns of what takes most of the step."""


def side_by_side(outline: Outline, t: Labels) -> Iterator[Section]:
    """Nothing where no two ranks were read in depth."""
    iteration = outline.result.iteration
    blocks = [] if iteration is None else list(_roles(iteration, outline, t))
    for shown in outline.result.side_by_side:
        blocks += _folded(shown.role, _ranks(shown, t), t)
    for pipeline in outline.result.pipelines:
        blocks += _folded(pipeline.role, _pipeline(pipeline, t), t)
    if blocks:
        yield Section("side_by_side", t("side.title"), tuple(blocks))


def rank_times(shown: SideBySide, t: Labels) -> Times:
    """The ranks as drawn."""
    return Times(
        end=max(lane.end_ns for lane in shown.lanes),
        rows=tuple(
            Timed(
                t("word.rank", rank=lane.rank)
                if lane.stage is None
                else t("side.stage", stage=lane.stage, rank=lane.rank),
                tuple(lane.intervals),
            )
            for lane in shown.lanes
        ),
        labels={},
    )


def pass_times(pipeline: PipelinePasses, t: Labels) -> Times:
    """The passes as drawn, from the first of them."""
    kinds = {False: "forward", True: "backward"}
    first = min(one.start_ns for stage in pipeline.stages for one in stage.passes)
    rows = []
    for stage in pipeline.stages:
        spans = tuple((p.start_ns - first, p.end_ns - first, kinds[p.backward]) for p in stage.passes)
        numbers = tuple(str(one.number) for one in stage.passes)
        texts = numbers if pipeline.micro_batches is not None else ()
        rows.append(Timed(t("side.stage", stage=stage.stage, rank=stage.rank), spans, texts))
    return Times(
        end=max(end for row in rows for _, end, _ in row.spans),
        rows=tuple(rows),
        labels={kind: t(f"side.{kind}") for kind in kinds.values()},
    )


def role_times(iteration: Iteration, ranks: Collection[int], t: Labels) -> Times:
    """The roles of these ranks as drawn."""
    rows: dict[int, list[tuple[int, int, str]]] = {rank: [] for rank in sorted(ranks)}
    for span in iteration.spans:
        if span.rank in rows:
            rows[span.rank].append((span.start_ns, span.end_ns, span.role))
    return Times(
        end=max(span.end_ns for span in iteration.spans),
        rows=tuple(Timed(t("word.rank", rank=rank), tuple(spans)) for rank, spans in rows.items()),
        labels={span.role: span.role for span in iteration.spans},
    )


def _roles(iteration: Iteration, outline: Outline, t: Labels) -> Iterator[Block]:
    if iteration.apart_ns is not None:
        yield Paragraph(line(t("side.roles_apart", time=t.time(iteration.apart_ns))))
        return
    ranks = _ranks_of_roles(iteration, outline)
    recorded = len({span.rank for span in iteration.spans})
    yield Figure(role_times(iteration, ranks, t), t("side.roles", count=len(ranks), all=recorded))
    yield Paragraph(line(t("side.roles_clock")), "small")
    heads = ("after", "before", "no_role", "mean_gap", "last_rank")
    columns = tuple(Column(t(f"side.{head}"), numeric=head not in ("after", "before")) for head in heads)
    rows = tuple(
        Row(
            (
                line(Code(gap.after)),
                line(Code(gap.before)),
                line(t.time(gap.ns)),
                line("–" if gap.mean_ns is None else t.time(gap.mean_ns)),
                line(str(gap.last_rank)),
            )
        )
        for gap in iteration.gaps
    )
    yield from (Table(columns, rows), Paragraph(line(t("side.gaps")), "small"))


def _ranks_of_roles(iteration: Iteration, outline: Outline) -> list[int]:
    """Those that end a role last, and have most and least to do in it, before all others."""
    phases = outline.result.phase_summaries
    ends = (end.rank for phase in phases for end in (phase.longest, phase.shortest) if end is not None)
    recorded = {span.rank for span in iteration.spans}
    wanted = dict.fromkeys([*(gap.last_rank for gap in iteration.gaps), *ends, *sorted(recorded)])
    return [rank for rank in wanted if rank in recorded][:LANES]


def _folded(role: str | None, blocks: Iterator[Block], t: Labels) -> Iterator[Block]:
    """The ranks of one role of several, folded away."""
    if role is None:
        yield from blocks
    else:
        yield Details(line(t("word.role", role=role)), tuple(blocks), extra=True)


def _ranks(shown: SideBySide, t: Labels) -> Iterator[Block]:
    title = t("side.ranks", step=_step(shown.step, t), count=len(shown.lanes), all=shown.ranks)
    yield Figure(rank_times(shown, t), title)
    yield Paragraph(line(_clocks(shown, t)), "small")
    yield Details(line(t("side.parts")), (_rank_table(shown, t),))


def _step(step: int | None, t: Labels) -> str:
    return t("side.whole") if step is None else t("word.step", step=step)


def _clocks(shown: SideBySide, t: Labels) -> str:
    return t(f"side.clocks.{shown.clocks}", shift=t.time(max(abs(lane.ahead_ns) for lane in shown.lanes)))


def _rank_table(shown: SideBySide, t: Labels) -> Table:
    sums = [time_by_key(lane.intervals) for lane in shown.lanes]
    keys = [key for key, _ in longest_first(sum(sums, Counter()))[:PARTS]]
    heads = ("side.starts", "ranks.column.step", "side.shift")
    columns = (
        Column(t("inputs.rank"), numeric=True),
        Column(t("side.why"), style="long"),
        *(Column(t(head), numeric=True) for head in heads),
        *(Column(t.trail(key), numeric=True) for key in keys),
    )
    rows = []
    for lane, own in zip(shown.lanes, sums, strict=True):
        why = t.join([t(f"side.reason.{reason}") for reason in lane.reasons]) or "–"
        shift = t.time(lane.ahead_ns) if shown.clocks == "calls" else "–"
        times = (t.time(lane.start_ns), t.time(lane.end_ns - lane.start_ns), shift, *(t.time(own[key]) for key in keys))
        rows.append(Row((line(str(lane.rank)), line(why), *(line(time) for time in times))))
    return Table(columns, tuple(rows))


def _pipeline(pipeline: PipelinePasses, t: Labels) -> Iterator[Block]:
    yield Figure(pass_times(pipeline, t), t("side.stages", step=_step(pipeline.step, t)))
    notes = [t("side.clocks.none")] if pipeline.clocks == "none" else []
    if len(pipeline.stages) < pipeline.of_stages:
        notes.append(t("side.some_stages", count=len(pipeline.stages), all=pipeline.of_stages))
    count = pipeline.micro_batches
    notes.append(t("side.uncounted") if count is None else t("side.numbers", count=count))
    yield Paragraph(line(" ".join(notes)), "small")
    yield _pass_table(pipeline, t)


def _pass_table(pipeline: PipelinePasses, t: Labels) -> Table:
    whole = [one for stage in pipeline.stages for one in stage.passes]
    length = max(one.end_ns for one in whole) - min(one.start_ns for one in whole)
    heads = ("counts", "mean_forward", "mean_backward", "between", "of_step")
    columns = (
        Column(t("ranks.column.stage"), numeric=True),
        Column(t("inputs.rank"), numeric=True),
        *(Column(t(f"side.{head}"), numeric=head != "counts") for head in heads),
    )
    rows = []
    for stage in pipeline.stages:
        times = [[one.end_ns - one.start_ns for one in stage.passes if one.backward is kind] for kind in (False, True)]
        cells: tuple[Line, ...] = (
            line(str(stage.stage)),
            line(str(stage.rank)),
            line(t("side.count", forward=len(times[0]), backward=len(times[1]))),
            *(line(t.time(fmean(own)) if own else "–") for own in times),
            line(t.time(stage.between_ns)),
            line(t.share(stage.between_ns / max(1, length))),
        )
        rows.append(Row(cells))
    return Table(columns, tuple(rows))
