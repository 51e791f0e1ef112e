"""Ranks over one step on one clock, and the passes over the stages of a pipeline."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from statistics import fmean

from advisor_core.api.renderers import PipelinePasses, SideBySide
from reports.blocks import (
    Block,
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
    Words,
    line,
)
from reports.labels import Labels
from reports.outline import Outline

PARTS = 4
"""Columns of what takes most of the step."""


def side_by_side(outline: Outline, t: Labels) -> Iterator[Section]:
    """Nothing where no two ranks were read in depth."""
    blocks: list[Block] = []
    for shown in outline.result.side_by_side:
        blocks += _ranks(shown, t)
    for pipeline in outline.result.pipelines:
        blocks += _pipeline(pipeline, t)
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
        told = numbers if pipeline.micro_batches is not None else ()
        rows.append(Timed(t("side.stage", stage=stage.stage, rank=stage.rank), spans, told))
    return Times(
        end=max(end for row in rows for _, end, _ in row.spans),
        rows=tuple(rows),
        labels={kind: t(f"side.{kind}") for kind in kinds.values()},
    )


def _ranks(shown: SideBySide, t: Labels) -> Iterator[Block]:
    yield from _role(shown.role, t)
    which = t("side.whole") if shown.step is None else t("word.step", step=shown.step)
    title = t("side.ranks", step=which, count=len(shown.lanes), all=shown.ranks)
    yield Figure(rank_times(shown, t), title)
    yield Paragraph(line(_clocks(shown, t)), "small")
    yield Details(line(t("side.parts")), (_rank_table(shown, t),))


def _clocks(shown: SideBySide, t: Labels) -> str:
    return t(f"side.clocks.{shown.clocks}", shift=t.time(max(abs(lane.ahead_ns) for lane in shown.lanes)))


def _rank_table(shown: SideBySide, t: Labels) -> Table:
    sums = [_sums(lane.intervals) for lane in shown.lanes]
    totals = sum(sums, Counter())
    keys = [key for key, _ in sorted(totals.items(), key=lambda item: (-item[1], item[0]))[:PARTS]]
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


def _sums(intervals: list[tuple[int, int, str]]) -> Counter[str]:
    sums: Counter[str] = Counter()
    for start, end, key in intervals:
        sums[key] += end - start
    return sums


def _pipeline(pipeline: PipelinePasses, t: Labels) -> Iterator[Block]:
    yield from _role(pipeline.role, t)
    which = t("side.whole") if pipeline.step is None else t("word.step", step=pipeline.step)
    yield Figure(pass_times(pipeline, t), t("side.stages", step=which))
    told = [t("side.clocks.none")] if pipeline.clocks == "none" else []
    if len(pipeline.stages) < pipeline.of_stages:
        told.append(t("side.some_stages", count=len(pipeline.stages), all=pipeline.of_stages))
    known = pipeline.micro_batches
    told.append(t("side.uncounted") if known is None else t("side.numbers", count=known))
    yield Paragraph(line(" ".join(told)), "small")
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


def _role(role: str | None, t: Labels) -> Iterator[Block]:
    if role is not None:
        yield Paragraph(line(Words(t("word.role", role=role), "strong")), "bare")
