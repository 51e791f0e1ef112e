"""Device memory: capacity, allocated and reserved bytes over time, and the holders at the peak."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from advisor_core.contracts.columns import Column
from advisor_core.contracts.facts import Facts, fact
from advisor_core.contracts.missing import Unavailable
from advisor_core.contracts.profile import PROFILE
from advisor_core.contracts.tables import HOST_EVENTS, MEMORY_RECORD, OPERATOR_MEMORY
from advisor_core.facts.device.chip import chip
from advisor_core.facts.matching import matching
from advisor_core.text.messages import message

GIB = 1024**3
GRAPH_ENGINE = "cann::"
"""Prefixes of the names of tensors that the graph engine allocates; the framework's totals do not count them."""

_SLOW_CLOCK = 1750.0
"""MHz. Of the parts with 20 cube cores those at 1800 MHz have 64 GB; those at 1500 MHz exist with 32 and with 64."""


@dataclass(frozen=True)
class Capacity:
    """``bytes`` of memory on the device; ``basis``: how we know."""

    bytes: int
    basis: str


@fact("memory_capacity", needs=(PROFILE,), wants=(chip, MEMORY_RECORD), shared=True)
def memory_capacity(facts: Facts) -> Capacity:
    """Memory of the device: as recorded (``memory_bytes`` of the profile's chip), else by the kind of chip.

    A2 and A3 dies with 24 cube and 48 vector cores all have 64 GB. Those with 20 and 40 have 64 GB at 1800 MHz and 32
    or 64 GB at 1500 MHz; a process that holds more than 32 GB settles that. (``platform_config/*.ini`` of
    hicann/runtime.) Anything else is not known: other chips share their core counts.
    """
    recorded = facts[PROFILE].chip.get("memory_bytes")
    if isinstance(recorded, int) and recorded > 0:
        return Capacity(recorded, "properties of the device")
    device = facts.get(chip)
    if device is not None and device.vector_cores == 2 * device.cube_cores:
        if device.cube_cores == 24:
            return Capacity(64 * GIB, "24 cube cores")
        if device.cube_cores == 20 and device.mhz >= _SLOW_CLOCK:
            return Capacity(64 * GIB, "20 cube cores at 1800 MHz")
        if device.cube_cores == 20 and _held(facts.get(MEMORY_RECORD)) > 32 * GIB:
            return Capacity(64 * GIB, "20 cube cores, more than 32 GiB in use")
    raise Unavailable(message("memory.capacity_unknown"), message("memory.capacity_unknown.collect"))


def _held(record: pd.DataFrame | None) -> float:
    if record is None:
        return 0.0
    most = record.loc[record["component"] == "APP", "reserved_bytes"].max()
    return float(most) if np.isfinite(most) else 0.0


CURVE = (
    Column("time_ns", "int", "ns", "clock of the host"),
    Column("allocated_bytes", "float", "B", "allocated by the framework"),
    Column("reserved_bytes", "float", "B", "reserved by the framework"),
)


@fact("memory_curve", needs=(PROFILE,), wants=(MEMORY_RECORD, OPERATOR_MEMORY), columns=CURVE)
def memory_curve(facts: Facts) -> pd.DataFrame:
    """Memory that the framework has allocated and reserved, in order of time (host clock).

    From the framework's rows of memory_record.csv; without them from the totals at each allocation in
    operator_memory.csv. Two devices of a process are not told apart.
    """
    record = facts.get(MEMORY_RECORD)
    operators = facts.get(OPERATOR_MEMORY)
    columns = [column.name for column in CURVE]
    if record is not None:
        for component in facts[PROFILE].vocabulary.memory_totals:
            curve = record.loc[record["component"] == component, columns].dropna()
            if len(curve):
                return curve.sort_values("time_ns", kind="stable", ignore_index=True)
    if operators is not None:
        own = operators[(operators["allocation_ns"] >= 0) & ~of_graph_engine(operators)]
        curve = own.rename(columns={"allocation_ns": "time_ns"})[columns].dropna()
        if len(curve):
            return curve.sort_values("time_ns", kind="stable", ignore_index=True)
    raise Unavailable(message("memory.none"), message("memory.none.collect"), ("memory",))


def of_graph_engine(operators: pd.DataFrame) -> np.ndarray:
    """Mask of the rows of ``operator_memory`` that the graph engine allocated."""
    names = operators["name"]
    own = np.array([str(name).startswith(GRAPH_ENGINE) for name in names.array.categories], dtype=bool)
    return own[names.array.codes] if len(own) else np.zeros(len(names), dtype=bool)


STEPS = (
    Column("step", "int", "", "number of the mark"),
    Column("start_ns", "int", "ns", "start, clock of the host"),
    Column("end_ns", "int", "ns", "end, clock of the host"),
    Column("trough_bytes", "float", "B", "least allocated"),
    Column("peak_bytes", "float", "B", "most allocated"),
    Column("reserved_bytes", "float", "B", "most reserved"),
)


@fact("memory_steps", needs=(memory_curve, HOST_EVENTS, PROFILE), columns=STEPS)
def memory_steps(facts: Facts) -> pd.DataFrame:
    """Allocated and reserved in each step of the host, which is where memory comes and goes.

    One row per recorded ``ProfilerStep#N``, with what was allocated when the step began. Not the windows of ``steps``:
    the host may be several steps ahead of the device.
    """
    curve, events = facts[memory_curve], facts[HOST_EVENTS]
    step_mark = facts[PROFILE].vocabulary.step_mark
    marks = events[events["category"].isin(["user_annotation", "cpu_op"]) & matching(events["name"], step_mark)]
    if marks.empty:
        raise Unavailable(message("memory.no_steps"), message("memory.no_steps.collect"), ("host", "steps"))
    windows = marks.sort_values("start_ns", kind="stable").drop_duplicates("name", ignore_index=True)
    starts = windows["start_ns"].to_numpy()
    ends = starts + windows["duration_ns"].to_numpy()
    times = curve["time_ns"].to_numpy()
    first = np.maximum(np.searchsorted(times, starts, side="right") - 1, 0)
    behind = np.maximum(np.searchsorted(times, ends, side="left"), first + 1)
    # reduceat takes pairs of borders; what lies between two steps is computed as well and dropped
    borders = np.stack([first, np.minimum(behind, len(times))], axis=1).ravel()
    allocated = np.append(curve["allocated_bytes"].to_numpy(), np.nan)
    reserved = np.append(curve["reserved_bytes"].to_numpy(), np.nan)
    return pd.DataFrame(
        {
            "step": windows["name"].astype(str).str.rpartition("#")[2].astype("int64"),
            "start_ns": starts,
            "end_ns": ends,
            "trough_bytes": np.fmin.reduceat(allocated, borders)[::2],
            "peak_bytes": np.fmax.reduceat(allocated, borders)[::2],
            "reserved_bytes": np.fmax.reduceat(reserved, borders)[::2],
        }
    )


BY_OPERATOR = (
    Column("name", "text", "", "operator that allocated"),
    Column("bytes", "float", "B", "what its tensors hold"),
    Column("tensors", "int", "count", "its tensors"),
)


@dataclass(frozen=True)
class PeakMemory:
    """The moment when most was allocated. ``rows``: tensors that were alive then, as rows of ``operator_memory``, the
    largest first; ``by_operator``: the same by operator; ``earlier_bytes``: allocated before the profile
    began, or not recorded."""

    time_ns: int
    allocated_bytes: int
    reserved_bytes: int
    rows: np.ndarray
    by_operator: pd.DataFrame
    earlier_bytes: int


@fact("memory_peak", needs=(memory_curve, OPERATOR_MEMORY), frames={"by_operator": BY_OPERATOR})
def memory_peak(facts: Facts) -> PeakMemory:
    """Memory that was alive when most was allocated, by operator."""
    curve, operators = facts[memory_curve], facts[OPERATOR_MEMORY]
    top = int(curve["allocated_bytes"].to_numpy().argmax())
    time = int(curve["time_ns"].iloc[top])
    released = operators["release_ns"]
    alive = (
        (operators["allocation_ns"] >= 0)
        & (operators["allocation_ns"] <= time)
        & ((released > time) | (released < 0))
        & (operators["bytes"] > 0)
        & ~of_graph_engine(operators)
    )
    chosen = operators[alive]
    grouped = chosen.groupby(chosen["name"].astype(str))["bytes"].agg(["sum", "size"])
    grouped = grouped.sort_values("sum", ascending=False, kind="stable").reset_index()
    grouped.columns = pd.Index(["name", "bytes", "tensors"], dtype=object)
    allocated = int(curve["allocated_bytes"].iloc[top])
    rows = chosen["bytes"].sort_values(ascending=False, kind="stable").index.to_numpy()
    return PeakMemory(
        time,
        allocated,
        int(curve["reserved_bytes"].iloc[top]),
        rows.astype(np.int64),
        grouped,
        max(0, allocated - int(chosen["bytes"].sum())),
    )
