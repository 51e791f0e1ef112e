"""The time that a kernel takes longer while data of its rank moves, as far as the recording has it both ways.

Transfers take bandwidth of the memory from the kernels beside them. Where kernels of one type and the same shapes ran
both with no transfer beside them and mostly beside one, the difference is measured. Nothing else tells it: kernels that
were recorded in one of the two states only have no number.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from advisor_core.contracts.columns import Column
from advisor_core.contracts.facts import Facts, fact
from advisor_core.contracts.frames import frame_of
from advisor_core.contracts.tables import KERNELS
from advisor_core.facts.communication.state import collective_state
from advisor_core.facts.device.work import work
from advisor_core.facts.grouping import Groups

MOSTLY = 0.5
"""A kernel that had transfers beside it for this share of its time or more counts as one that ran beside them; the time
beside them is what its difference is divided by, so that the share decides only how many kernels count. Our choice."""
LEAST = 4
"""Least number of kernels in each state: with fewer there are no quartiles."""

COLUMNS = (
    Column("slowed", "float", "ratio", "of its time beside transfers, by how much it is longer for them; none unknown"),
)


@fact("contention", needs=(work, KERNELS, collective_state), columns=COLUMNS)
def contention(facts: Facts) -> pd.DataFrame:
    """One row per row of ``work``: by what share of the time beside transfers a kernel is longer for them."""
    device, kernels, moving = facts[work], facts[KERNELS], facts[collective_state].moving
    slowed = np.full(len(device), np.nan)
    shapes = kernels["input_shapes"].iloc[device["row"]]
    rows = np.flatnonzero(~device["communication"].to_numpy() & (shapes != "").to_numpy())
    own, shapes = device.iloc[rows], shapes.iloc[rows]
    start, end = own["start_ns"].to_numpy(), own["end_ns"].to_numpy()
    of_kinds = frame_of({"type": own["type"].array.codes, "shapes": shapes.array.codes}, len(own))
    kind = Groups(of_kinds, ("type", "shapes"), sort=False).codes
    slowed[rows] = slowed_share(kind, end - start, moving.measure(end) - moving.measure(start))
    return pd.DataFrame({"slowed": slowed})


def slowed_share(
    kind: npt.NDArray[np.int64], took_ns: npt.NDArray[np.int64], beside_ns: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    """Of each kernel the share of its time beside transfers by which it is longer for them: that of its kind, NaN where
    there are not `LEAST` in each state. 0 where durations spread by more than the states differ: three quarters of
    those beside transfers have to take longer than three quarters of the others."""
    frame = pd.DataFrame({"kind": kind, "took": took_ns, "beside": beside_ns})
    alone, mostly = frame[frame["beside"] == 0], frame[frame["beside"] >= MOSTLY * frame["took"].clip(lower=1)]
    counts = [part["kind"].value_counts() for part in (alone, mostly)]
    both = pd.Index(sorted(set.intersection(*(set(count.index[count >= LEAST]) for count in counts))))
    if both.empty:
        return np.full(len(frame), np.nan)
    without, with_them = (part[part["kind"].isin(both)].groupby("kind") for part in (alone, mostly))
    longer = with_them["took"].median() - without["took"].median()
    apart = with_them["took"].quantile(0.25) > without["took"].quantile(0.75)
    known = (longer / with_them["beside"].median()).where(apart, 0.0)
    return frame["kind"].map(known).to_numpy(dtype=np.float64)
