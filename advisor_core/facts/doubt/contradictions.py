"""Contradictions within the rows of one file, where no second file has the same total.

Rows of kernels that stand twice, gaps that are longer than the exporter's own wait times, and launches whose task is
missing though a later launch has its own.
"""

from __future__ import annotations

from collections.abc import Mapping

from advisor_core.contracts.doubt import Disagreement
from advisor_core.contracts.tables import DEVICE_TASKS, FLOWS, KERNELS, Table
from advisor_core.facts.doubt.totals import ROUNDING
from advisor_core.facts.intervals import union
from advisor_core.facts.steps.kernel_list import holes
from advisor_core.text.messages import message


def contradictions(tables: Mapping[str, Table]) -> list[Disagreement]:
    """Contradictions that a table's own rows, or the arrows of the same file, prove."""
    kernels = tables.get(KERNELS.name)
    found = [] if kernels is None else [_rows_twice(kernels), _rows_missing(kernels)]
    return [one for one in (*found, _tasks_missing(tables)) if one is not None]


def _rows_twice(kernels: Table) -> Disagreement | None:
    """Rows that stand twice: a stream never starts the same task twice at one moment."""
    doubled = int(kernels.frame.duplicated(["start_ns", "duration_ns", "stream", "task", "name"]).sum())
    if not doubled:
        return None
    rows = len(kernels.frame)
    return _against_itself(kernels, "doubt.total.rows", "count", rows, doubled)


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
    return _against_itself(kernels, "doubt.total.gaps", "ns", idle, missing)


def _against_itself(kernels: Table, total: str, unit: str, value: int, too_much: int) -> Disagreement:
    """A total of the kernels of which their own rows say that some of it is not there."""
    return Disagreement(
        total=message(total),
        unit=unit,
        table=KERNELS.name,
        file=kernels.source.file,
        value=value,
        other_table=KERNELS.name,
        other_file=kernels.source.file,
        other=value - too_much,
        off=too_much / value,
    )


def _tasks_missing(tables: Mapping[str, Table]) -> Disagreement | None:
    """Launches without a task, before the last one that has a task: the end of the recording does not explain these.
    In all real recordings at hand, of either vendor, there is none."""
    flows = tables.get(FLOWS.name)
    tasks = tables.get(KERNELS.name, tables.get(DEVICE_TASKS.name))
    if flows is None or tasks is None or tasks.source.file != flows.source.file:
        return None
    arrows = flows.frame[flows.frame["kind"] == "host_to_device"]
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
