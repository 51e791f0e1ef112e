"""The roles of an iteration on one axis of time, and what lies between them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean

from advisor_core.job.clocks import CLOCKS_NS
from advisor_core.result.iteration import Iteration, RoleGap, RoleSpan
from advisor_core.result.run import RunResult


def compose_iteration(result: RunResult) -> Iteration | None:
    """``None`` where fewer than two roles, with times, were recorded."""
    steps = [
        RoleSpan(role=step.role, rank=step.rank, step=step.step, start_ns=step.start_ns, end_ns=step.end_ns)
        for step in result.profile.steps
        if step.role is not None and step.start_ns is not None and step.end_ns is not None
    ]
    if len({step.role for step in steps}) < 2:
        return None
    turns = _turns(steps)
    between = [min(s.start_ns for s in after) - max(s.end_ns for s in before) for before, after in pairwise(turns)]
    if max(between) > CLOCKS_NS:
        return Iteration(apart_ns=max(between))
    first = min(step.start_ns for step in steps)
    spans = [
        span.model_copy(update={"start_ns": span.start_ns - first, "end_ns": span.end_ns - first})
        for turn in turns
        for span in turn
    ]
    gaps = [_gap(before, after, max(0, ns)) for (before, after), ns in zip(pairwise(turns), between, strict=True)]
    return Iteration(spans=spans, gaps=gaps)


def _turns(steps: Sequence[RoleSpan]) -> list[list[RoleSpan]]:
    """The spans of each step of each role together, in order of time."""
    groups: dict[tuple[str, int | None], list[RoleSpan]] = {}
    for step in steps:
        groups.setdefault((step.role, step.step), []).append(step)
    turns = [sorted(turn, key=lambda span: span.rank) for turn in groups.values()]
    return sorted(turns, key=lambda turn: (min(span.start_ns for span in turn), turn[0].role))


def _gap(before: Sequence[RoleSpan], after: Sequence[RoleSpan], ns: int) -> RoleGap:
    last = max(before, key=lambda span: (span.end_ns, -span.rank))
    starts = {span.rank: span.start_ns for span in after}
    own = [starts[span.rank] - span.end_ns for span in before if span.rank in starts]
    mean = round(fmean(own)) if own else None
    return RoleGap(after=before[0].role, before=after[0].role, ns=ns, mean_ns=mean, last_rank=last.rank)
