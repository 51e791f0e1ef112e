"""The spread over the ranks of what a step consists of, out of their ledgers, operators and collectives."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from advisor_core.job.plan import WORTH
from advisor_core.result.run import LedgerStep, MeanStep
from advisor_core.result.spread import RankTime, Spread
from advisor_core.run.compose_mean_steps import rank_means
from advisor_core.run.work_times import RankWork

QUARTILES_FROM = 4
"""Ranks that have quartiles: of fewer these say nothing that the least and the most do not."""

FENCE = 1.5
"""Beyond the outer quartiles by so many times their distance lie outliers: docs/sources.md#outliers."""

LISTED = 24
"""Rows of a kind, those that take longest on some rank; our choice."""

OUTLIERS = 16
"""Outliers that are named, the furthest; our choice."""

_WAIT = "communication/wait"
_NOT_TOLD = "communication/unknown"
_DIVIDED = ("communication", "idle")
"""Parts that are shown by what they consist of as well; of computing the operators tell that."""

_Times = Mapping[int, int]


def spreads(ledger: Iterable[LedgerStep], works: Mapping[int, RankWork]) -> list[Spread]:
    """``works``: of the ranks whose operators are known. Nothing where fewer than two ranks are to compare."""
    means = {mean.rank or 0: mean for mean in rank_means(ledger).values()}
    if len(means) < 2:
        return []
    step_ns = sum(mean.wall_ns for mean in means.values()) / len(means)
    worth = WORTH * step_ns
    found = [_spread("part", name, times, worth) for name, times in _parts(means).items()]
    if len(works) > 1:
        types = {rank: _summed(work.operators, ["type"], work.steps) for rank, work in works.items()}
        kinds = {rank: _summed(work.collectives, ["operation", "members"], work.steps) for rank, work in works.items()}
        found += _longest(_spread("operator", name, times, worth) for (name,), times in _by_name(types))
        found += _longest(
            _spread("collective", name, times, worth, None if members < 0 else members)
            for (name, members), times in _by_name(kinds)
        )
    return [spread for spread in found if spread.most.ns >= worth]


def phase_spreads(work: Mapping[str, Mapping[int, int]], step_ns: float) -> list[Spread]:
    """The spread of phases. ``work``: by phase, the time without waiting of each rank that has it; ``step_ns``: all
    phases together."""
    return [_spread("phase", phase, times, WORTH * step_ns) for phase, times in work.items() if len(times) > 1]


def _parts(means: Mapping[int, MeanStep]) -> dict[str, dict[int, int]]:
    """Rank to ns by part. How long a rank waits is not known where the ledger does not tell waiting from moving."""
    trunks = {name: dict.fromkeys(means, 0) for name in ("compute", "communication", "idle")}
    divided: dict[str, dict[int, int]] = {}
    waiting: dict[int, int] = {}
    for rank, mean in means.items():
        waits = 0
        for path, ns in mean.entries.items():
            if path.startswith(_WAIT):
                waits += ns
                continue
            trunk, *rest = path.split("/")
            trunks.setdefault(trunk, dict.fromkeys(means, 0))[rank] += ns
            if rest and trunk in _DIVIDED:
                divided.setdefault(f"{trunk}/{rest[0]}", dict.fromkeys(means, 0))[rank] += ns
        if waits or not mean.entries.get(_NOT_TOLD):
            waiting[rank] = waits
    parts = {name: trunks.pop(name) for name in ("compute", "communication")}
    if len(waiting) > 1:
        parts[_WAIT] = waiting
    parts |= dict(sorted(trunks.items()))
    return parts | {name: times for name, times in sorted(divided.items()) if times != parts[name.split("/")[0]]}


def _summed(rows: pd.DataFrame, by: list[str], steps: int) -> pd.Series:
    return rows.groupby(by)["ns"].sum() // steps


def _by_name(ranks: Mapping[int, pd.Series]) -> Iterator[tuple[tuple[Any, ...], dict[int, int]]]:
    """Rank to ns by name."""
    table = pd.DataFrame(dict(ranks)).fillna(0).astype("int64")
    for name, row in zip(table.index.tolist(), table.to_numpy().tolist(), strict=True):
        yield name if isinstance(name, tuple) else (name,), dict(zip(map(int, table.columns), row, strict=True))


def _longest(found: Iterable[Spread]) -> list[Spread]:
    return sorted(found, key=lambda spread: (-spread.most.ns, spread.name, spread.members or 0))[:LISTED]


def _spread(kind: str, name: str, times: _Times, worth: float, members: int | None = None) -> Spread:
    ordered = [RankTime(rank=rank, ns=ns) for rank, ns in sorted(times.items(), key=lambda item: (item[1], item[0]))]
    most = max(times, key=lambda rank: (times[rank], -rank))
    quartiles = None
    if len(ordered) >= QUARTILES_FROM:
        low, middle, high = np.quantile([time.ns for time in ordered], [0.25, 0.5, 0.75]).round().astype(int).tolist()
        quartiles = (low, middle, high)
    return Spread.model_validate(
        {
            "kind": kind,
            "name": name,
            "members": members,
            "ranks": len(ordered),
            "least": ordered[0],
            "quartiles": quartiles,
            "most": RankTime(rank=most, ns=times[most]),
            "outliers": [] if quartiles is None else _outliers(ordered, quartiles[0], quartiles[2], worth),
        }
    )


def _outliers(ordered: list[RankTime], low: int, high: int, worth: float) -> list[RankTime]:
    reach = max(FENCE * (high - low), worth)
    beyond = {time.rank: max(low - time.ns, time.ns - high) for time in ordered}
    far = [time for time in ordered if beyond[time.rank] > reach]
    return sorted(far, key=lambda time: (-beyond[time.rank], time.rank))[:OUTLIERS]
