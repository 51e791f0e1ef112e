"""The totals of each table of a rank in one form, so that any two tables can be compared.

A statement is a tuple: ``total`` (a name of `TOTALS`), ``about`` (the step, the type of kernels or the API that it is
about, '' all of them), ``table`` (name of the canonical table) and ``value``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from advisor_core.contracts.frames import picked
from advisor_core.contracts.keys import Answers
from advisor_core.contracts.profile import PROFILE
from advisor_core.contracts.tables import (
    API_STATISTIC,
    COLLECTIVES,
    COMMUNICATION_TASKS,
    DEVICE_TASKS,
    HOST_EVENTS,
    KERNELS,
    OP_STATISTIC,
    OPERATORS,
    OVERLAP,
    STEP_TRACE,
    TableSchema,
)
from advisor_core.facts.device.work import computing_tasks
from advisor_core.facts.grouping import Groups, aggregated
from advisor_core.facts.intervals import Ints, union

ROUNDING: Final = 0.005
"""Tolerance between two sums of time: 0.5 %. In the real exports at hand the totals of two files agree to 0.001 %;
communication.json of one (gpt3, 16 ranks) leaves out collectives of 0.46 % of its step."""


MARKS: Final = 0.02
"""Tolerance between two numbers of operator calls: without marks they are equal in all real exports at hand, but
exporters differ in what they take for a mark."""


@dataclass(frozen=True)
class Total:
    """A kind of total. ``rounding``: how far two files may be apart, as a share of the larger value, or of the step
    where ``of_step``. ``complete``: a subject that one of two files does not have counts as zero there; otherwise only
    what both have is compared."""

    unit: str
    rounding: float
    of_step: bool = False
    complete: bool = False


TOTALS: Final[Mapping[str, Total]] = {
    "computing": Total("ns", ROUNDING, of_step=True),
    "communication": Total("ns", ROUNDING, of_step=True),
    "uncovered": Total("ns", ROUNDING, of_step=True),
    "idle": Total("ns", ROUNDING, of_step=True),
    "wall": Total("ns", ROUNDING),
    "lane_computing": Total("ns", ROUNDING),
    "lane_communication": Total("ns", ROUNDING),
    "kernels": Total("count", 0.0),
    "kernel_time": Total("ns", ROUNDING),
    "kernels_of": Total("count", 0.0, complete=True),
    "kernel_time_of": Total("ns", ROUNDING, complete=True),
    "collectives": Total("count", 0.0),
    "collective_time": Total("ns", ROUNDING),
    "calls_of": Total("count", 0.0),
    "operators": Total("count", MARKS),
}
"""The totals, by id. ``computing``, ``communication``, ``uncovered`` and ``idle`` are of a step; ``wall``, their sum,
is what only the exporter's summary says; ``lane_*`` are unions of all that was recorded; ``*_of`` are by operator type,
calls by API; ``operators`` are calls of operators of the framework without marks (``ProfilerStep#3``)."""

SUMMARIES: Final = frozenset(schema.name for schema in (STEP_TRACE, OP_STATISTIC, API_STATISTIC, OVERLAP))
"""Tables that the exporter summed up from complete data: rows can be lost from the others."""


Statement = tuple[str, str, str, float]
_Said = Iterable[Statement]


@dataclass(frozen=True)
class _Spans:
    """Stretches of time, ns."""

    starts: Ints
    lengths: Ints

    def __len__(self) -> int:
        return len(self.starts)

    @classmethod
    def of(cls, table: pd.DataFrame) -> Self:
        return cls(table["start_ns"].to_numpy(), table["duration_ns"].to_numpy())

    def where(self, rows: npt.NDArray[Any]) -> Self:
        """Those of a mask, or of these numbers."""
        return type(self)(self.starts[rows], self.lengths[rows])

    def and_those(self, others: Self) -> Self:
        starts, lengths = [self.starts, others.starts], [self.lengths, others.lengths]
        return type(self)(np.concatenate(starts), np.concatenate(lengths))

    def covered(self) -> int:
        """The time in which at least one of them is."""
        return int(union(self.starts, self.starts + self.lengths).total())


def statements(given: Answers) -> list[Statement]:
    """All that the tables say in total. They are few values of many kinds: no frame pays here."""
    return [row for table, tell in _TELL.items() if table in given for row in tell(given)]


def _kernels(given: Answers) -> _Said:
    kernels = given[KERNELS]
    talks = (kernels["core"] == "COMMUNICATION").to_numpy()
    spans = _Spans.of(kernels)
    own, collectives = spans.where(~talks), spans.where(talks)
    yield from _rows("kernels", "kernel_time", KERNELS, own.lengths)
    yield from _rows("collectives", "collective_time", KERNELS, collectives.lengths)
    yield from _lanes(KERNELS, own, collectives)
    computing = picked(kernels, ~talks, ("type", "duration_ns"))
    by_type = aggregated(computing, "type", count=("duration_ns", "size"), time=("duration_ns", "sum"))
    for kind, count, time in sorted(by_type.itertuples(index=False, name=None)):
        if kind:  # level0 names no types
            yield "kernels_of", kind, KERNELS.name, count
            yield "kernel_time_of", kind, KERNELS.name, time
    steps = kernels["step"].to_numpy()
    told = steps[steps >= 0]
    if len(told):
        for step in np.unique(told).tolist():
            mine = steps == step
            yield from _of_step(KERNELS, str(step), spans.where(mine & ~talks), spans.where(mine & talks))
    elif (only := _only_step(given)) is not None:
        yield from _of_step(KERNELS, only, own, collectives)


def _device_tasks(given: Answers) -> _Said:
    tasks = given[DEVICE_TASKS]
    computing = _Spans.of(tasks).where(np.asarray(computing_tasks(tasks, given[PROFILE].vocabulary)))
    yield from _rows("kernels", "kernel_time", DEVICE_TASKS, computing.lengths)
    whole = given.get(COMMUNICATION_TASKS)
    collectives = None if whole is None else _Spans.of(whole).where(whole["plane"].to_numpy() < 0)
    yield from _lanes(DEVICE_TASKS, computing, None)
    if KERNELS not in given and len(computing) and collectives is not None and (only := _only_step(given)) is not None:
        yield from _of_step(DEVICE_TASKS, only, computing, collectives)


def _communication_tasks(given: Answers) -> _Said:
    tasks = given[COMMUNICATION_TASKS]
    whole = _Spans.of(tasks).where(tasks["plane"].to_numpy() < 0)
    yield from _rows("collectives", "collective_time", COMMUNICATION_TASKS, whole.lengths)
    yield from _lanes(COMMUNICATION_TASKS, None, whole)


def _overlap(given: Answers) -> _Said:
    lanes = given[OVERLAP]
    kinds, spans = lanes["kind"].astype(str).to_numpy(), _Spans.of(lanes)
    for kind, total in (("Computing", "lane_computing"), ("Communication", "lane_communication")):
        if (kinds == kind).any():
            yield total, "", OVERLAP.name, spans.where(kinds == kind).covered()


def _step_trace(given: Answers) -> _Said:
    columns = ["step", "computing_ns", "communication_ns", "uncovered_communication_ns", "free_ns"]
    table = given[STEP_TRACE]
    for step, computing, communication, uncovered, free in table[columns].itertuples(index=False):
        yield "computing", str(step), STEP_TRACE.name, computing
        yield "communication", str(step), STEP_TRACE.name, communication
        yield "uncovered", str(step), STEP_TRACE.name, uncovered
        yield "wall", str(step), STEP_TRACE.name, computing + uncovered + free
        if len(table) == 1:  # versions differ in where they book the wait for the next step
            yield "idle", str(step), STEP_TRACE.name, free


def _op_statistic(given: Answers) -> _Said:
    table = given[OP_STATISTIC]
    yield "kernels", "", OP_STATISTIC.name, table["count"].sum()
    yield "kernel_time", "", OP_STATISTIC.name, table["total_ns"].sum()
    sums = table.groupby(table["type"].astype(str))[["count", "total_ns"]].sum()
    for kind, count, time in sums.itertuples():
        yield "kernels_of", kind, OP_STATISTIC.name, count
        yield "kernel_time_of", kind, OP_STATISTIC.name, time


def _collectives(given: Answers) -> _Said:
    table = given[COLLECTIVES]
    yield from _rows("collectives", "collective_time", COLLECTIVES, table["elapse_ns"].to_numpy())
    spans = _Spans(table["start_ns"].to_numpy(), table["elapse_ns"].to_numpy())
    steps = Groups(table, "step")
    for step, rows in zip(steps.keys()["step"], steps.parts(), strict=True):
        yield "communication", str(step), COLLECTIVES.name, spans.where(rows).covered()


def _api_statistic(given: Answers) -> _Said:
    table = given[API_STATISTIC]
    for name, count in table["count"].groupby(table["name"].astype(str)).sum().items():
        yield "calls_of", str(name), API_STATISTIC.name, count


def _host_events(given: Answers) -> _Said:
    """Calls of CANN by API: the trace writes the layer before the name (``AscendCL@aclrtMemcpy``)."""
    events = given[HOST_EVENTS]
    calls = events.loc[events["category"] == "runtime", "name"].value_counts(sort=False)
    apis = calls.groupby([str(name).rpartition("@")[2] for name in calls.index]).sum()
    for name, count in apis[apis > 0].items():
        yield "calls_of", str(name), HOST_EVENTS.name, count
    yield "operators", "", HOST_EVENTS.name, _unmarked(events.loc[events["category"] == "cpu_op", "name"])


def _operators(given: Answers) -> _Said:
    yield "operators", "", OPERATORS.name, _unmarked(given[OPERATORS]["name"])


def _unmarked(names: pd.Series) -> int:
    counts = names.value_counts(sort=False)
    return int(sum(count for name, count in counts.items() if "#" not in str(name)))


_TELL: Final[Mapping[TableSchema, Callable[[Answers], _Said]]] = {
    KERNELS: _kernels,
    DEVICE_TASKS: _device_tasks,
    COMMUNICATION_TASKS: _communication_tasks,
    OVERLAP: _overlap,
    STEP_TRACE: _step_trace,
    OP_STATISTIC: _op_statistic,
    COLLECTIVES: _collectives,
    API_STATISTIC: _api_statistic,
    HOST_EVENTS: _host_events,
    OPERATORS: _operators,
}


def _rows(count: str, time: str, table: TableSchema, lengths: Ints) -> _Said:
    if not len(lengths):  # a level can leave a kind of rows out
        return
    yield count, "", table.name, len(lengths)
    yield time, "", table.name, lengths.sum()


def _lanes(table: TableSchema, own: _Spans | None, collectives: _Spans | None) -> _Said:
    if own is not None and len(own):
        yield "lane_computing", "", table.name, own.covered()
    if collectives is not None and len(collectives):
        yield "lane_communication", "", table.name, collectives.covered()


def _of_step(table: TableSchema, step: str, own: _Spans, collectives: _Spans) -> _Said:
    both = own.and_those(collectives)
    computing, busy = own.covered(), both.covered()
    yield "computing", step, table.name, computing
    yield "communication", step, table.name, collectives.covered()
    yield "uncovered", step, table.name, busy - computing
    if len(both):
        wall = (both.starts + both.lengths).max() - both.starts.min()
        yield "idle", step, table.name, wall - busy


def _only_step(given: Answers) -> str | None:
    """The step of a recording of one step, as the exporter's summary names it."""
    summary = given.get(STEP_TRACE)
    return str(summary["step"].iloc[0]) if summary is not None and len(summary) == 1 else None
