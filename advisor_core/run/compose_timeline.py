"""The timeline of a job: the lanes of its ranks, how far their clocks are apart, and who waited for whom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from advisor_core.contracts.profile import RankInput
from advisor_core.facts.ledger.bookings import LATENCY_NS
from advisor_core.job.calls import same_calls
from advisor_core.job.clocks import CLOCKS_NS, clock_offsets
from advisor_core.job.shown import Shown, shown
from advisor_core.result.timeline import Arrow, RankTimeline, Timeline
from advisor_core.run.rank import Compared, Recorded
from advisor_core.run.rank_timeline import RankTimes, Wanted

ARROWS = 2_000
"""Waits that are shown as arrows, the longest: more cannot be told apart. Our choice."""


def wanted(told: Mapping[RankInput, Compared], recorded: Mapping[RankInput, Recorded]) -> dict[RankInput, Compared]:
    """``told`` with what the timeline wants of each rank: of each role those that are shown share the room with those
    of all others."""
    roles: dict[str, dict[int, RankInput]] = {}
    for source in told:
        roles.setdefault(source.role, {})[source.rank] = source
    chosen = {role: _shown(ranks, told, recorded) for role, ranks in roles.items()}
    sharing = sum(len(of_role.ranks) for of_role in chosen.values())
    asked: dict[RankInput, Compared] = {}
    for role, ranks in roles.items():
        calls = _common_calls([recorded[source] for source in ranks.values() if source in recorded])
        for rank, source in ranks.items():
            want = None
            if (why := chosen[role].ranks.get(rank)) is not None:
                own = calls.loc[calls["rank"] == rank, ["work", "call"]].astype("int64")
                want = Wanted(sharing, why, chosen[role].steps, own)
            asked[source] = replace(told[source], wanted=want)
    return asked


def _shown(
    ranks: Mapping[int, RankInput], told: Mapping[RankInput, Compared], recorded: Mapping[RankInput, Recorded]
) -> Shown:
    if not any(source in recorded for source in ranks.values()):  # the only rank of its role
        return Shown(dict.fromkeys(ranks, "all"), ())
    walls = {
        rank: {step: ns for step, ns in recorded[source].walls.items() if step != told[source].left_out}
        for rank, source in ranks.items()
        if source in recorded
    }
    return shown(walls, {rank: told[source].waits for rank, source in ranks.items()})


def _common_calls(recorded: Sequence[Recorded]) -> pd.DataFrame:
    """``rank``, ``work`` and ``call`` of the calls that are known to be the same on several ranks."""
    world = max((one.world_size or 0 for one in recorded), default=0)
    same = same_calls({one.rank: one.calls for one in recorded if one.calls is not None}, world)
    found: pd.DataFrame = same[same["known"].astype(bool)][["rank", "work", "call"]]
    return found


def timeline(given: Sequence[RankTimes | None], recorded_ranks: int) -> Timeline | None:
    """The timeline of the ranks that gave something; ``None`` where none did."""
    ranks = sorted((one for one in given if one is not None), key=lambda one: one.timeline.rank)
    if not ranks:
        return None
    calls = pd.concat([one.calls.assign(rank=one.timeline.rank) for one in ranks], ignore_index=True)
    last = {one.timeline.rank: max(step.end_ns for step in one.timeline.steps) for one in ranks}
    ahead = clock_offsets(calls, last)
    shown = [_aligned(one.timeline, ahead[one.timeline.rank]) for one in ranks]
    arrows = _arrows(ranks, calls, {rank.rank: rank for rank in shown})
    return Timeline(ranks=shown, recorded_ranks=recorded_ranks, arrows=arrows[:ARROWS], waits=len(arrows))


def _aligned(rank: RankTimeline, ahead_ns: int) -> RankTimeline:
    """Clocks that are no further apart than the ends of one call on one clock are taken to be the same, so that times
    stay those of the recording."""
    if abs(ahead_ns) <= LATENCY_NS:
        return rank
    return rank.model_copy(update={"ahead_ns": ahead_ns, "apart": abs(ahead_ns) > CLOCKS_NS})


def _arrows(ranks: Sequence[RankTimes], calls: pd.DataFrame, shown: dict[int, RankTimeline]) -> list[Arrow]:
    """The waits whose two ends are shown, the longest first. One that ended before the rank that it is for arrived is
    none: the clocks or the names of calls mislead."""
    waits = pd.concat([one.waits.assign(rank=one.timeline.rank) for one in ranks], ignore_index=True)
    both = waits.merge(calls, on="call", suffixes=("", "_of_last"))
    both = both[both["rank"] != both["rank_of_last"]]
    alone = both.groupby(["call", "rank"])["rank_of_last"].transform("nunique") == 1
    both = both[(both["rank_of_last"] == both["last_rank"]) | ((both["last_rank"] < 0) & alone)]
    ahead = {rank: one.ahead_ns for rank, one in shown.items()}
    arrived = both["start_ns"] - both["rank_of_last"].map(ahead)
    ended = both["end_ns"] - both["rank"].map(ahead)
    apart = {rank for rank, one in shown.items() if one.apart}
    possible = both[(arrived <= ended + LATENCY_NS) & ~both["rank"].isin(apart) & ~both["rank_of_last"].isin(apart)]
    order = np.lexsort((possible["rank"], possible["end_ns"], -possible["ns"]))
    rows = possible.iloc[order][["rank_of_last", "stream", "start_ns", "rank", "end_ns", "ns"]]
    return [
        Arrow(last_rank=last, stream=stream, start_ns=start, rank=rank, end_ns=end, ns=ns)
        for last, stream, start, rank, end, ns in rows.itertuples(index=False, name=None)
    ]
