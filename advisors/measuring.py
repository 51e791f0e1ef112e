"""Shared measurements of advisors: means per step, leaves of the ledger, evidence of gaps and calls."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np
import pandas as pd

from advisor_core.api import Scalar
from advisor_core.api.advisors import Interval, Reference, Rows, Stack
from advisor_core.api.facts import (
    HOST_EVENTS,
    KERNELS,
    Bookings,
    Facts,
    Held,
    call_site,
    covered,
    frame_of,
    frames_of,
    ledger,
    matching,
    row_refs,
    steps,
    work,
)
from advisors.messages import message

HOST_LANE = "host"
DEVICE_LANE = "device"
LARGEST = 5
"""Rows that are shown as evidence at most, the largest first, where the table itself holds many more."""

_IDLE: Final = re.compile("^idle/")


def step_count(facts: Facts) -> int:
    return len(facts[steps])


def step_ns(facts: Facts) -> float:
    """Mean wall time of a step."""
    windows = facts[steps]
    return float((windows["end_ns"].to_numpy() - windows["start_ns"].to_numpy()).sum()) / len(windows)


def leaves(facts: Facts) -> pd.Series:
    """Ledger path to ns per step."""
    return _leaves(Held(facts[ledger]))


@lru_cache(2)
def _leaves(held: Held[pd.DataFrame]) -> pd.Series:
    booked = held.value
    paths, codes = np.unique(booked["path"].to_numpy(dtype=object), return_inverse=True)
    sums = np.zeros(len(paths), dtype=np.int64)
    np.add.at(sums, codes, booked["ns"].to_numpy())
    return pd.Series(sums / len(np.unique(booked["step"])), index=pd.Index(paths, name="path"), name="ns")


def under(per_leaf: pd.Series, *paths: str) -> float:
    """Sum of the leaves at or below any of ``paths``."""
    chosen = [covered(leaf, paths) for leaf in per_leaf.index.tolist()]
    return float(per_leaf.to_numpy()[np.array(chosen, dtype=bool)].sum())


def share(part: float, whole: float) -> float:
    return part / whole if whole > 0 else float("nan")


def row(**values: Any) -> pd.DataFrame:
    """An observation about the rank as a whole."""
    # An array of numpy has its type; what is in a list is looked at, and that takes longer than all the rest.
    plain = {bool, int, float, np.bool_, np.int64, np.float64}
    return frame_of({name: np.array([value]) if type(value) in plain else [value] for name, value in values.items()}, 1)


def records(frame: pd.DataFrame, limit: int = 10, **columns: str) -> list[dict[str, Scalar]]:
    """The first rows as mappings for a `Metric`: shown name to the value of a column."""
    shown = [frame[name].array[:limit].to_numpy().tolist() for name in columns.values()]
    return [dict(zip(columns, values, strict=True)) for values in zip(*shown, strict=True)]


def pieces_of(booked: Bookings, *paths: str) -> pd.DataFrame:
    """The pieces booked under exactly these leaves, with ``ns``."""
    pieces = booked.pieces
    known = pieces["path"].array
    wanted = np.isin(known.categories.to_numpy(dtype=object), paths)
    rows = np.flatnonzero(np.append(wanted, False)[known.codes])  # the last for code -1: without a path
    found = pieces.take(rows)
    found["ns"] = found["end_ns"].to_numpy() - found["start_ns"].to_numpy()
    return found


def idle_pieces(booked: Bookings) -> pd.DataFrame:
    """The pieces of the steps that are booked as idle, whatever the cause."""
    pieces = booked.pieces
    return pieces[(pieces["step"] >= 0) & matching(pieces["path"], _IDLE)]


def by_gap(pieces: pd.DataFrame) -> pd.Series:
    """ns of the given pieces in each gap, largest first."""
    gap = pieces["gap"].to_numpy()
    inside = gap >= 0
    gaps, codes = np.unique(gap[inside], return_inverse=True)
    sums = np.zeros(len(gaps), dtype=np.int64)
    np.add.at(sums, codes, pieces["ns"].to_numpy()[inside])
    order = np.argsort(-sums, kind="stable")
    return pd.Series(sums[order], index=pd.Index(gaps[order], name="gap"), name="ns")


def gap_intervals(booked: Bookings, sums: pd.Series, limit: int = 3) -> list[Reference]:
    """The idle gaps with most of something in them."""
    return intervals_of(booked.gaps.loc[sums.index[:limit]], limit)


def intervals_of(gaps: pd.DataFrame, limit: int = 3) -> list[Reference]:
    """The first of these gaps."""
    chosen = gaps.iloc[:limit]
    return [
        Interval(message("common.gap"), int(start), int(end), DEVICE_LANE)
        for start, end in zip(chosen["start_ns"], chosen["end_ns"], strict=True)
    ]


def next_kernels(facts: Facts, following: Iterable[int], limit: int = 10) -> list[Reference]:
    """The kernels (rows of ``work``) that ended gaps, where kernel_details.csv was read."""
    numbers = [int(number) for number in following if number >= 0][:limit]
    columns = ("name", "type", "start_ns", "duration_ns", "wait_ns")
    return [
        Rows(message("common.next_kernels"), KERNELS, where.rows, columns)
        for where in row_refs(facts[work].iloc[numbers])
        if where.table is KERNELS
    ]


def host_rows(title: str, rows: Sequence[int] | np.ndarray, columns: Sequence[str] = ()) -> list[Reference]:
    """Rows of ``host_events``; ``title`` names a message. Rows that are not known (-1) are left out."""
    numbers = np.asarray(rows, dtype=np.int64)
    numbers = numbers[numbers >= 0]
    if not len(numbers):
        return []
    shown = ("category", "name", "thread", "start_ns", "duration_ns", *columns)
    return [Rows(message(title), HOST_EVENTS, numbers, shown)]


def stack_of(events: pd.DataFrame, row_number: int) -> list[Reference]:
    """The call stack of a host event, where it has one."""
    frames = frames_of(str(events["call_stack"].iloc[row_number])) if row_number >= 0 else ()
    return [Stack(message("common.stack", name=events["name"].iloc[row_number]), frames)] if frames else []


def call_sites(events: pd.DataFrame, rows: np.ndarray) -> np.ndarray:
    """The `call_site` of each of these host events."""
    stacks = events["call_stack"].astype("category").cat
    sites = np.array([call_site(frames_of(str(text))) for text in stacks.categories], dtype=object)
    return sites[stacks.codes.to_numpy()[rows]] if len(sites) else np.full(len(rows), "", dtype=object)
