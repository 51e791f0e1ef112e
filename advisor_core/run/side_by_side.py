"""The ranks that matter over one step, side by side on one clock, and the passes over the stages of a pipeline."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from advisor_core.job.clocks import CLOCKS_NS
from advisor_core.job.job_graph import JobGraph
from advisor_core.job.shown import SHOWN_RANKS
from advisor_core.result.balance import Balance
from advisor_core.result.finding import Finding
from advisor_core.result.layout import Layout
from advisor_core.result.plan import Owner, Plan
from advisor_core.result.side_by_side import (
    Pass,
    PipelinePasses,
    RankLane,
    Reason,
    SideBySide,
    StagePasses,
)
from advisor_core.run.rank_lane import StepLane

_Lanes = Mapping[int, StepLane]

Joined = Callable[[Sequence[int]], JobGraph | None]
"""The graph in which these ranks, and maybe others, are joined by their calls; ``None`` where one of them has none."""


def side_by_side(
    lanes: _Lanes, reasons: Mapping[int, Sequence[Reason]], clocks: Joined, layout: Layout
) -> SideBySide | None:
    """``lanes``: by rank; ``reasons``: as of `reasons_to_show`. ``None`` of fewer than two ranks."""
    if len(lanes) < 2:
        return None
    chosen = {rank: lane for rank, lane in lanes.items() if len(lanes) <= SHOWN_RANKS or rank in reasons}
    ahead = _ahead(sorted(chosen), clocks)
    origin = _origin(chosen, ahead)
    return SideBySide(
        step=_id(next(iter(chosen.values()))),
        clocks="none" if ahead is None else "calls",
        ranks=len(lanes),
        lanes=[
            RankLane(
                rank=rank,
                stage=None if layout.stages == 1 else layout.stage(rank),
                reasons=list(reasons.get(rank, ())),
                ahead_ns=0 if ahead is None else ahead[rank],
                start_ns=lane.start_ns - origin[rank],
                end_ns=lane.end_ns - origin[rank],
                intervals=[
                    (start + lane.start_ns - origin[rank], end + lane.start_ns - origin[rank], key)
                    for start, end, key in lane.intervals
                ],
            )
            for rank, lane in sorted(chosen.items())
        ],
    )


def reasons_to_show(
    lanes: _Lanes, balance: Balance | None, plan: Plan | None, path: Sequence[Owner], findings: Sequence[Finding]
) -> dict[int, list[Reason]]:
    """The ranks that explain a job, with why; of several that are alike the lowest."""
    found: dict[int, list[Reason]] = {}

    def most(reason: Reason, values: Mapping[int, float | None]) -> None:
        known = {rank: value for rank, value in values.items() if value and rank in lanes}
        if known:
            found.setdefault(max(known, key=lambda rank: (known[rank], -rank)), []).append(reason)

    about = {finding.fingerprint: finding.rank for finding in findings}
    planned = [about.get(action.finding) for action in plan.actions] if plan is not None else []
    most("plan", {rank: 1.0 for rank in planned[:1] if rank is not None})
    waited: Counter[int] = Counter()
    for owner in path:
        if owner.rank is not None:
            waited[owner.rank] += owner.ns
    most("path", waited)
    balanced = balance.ranks if balance is not None else []
    most("slowdown", {rank.rank: (rank.slowdown or 1.0) - 1 for rank in balanced})
    walls = {rank: lane.end_ns - lane.start_ns for rank, lane in lanes.items()}
    most("slowest", walls)
    most("waiting", {rank.rank: rank.waiting_ns for rank in balanced})
    if walls:
        middle = sorted(walls, key=lambda rank: (walls[rank], rank))[(len(walls) - 1) // 2]
        found.setdefault(middle, []).append("median")
    return found


def stage_passes(
    lanes: _Lanes, reasons: Mapping[int, Sequence[Reason]], clocks: Joined, layout: Layout
) -> PipelinePasses | None:
    """The passes over the stages of one pipeline: the one that has the first rank that is to show. ``None`` where fewer
    than two stages of it are known."""
    stages, world = layout.stages, layout.world_size
    if not stages or stages < 2 or not world:
        return None
    stride = world // stages
    known = {rank: lane for rank, lane in lanes.items() if lane.passes is not None and len(lane.passes)}
    pipelines: dict[int, list[int]] = {}
    for rank in sorted(known):
        pipelines.setdefault(rank % stride, []).append(rank)
    complete = max(map(len, pipelines.values()), default=0)
    if complete < 2:
        return None
    wanted = [rank % stride for rank in reasons]
    first = next((one for one in wanted if len(pipelines.get(one, ())) == complete), None)
    own = pipelines[first] if first is not None else next(p for p in pipelines.values() if len(p) == complete)
    ahead = _ahead(own, clocks)
    origin = _origin({rank: known[rank] for rank in own}, ahead)
    found = {rank: _passes(known[rank], origin[rank]) for rank in own}
    begin = min(one.start_ns for passes in found.values() for one in passes)
    end = max(one.end_ns for passes in found.values() for one in passes)
    counts = {
        sum(one.backward is backward for one in passes) for passes in found.values() for backward in (False, True)
    }
    return PipelinePasses(
        step=_id(known[own[0]]),
        clocks="none" if ahead is None else "calls",
        stages=[
            StagePasses(
                stage=rank // stride,
                rank=rank,
                passes=passes,
                between_ns=end - begin - sum(one.end_ns - one.start_ns for one in passes),
            )
            for rank, passes in found.items()
        ],
        of_stages=stages,
        micro_batches=counts.pop() if len(counts) == 1 else None,
    )


def _id(lane: StepLane) -> int | None:
    return lane.step if lane.step >= 0 else None


def _passes(lane: StepLane, origin: int) -> list[Pass]:
    assert lane.passes is not None
    columns = (lane.passes[name].tolist() for name in ("backward", "number", "start_ns", "end_ns"))
    return [
        Pass(backward=backward, number=number, start_ns=start - origin, end_ns=end - origin)
        for backward, number, start, end in zip(*columns, strict=True)
    ]


def _ahead(ranks: Sequence[int], clocks: Joined) -> dict[int, int] | None:
    """By how much the clock of each rank is ahead; ``None`` where that is not known of all of them: one has no call in
    common with the others, or was recorded at another time."""
    job = clocks(ranks)
    if job is None:
        return None
    offsets = {model.rank: ns for model, ns in zip(job.models, job.offset_ns, strict=True)}
    joined = set(job.calls["rank"].tolist())
    if not all(rank in joined and abs(offsets[rank]) <= CLOCKS_NS for rank in ranks):
        return None
    return {rank: offsets[rank] for rank in ranks}


def _origin(lanes: _Lanes, ahead: Mapping[int, int] | None) -> dict[int, int]:
    """The moment of each rank's own clock that times count from."""
    if ahead is None:
        return {rank: lane.start_ns for rank, lane in lanes.items()}
    first = min(lane.start_ns - ahead[rank] for rank, lane in lanes.items())
    return {rank: first + ahead[rank] for rank in lanes}
