"""What the kernels of a rank compute, and of all ranks together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from advisor_core.contracts.computed import COMPUTED_COLUMNS, COMPUTED_WORK, ComputedWork
from advisor_core.contracts.facts import Fact
from advisor_core.facts.grouping import aggregated
from advisor_core.facts.store import FactStore
from advisor_core.plugins.host import Host
from advisor_core.result.work import ChipPeaks, ComputedTime

LISTED = 400
"""As `advisor_core.run.work_times.LISTED`: a training step of a large model has 100 to 250 rows."""

_KEYS = ["kind", "what", "dtype", "block", "pass"]
_SUMS = [column.name for column in COMPUTED_COLUMNS if column.name not in _KEYS]


def rank_computed(host: Host, store: FactStore) -> ComputedWork | None:
    """What the kernels of a rank compute; ``None`` where no plugin tells, or where it is not known. Raises TypeError
    for a fact of this name that is something else."""
    told: Fact[object] | None = host.facts.get(COMPUTED_WORK)
    value = None if told is None else store.get(told)
    if value is not None and not isinstance(value, ComputedWork):
        raise TypeError(f"the fact {COMPUTED_WORK!r} is no ComputedWork: {type(value).__name__}")
    return value


def summed_computed(ranks: Sequence[ComputedWork]) -> list[ComputedTime]:
    """The sums over the ranks, largest first; what is not listed by itself as a row per kind."""
    if not ranks:
        return []
    every = _summed(pd.concat([rank.rows for rank in ranks]), _KEYS)
    every = every.sort_values(["ns", *_KEYS], ascending=[False, *[True] * len(_KEYS)], kind="stable")
    left = _summed(every.iloc[LISTED:], ["kind"])
    unlisted = dict.fromkeys(("dtype", "block", "pass"), "") | {"what": None}
    rows: list[dict[Any, Any]] = [*every.head(LISTED).to_dict("records")]
    rows += [row | unlisted for row in left.to_dict("records")]
    return [
        ComputedTime.model_validate({("in_pass" if name == "pass" else name): value for name, value in row.items()})
        for row in rows
    ]


def _summed(rows: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
    summed: pd.DataFrame = aggregated(rows, keys, sort=True, **{name: (name, "sum") for name in _SUMS})
    return summed


def summed_samples(ranks: Sequence[ComputedWork]) -> dict[str, int]:
    """What all ranks read together; nothing of what only some of them are known to read."""
    shared = [name for name in (ranks[0].samples if ranks else ()) if all(name in rank.samples for rank in ranks)]
    return {name: sum(rank.samples[name] for rank in ranks) for name in shared}


def chip_peaks(ranks: Sequence[ComputedWork]) -> ChipPeaks | None:
    """The rates that all ranks agree in to one percent, the lowest of them: clocks are measured. ``None`` where no
    chip is known."""
    if not ranks or not all(rank.peak_flops or rank.peak_bytes for rank in ranks):
        return None
    flops = {
        name: min(rank.peak_flops[name] for rank in ranks)
        for name in ranks[0].peak_flops
        if _agree([rank.peak_flops.get(name) for rank in ranks])
    }
    moved = [rank.peak_bytes for rank in ranks]
    known = [rate for rate in moved if rate is not None]
    return ChipPeaks(flops=flops, bytes_per_second=min(known) if _agree(moved) else None)


_SAME = 0.01


def _agree(rates: Sequence[float | None]) -> bool:
    known = [rate for rate in rates if rate]
    return len(known) == len(rates) and max(known) <= (1 + _SAME) * min(known)
