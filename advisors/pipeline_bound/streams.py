"""PB020, GPB002: streams that compute at once, and what the kernels beside one another take longer for it.

Kernels of several streams share cores, caches and memory. Whether running them at once wins is told by kernels of one
operator with the same shapes that ran in both states: alone, and beside kernels of another stream. What the
streams win is the time that their kernels would take one after the other, less what the kernels are slower.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pandas as pd

from advisor_core.api import Text
from advisor_core.api.advisors import Column, Drawing, Metric, Observations, Params, Reference, advisor, drawing
from advisor_core.api.facts import PROFILE, Facts, Layer, NotApplicable, Shortening, aggregated, fact, timeline, union
from advisor_core.api.renderers import Cell, View, format_quantity
from advisors.columns import STEP_NS
from advisors.measuring import LARGEST, records, row, share
from advisors.messages import message
from advisors.rank_tables import known, rank_table
from advisors.step_kernels import StepKernels, kernel_rows, step_kernels

if TYPE_CHECKING:
    import numpy.typing as npt

Ints: TypeAlias = "npt.NDArray[np.int64]"
Floats: TypeAlias = "npt.NDArray[np.float64]"
Bools: TypeAlias = "npt.NDArray[np.bool_]"

MOSTLY = 0.5
"""A kernel beside which another stream computes for this share of its time or more ran beside it. Our choice."""
LEAST = 3
"""Least number of kernels in each of the two states: the median of fewer is that of a single outlier. Our choice."""
KNOWN = 0.5
"""Of the time that kernels run beside another stream: the share of those with a pair from which the whole is judged.
Our choice: what is measured has to be the larger part."""
ALIKE = 0.8
"""Of the kernel time of a stream: the share of operators and shapes that another stream runs as often, from which both
do the same work. Our choice: two micro-batches of one size differ in a few kernels at begin and end."""
A_SIDE = 0.25
"""Of the kernel time of the busiest stream: the share from which another one can be a micro-batch. Our choice."""
WORTH_A_LOOK = 0.001
"""Of the step: several streams at once for as long; and ten times that, of the kernel time: other streams than the
busiest. Below both there is no table: a stream for the random bits of a dropout is in most recordings. Our choice."""
SHOWN = 12
"""Streams of the table, those with most kernel time; the title says of how many."""


@dataclass(frozen=True)
class Pairs:
    """``compared``: a row for each kind of kernel that ran alone and beside another stream, by ``kind``; ``apart``: the
    two states differ by more than durations spread. ``kind``: of each kernel, -1 where shapes are not known.
    ``slower``: kernels beside another stream that have a pair."""

    compared: pd.DataFrame
    kind: Ints
    slower: Bools

    def longer(self, frame: pd.DataFrame) -> Floats:
        """By how much each of the slower kernels took longer than the median of its kind alone, ns; 0 where the states
        do not differ."""
        own = self.compared.reindex(self.kind[self.slower])
        longer = frame["duration_ns"].to_numpy(dtype=np.float64)[self.slower] - own["alone_ns"].to_numpy()
        return np.where(own["apart"].to_numpy(dtype=np.bool_), longer, 0.0)


@dataclass(frozen=True)
class ComputingStreams:
    """``at_once``: time in which kernels of two streams or more run. ``beside_ns``: how much of each of the step's
    kernels (rows of ``step_kernels``) lies in it. ``summed_ns``: kernel time of all streams, each counted once;
    ``covered_ns``: time in which any of them computes. ``twins``: two streams that do the same work; empty: none."""

    at_once: Layer
    beside_ns: Ints
    summed_ns: int
    covered_ns: int
    pairs: Pairs
    twins: tuple[int, ...]

    @property
    def at_once_saved_ns(self) -> int:
        """The time that the kernels would take longer one after the other, each as long as recorded."""
        return self.summed_ns - self.covered_ns

    @property
    def known_share(self) -> float:
        """Of the time beside another stream, that of kernels with a pair."""
        return share(float(self.beside_ns[self.pairs.slower].sum()), float(self.beside_ns.sum()))


@fact("computing_streams", needs=(step_kernels, PROFILE))
def computing_streams(facts: Facts) -> ComputingStreams:
    """The kernels that run beside those of another stream, and those of their kind that ran alone as well."""
    kernels = facts[step_kernels]
    frame = kernels.frame
    if frame["stream"].nunique() < 2:
        raise NotApplicable(message("pipeline_bound.one_stream"))
    starts, ends = busy_of_streams(frame)
    at_once = several_at_once(starts, ends)
    begin, end = frame["start_ns"].to_numpy(), frame["end_ns"].to_numpy()
    beside = at_once.measure(end) - at_once.measure(begin)
    return ComputingStreams(
        at_once,
        beside,
        int((ends - starts).sum()),
        union(starts, ends).total(),
        pairs_of(frame, beside, by_name=not facts[PROFILE].vocabulary.core_counters),
        _twins(frame),
    )


def busy_of_streams(frame: pd.DataFrame) -> tuple[Ints, Ints]:
    """The times in which each stream computes: the kernels without what an earlier one of the same stream covers
    already, as some devices begin a kernel before the one in front of it has ended. ``frame``: in order of stream and
    start."""
    stream, starts, ends = (frame[name].to_numpy(dtype=np.int64) for name in ("stream", "start_ns", "end_ns"))
    reach = pd.Series(ends).groupby(stream).cummax().to_numpy()
    first = np.concatenate([[True], stream[1:] != stream[:-1]])[: len(stream)]
    before = np.where(first, np.iinfo(np.int64).min, np.concatenate([[0], reach[:-1]])[: len(stream)])
    begin = np.maximum(starts, before)
    keep = ends > begin
    return begin[keep], ends[keep]


def several_at_once(starts: Ints, ends: Ints) -> Layer:
    """The time that two or more of the intervals cover."""
    times = np.concatenate([starts, ends])
    change = np.repeat(np.array([1, -1]), [len(starts), len(ends)])
    order = np.lexsort((change, times))
    times, running = times[order], np.cumsum(change[order])
    several = np.flatnonzero(running[:-1] >= 2)
    return union(times[several], times[several + 1])


def pairs_of(frame: pd.DataFrame, beside_ns: Ints, *, by_name: bool) -> Pairs:
    """Kernels of one operator with the same recorded shapes, alone and beside another stream. The states differ where
    three quarters of one take longer than three quarters of the other. ``by_name``: an operator has several kernels,
    which their names tell apart, as on GPUs; names of an Ascend export can be those of the nodes of a graph."""
    alike = ["signature", "name"] if by_name else ["signature"]
    shaped = (frame["input_shapes"] != "").to_numpy()
    kind = frame.groupby(alike, observed=True, sort=False).ngroup().to_numpy().astype(np.int64)
    kind = np.where(shaped, kind, -1)
    took = frame["duration_ns"].to_numpy(dtype=np.int64)
    mostly = shaped & (beside_ns >= MOSTLY * np.maximum(took, 1))
    alone = shaped & (beside_ns == 0)
    named = pd.DataFrame({"kind": kind, "type": frame["type"].astype(str), "input_shapes": frame["input_shapes"]})
    named["input_shapes"] = named["input_shapes"].astype(str)
    found = aggregated(
        named.assign(beside=mostly, alone=alone)[shaped],
        "kind",
        operator=("type", "first"),
        input_shapes=("input_shapes", "first"),
        beside_streams=("beside", "sum"),
        without_streams=("alone", "sum"),
    ).set_index("kind")
    found = found[(found["beside_streams"] >= LEAST) & (found["without_streams"] >= LEAST)].copy()
    for name, chosen in (("beside", mostly), ("alone", alone)):
        times = pd.Series(took[chosen]).groupby(kind[chosen])
        for column, part in ((f"{name}_ns", 0.5), (f"{name}_low", 0.25), (f"{name}_high", 0.75)):
            found[column] = times.quantile(part).reindex(found.index)
    found["apart"] = (found["beside_low"] > found["alone_high"]) | (found["beside_high"] < found["alone_low"])
    return Pairs(found, kind, mostly & np.isin(kind, found.index.to_numpy()))


def _twins(frame: pd.DataFrame) -> tuple[int, ...]:
    """The two busiest streams where both run the same operators on the same shapes, as two micro-batches do."""
    shaped = frame[frame["input_shapes"] != ""]
    times = shaped.groupby("stream")["duration_ns"].sum().sort_values(ascending=False, kind="stable")
    if len(times) < 2 or times.iloc[1] < A_SIDE * times.iloc[0]:
        return ()
    first, second = (int(stream) for stream in times.index[:2])
    counts = [shaped.loc[shaped["stream"] == stream, "signature"].value_counts() for stream in (first, second)]
    as_often = np.minimum(*(count.reindex(counts[1].index, fill_value=0).to_numpy() for count in counts))
    own = shaped[shaped["stream"] == second].groupby("signature")["duration_ns"].mean().reindex(counts[1].index)
    alike = float((own.to_numpy() * as_often).sum()) / float(times.iloc[1])
    return (first, second) if alike >= ALIKE else ()


@advisor(
    "pipeline_bound.streams",
    needs=(computing_streams, step_kernels),
    columns=(
        STEP_NS,
        Column("streams", "int", "count", "streams with kernels that compute", zh="流数"),
        Column("at_once_ns", "float", "ns", "two streams or more compute, per step", zh="同时计算"),
        Column("at_once_share", "float", "ratio", "at_once_ns over wall time", zh="同时计算占比"),
        Column(
            "at_once_saved_ns",
            "float",
            "ns",
            "what the kernels would take longer one after the other, each as long as recorded, per step",
            zh="并行省时",
        ),
        Column("known_share", "float", "ratio", "of the kernel time beside another stream: with a pair", zh="可比占比"),
        Column(
            "slowdown",
            "float",
            "ratio",
            "how much longer kernels with a pair take beside another stream, of their time alone",
            zh="变慢",
        ),
        Column("excess_ns", "float", "ns", "what these take longer, per step", zh="多出"),
        Column(
            "won_ns",
            "float",
            "ns",
            "at_once_saved_ns without what kernels take longer, those without a pair at the rate of the others; "
            "unknown where too little of it has a pair",
            zh="净收益",
        ),
        Column("lost_ns", "float", "ns", "what the streams lose: won_ns below 0, else 0; unknown as it is", zh="损失"),
        Column("lost_share", "float", "ratio", "lost_ns over wall time", zh="损失占比"),
        Column("example", "text", "", "operator and shapes of those with most of excess_ns", zh="示例"),
    ),
    evidence=(
        Column("operator", "text", "", "type of the kernels", zh="算子"),
        Column("input_shapes", "text", "", "shapes of its inputs", zh="输入 shape"),
        Column("beside_streams", "int", "count", "kernels beside another stream", zh="与其他流并行的 kernel 数"),
        Column("without_streams", "int", "count", "kernels alone", zh="单独执行的 kernel 数"),
        Column("beside_ns", "float", "ns", "median beside another stream", zh="并行时中位数"),
        Column("alone_ns", "float", "ns", "median alone", zh="单独执行中位数"),
        Column("excess", "float", "ns", "what all of them take longer", zh="多出"),
    ),
)
def streams(facts: Facts, params: Params) -> Observations:
    """The same kernels alone and beside those of another stream: whether it pays that streams compute at once."""
    found, kernels = facts[computing_streams], facts[step_kernels]
    if not found.at_once_saved_ns:
        raise NotApplicable(message("pipeline_bound.never_at_once"))
    told = _Told(found, kernels)
    compared, slower = told.compared, kernels.frame[found.pairs.slower]
    won = told.won_ns
    lost = max(-won, 0.0) if np.isfinite(won) else np.nan
    table = row(
        step_ns=kernels.wall_ns,
        streams=int(kernels.frame["stream"].nunique()),
        at_once_ns=found.at_once.total() / kernels.steps,
        at_once_share=found.at_once.total() / kernels.steps / kernels.wall_ns,
        at_once_saved_ns=found.at_once_saved_ns / kernels.steps,
        known_share=found.known_share,
        slowdown=told.slowdown,
        excess_ns=told.excess_ns / kernels.steps,
        won_ns=won / kernels.steps,
        lost_ns=lost / kernels.steps,
        lost_share=lost / kernels.steps / kernels.wall_ns,
        example=" ".join(compared[["operator", "input_shapes"]].iloc[0]) if len(compared) else "",
    )

    def evidence(number: int) -> Sequence[Reference]:
        columns = ("operator", "input_shapes", "beside_streams", "without_streams", "beside_ns", "alone_ns", "excess")
        if compared.empty:
            return []
        return [
            Metric(
                message("pipeline_bound.stream_pairs"), records(compared, LARGEST, **{name: name for name in columns})
            ),
            kernel_rows(message("pipeline_bound.beside_rows"), slower, ("type", "start_ns", "duration_ns", "stream")),
        ]

    def cure(number: int) -> Shortening:
        return kernels.shorter(slower)

    return Observations(table, evidence, cure=cure)


class _Told:
    """The pairs together. ``compared``: with ``excess``, the kinds that lose most first. ``won_ns``: what is
    hidden less what all kernels beside another stream take longer, those without a pair at the rate of the others."""

    def __init__(self, found: ComputingStreams, kernels: StepKernels) -> None:
        pairs = found.pairs
        longer = pairs.longer(kernels.frame)
        by_kind = pd.Series(longer).groupby(pairs.kind[pairs.slower]).sum()
        compared = pairs.compared.assign(excess=by_kind.reindex(pairs.compared.index))
        self.compared = compared.sort_values("excess", ascending=False, kind="stable")
        took = float(kernels.frame["duration_ns"].to_numpy()[pairs.slower].sum())
        judged = found.known_share >= KNOWN
        self.excess_ns = float(longer.sum()) if len(longer) else np.nan
        self.slowdown = share(self.excess_ns, took - self.excess_ns)
        self.won_ns = found.at_once_saved_ns - self.excess_ns / found.known_share if judged else np.nan


_COLUMNS = (
    ("pipeline_bound.stream", ""),
    ("pipeline_bound.stream_kernels", ""),
    ("pipeline_bound.stream_time", "ns"),
    ("pipeline_bound.stream_beside", "ns"),
    ("pipeline_bound.stream_communication", "ns"),
    ("pipeline_bound.stream_paired", "ratio"),
    ("pipeline_bound.stream_longer", "ratio"),
)


@drawing("pipeline_bound.streams", needs=(computing_streams, step_kernels, timeline, PROFILE))
def stream_table(facts: Facts) -> list[View]:
    """Streams that compute: how long each runs beside another one and beside communication, and whether it pays."""
    found, kernels, rank = facts[computing_streams], facts[step_kernels], facts[PROFILE].rank
    frame = kernels.frame
    by_stream = frame.groupby("stream")["duration_ns"].sum()
    others = 1 - by_stream.max() / max(by_stream.sum(), 1)
    at_once = found.at_once.total() / kernels.steps / kernels.wall_ns
    if at_once < WORTH_A_LOOK and others < 10 * WORTH_A_LOOK:
        return []
    told = _Told(found, kernels)
    talking = facts[timeline].communication
    starts, ends = frame["start_ns"].to_numpy(), frame["end_ns"].to_numpy()
    longer = np.zeros(len(frame))
    longer[found.pairs.slower] = found.pairs.longer(frame)
    each = pd.DataFrame(
        {
            "took": frame["duration_ns"].to_numpy(),
            "beside": found.beside_ns,
            "talking": talking.measure(ends) - talking.measure(starts),
            "paired": np.where(found.pairs.slower, found.beside_ns, 0),
            "judged": np.where(found.pairs.slower, frame["duration_ns"].to_numpy(), 0),
            "longer": longer,
        }
    )
    sums = (
        each.assign(stream=frame["stream"].to_numpy(), kernels=1)
        .groupby("stream", as_index=False)
        .sum()
        .sort_values("took", ascending=False, kind="stable")
    )
    rows = [_stream_row(line, kernels.steps) for line in sums.head(SHOWN).itertuples()]
    title = message(
        "pipeline_bound.view.streams",
        rank=rank,
        shown=len(rows),
        count=len(sums),
        at_once=_percent(at_once),
        verdict=_verdict(found, told, kernels),
    )
    return [rank_table("streams", title, rank, _COLUMNS, rows)]


def _stream_row(line: object, steps: int) -> list[Cell]:
    stream, count, took, beside, talking, paired, judged, longer = (
        float(getattr(line, name))
        for name in ("stream", "kernels", "took", "beside", "talking", "paired", "judged", "longer")
    )
    return [
        str(int(stream)),
        count / steps,
        took / steps,
        beside / steps,
        talking / steps,
        known(share(paired, beside)),
        known(share(longer, judged - longer)),
    ]


def _verdict(found: ComputingStreams, told: _Told, kernels: StepKernels) -> Text:
    """Whether it pays, in words; with the two streams that do the same work."""
    values = {"hidden": _time(found.at_once_saved_ns / kernels.steps), "known": _percent(found.known_share)}
    if not found.at_once_saved_ns:
        said = message("pipeline_bound.verdict.never")
    elif not np.isfinite(told.won_ns):
        said = message("pipeline_bound.verdict.unknown", **values)
    else:
        name = "pipeline_bound.verdict.pays" if told.won_ns > 0 else "pipeline_bound.verdict.loses"
        said = message(name, **values, excess=_time(told.excess_ns / kernels.steps), slower=_percent(told.slowdown))
    if not found.twins:
        return said
    twins = message("pipeline_bound.verdict.twins", first=found.twins[0], second=found.twins[1])
    return Text(en=f"{said.en}; {twins.en}", zh=f"{said.zh}；{twins.zh}")


def _time(ns: float) -> str:
    return format_quantity(ns, "ns")


def _percent(part: float) -> str:
    return f"{100 * part:.1f} %" if np.isfinite(part) else "–"


DRAWINGS: tuple[Drawing, ...] = (stream_table,)
FACTS = (computing_streams,)
