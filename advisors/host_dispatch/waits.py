"""The stretches of time in which synchronising calls hold the host."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pandas as pd

from advisor_core.api import Vocabulary
from advisor_core.api.facts import HostChange, Launches, matching, union

if TYPE_CHECKING:
    import numpy.typing as npt

Ints: TypeAlias = "npt.NDArray[np.int64]"


def waits_gone(waits: pd.DataFrame) -> HostChange:
    """The host without these waits (``start_ns``, ``end_ns`` in device time)."""
    return HostChange(union(waits["start_ns"].to_numpy(), waits["end_ns"].to_numpy()))


def whole_waits(events: pd.DataFrame, calls: pd.DataFrame, skew_ns: int, words: Vocabulary) -> pd.DataFrame:
    """The stretch in which each call held the host: with the operator around it where that does nothing but read a
    value, as its copy and its bookkeeping go when it goes."""
    outer = calls["outer_row"].to_numpy()
    reads = (outer >= 0) & matching(events["name"], words.sync_operators)[np.maximum(outer, 0)]
    around = events.iloc[np.maximum(outer, 0)]
    start = around["start_ns"].to_numpy() - skew_ns
    end = start + around["duration_ns"].to_numpy()
    return pd.DataFrame(
        {
            "start_ns": np.where(reads, start, calls["start_ns"].to_numpy()),
            "end_ns": np.where(reads, end, calls["end_ns"].to_numpy()),
        }
    )


def launch_spans(launched: Launches, tasks: Ints, group: Ints, groups: int) -> tuple[Ints, Ints]:
    """By group: the launch of the first of its tasks (rows of ``work``) and that of the last, in device time; the last
    lies before the first where no launch is known."""
    known = launched.known().to_numpy()[tasks]
    at, of = launched.frame["launch_ns"].to_numpy()[tasks][known], group[known]
    limits = np.iinfo(np.int64)
    first, last = np.full(groups, limits.max), np.full(groups, limits.min)
    np.minimum.at(first, of, at)
    np.maximum.at(last, of, at)
    return first, last
