"""Contradictions that no total of two files shows.

Rows of kernels that stand twice, gaps that are longer than the exporter's own wait times, launches whose task is
missing though a later launch has its own, and samples of memory from another time than the kernels. What no device and
no thread can do, and a wrong unit makes of sound times, is in `advisor_core.facts.doubt.impossible`.
"""

from __future__ import annotations

from collections.abc import Mapping

from advisor_core.contracts.doubt import Disagreement
from advisor_core.contracts.tables import (
    DEVICE_TASKS,
    FLOWS,
    KERNELS,
    MEMORY_RECORD,
    MODULE_MEMORY,
    OPERATOR_MEMORY,
    Table,
)
from advisor_core.facts.doubt.impossible import against_itself, impossible
from advisor_core.facts.doubt.totals import ROUNDING
from advisor_core.facts.intervals import union
from advisor_core.facts.steps.kernel_list import holes
from advisor_core.text.messages import message


def contradictions(tables: Mapping[str, Table]) -> list[Disagreement]:
    """Contradictions that a table's own rows, or the arrows of the same file, prove."""
    kernels = tables.get(KERNELS.name)
    found = [] if kernels is None else [_rows_twice(kernels), _rows_missing(kernels)]
    found += [_from_another_time(tables, name, column) for name, column in _SAMPLED.items()]
    return [one for one in (*found, _tasks_missing(tables), *impossible(tables)) if one is not None]


_SAMPLED = {MEMORY_RECORD.name: "time_ns", MODULE_MEMORY.name: "time_ns", OPERATOR_MEMORY.name: "allocation_ns"}
"""Tables of memory, with the column of their times; -1: before the recording."""

_APART_NS = 3_600 * 10**9
"""Samples of memory are taken while the kernels are recorded, on the clock of the host; a recording lasts minutes. What
is an hour away is from another recording, or stands in the wrong column. Our choice."""


def _from_another_time(tables: Mapping[str, Table], name: str, column: str) -> Disagreement | None:
    """Samples of memory of which none is within an hour of any kernel."""
    samples, kernels = tables.get(name), tables.get(KERNELS.name, tables.get(DEVICE_TASKS.name))
    if samples is None or kernels is None or samples.frame.empty or kernels.frame.empty:
        return None
    times, starts = samples.frame[column], kernels.frame["start_ns"]
    times = times[times != -1]
    if times.empty:
        return None
    first, last = int(times.min()), int(times.max())
    if first <= int(starts.max()) + _APART_NS and last >= int(starts.min()) - _APART_NS:
        return None
    return Disagreement(
        total=message("doubt.total.samples"),
        unit="ns",
        table=samples.schema.name,
        file=samples.source.file,
        value=first,
        other_table=kernels.schema.name,
        other_file=kernels.source.file,
        other=int(starts.min()),
        off=1.0,
    )


def _rows_twice(kernels: Table) -> Disagreement | None:
    """Rows that stand twice: a stream never starts the same task twice at one moment."""
    doubled = int(kernels.frame.duplicated(["start_ns", "duration_ns", "stream", "task", "name"]).sum())
    if not doubled:
        return None
    rows = len(kernels.frame)
    return against_itself(kernels, "doubt.total.rows", "count", rows, rows - doubled)


def _rows_missing(kernels: Table) -> Disagreement | None:
    """Gaps that are longer than the exporter's wait times: rows are missing there."""
    frame = kernels.frame
    if frame.empty:
        return None
    starts = frame["start_ns"].to_numpy()
    ends = starts + frame["duration_ns"].to_numpy()
    idle = int(ends.max() - starts.min()) - union(starts, ends).total()
    missing = int(holes(frame).sum())
    if missing <= ROUNDING * (ends.max() - starts.min()):
        return None
    return against_itself(kernels, "doubt.total.gaps", "ns", idle, idle - missing)


def _tasks_missing(tables: Mapping[str, Table]) -> Disagreement | None:
    """Launches without a task, before the last one that has a task: the end of the recording does not explain these.
    In all real recordings at hand, of either vendor, there is none."""
    flows = tables.get(FLOWS.name)
    tasks = tables.get(KERNELS.name, tables.get(DEVICE_TASKS.name))
    if flows is None or tasks is None or tasks.source.file != flows.source.file:
        return None
    arrows = flows.frame[["flow", "time_ns", "end"]][flows.frame["kind"] == "host_to_device"]
    heads = arrows[arrows["end"] == "s"].drop_duplicates("flow")
    ran = heads["flow"].isin(arrows.loc[arrows["end"] == "f", "flow"])
    if not ran.any():
        return None
    due = heads["time_ns"] <= heads.loc[ran, "time_ns"].max()
    launched, missing = int(due.sum()), int((due & ~ran).sum())
    if not missing:
        return None
    return Disagreement(
        total=message("doubt.total.launches"),
        unit="count",
        table=tasks.schema.name,
        file=tasks.source.file,
        value=launched - missing,
        other_table=FLOWS.name,
        other_file=flows.source.file,
        other=launched,
        off=missing / launched,
    )
