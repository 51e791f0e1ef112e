"""The amount of work of two devices in a step of a rank, and whether it is the same: by products, convolutions and
attentions, which the shapes tell whatever the kernels are called."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from advisor_core.compare.match import Match
from advisor_core.compare.work import paired_work
from advisor_core.contracts.computed import KINDS_OF_SHAPES
from advisor_core.result.comparison import Amounts
from advisor_core.result.work import Work

SAME = 0.9
"""Of the operations, what both compute alike where it is the same work. Our choice: another batch, sequence or model
changes nearly every product, while a format that fills up the first convolution, or a head that one side computes for
the last token only, changes few."""

KNOWN = 0.5
"""Of the kernel time, how much needs to have a bound for operations and bytes of the step to be told; as
`advisors.roofline.bounds.COUNTED`."""

TELLS = 0.9
"""Of the time of products, convolutions and attentions, how much needs to have shapes for their operations to be
compared. Our choice."""


@dataclass(frozen=True)
class SameWork:
    """``shared``: the share of the operations that both compute alike, ``None`` where shapes do not tell. ``before``
    and ``after``: FLOP of a step of a rank. ``trains_before`` and ``trains_after``: whether each side has a backward
    pass, ``None`` where both have one or neither has."""

    shared: float | None
    before: float
    after: float
    trains_before: bool | None = None
    trains_after: bool | None = None

    @property
    def same(self) -> bool | None:
        """Whether it is the same work; ``None`` where that is not known."""
        if self.trains_before != self.trains_after:
            return False
        return None if self.shared is None else self.shared >= SAME


def same_work(before: Work, after: Work) -> SameWork:
    """Both sides by what each computes, whatever the pass and the number of kernels.

    An attention may be computed with or without the half of its scores that a mask leaves out, and its gradient with
    its scores computed anew: of attentions the calls count, with the operations of the larger side as weight. Of all
    else the operations count: a GPU computes both gradients of a convolution in one call. A backward pass that only one
    side has is other work, whatever the shapes tell.
    """
    flops = before_flops, after_flops = _flops(before), _flops(after)
    passes = _has_backward(before), _has_backward(after)
    if None not in passes and passes[0] != passes[1]:
        return SameWork(_shared(before, after), before_flops, after_flops, passes[0], passes[1])
    if not _told(before) or not _told(after) or not all(flops):
        return SameWork(None, before_flops, after_flops)
    return SameWork(_shared(before, after), before_flops, after_flops)


def _shared(before: Work, after: Work) -> float | None:
    old, new = _of_shapes(before), _of_shapes(after)
    alike = weight = 0.0
    for key in old.keys() | new.keys():
        (calls, done), (other_calls, other_done) = old.get(key, (0.0, 0.0)), new.get(key, (0.0, 0.0))
        units = (calls, other_calls) if key[0] == "attention" else (done, other_done)
        size = max(done, other_done)
        weight += size
        alike += size * min(units) / max(units) if max(units) else 0.0
    return alike / weight if weight and old and new else None


def _has_backward(work: Work) -> bool | None:
    """Whether the steps have a backward pass, which types of kernels tell too; ``None`` where no kernels are known."""
    return any(row.in_pass == "backward" for row in work.computed) if work.computed else None


def _flops(work: Work) -> float:
    return sum(row.flops for row in work.computed) / work.rank_steps


def _told(work: Work) -> bool:
    """Whether shapes are known for most of the time of what they could be known for."""
    rows = [row for row in work.computed if row.kind in KINDS_OF_SHAPES]
    total = sum(row.ns for row in rows)
    return total > 0 and sum(row.ns for row in rows if row.what) >= TELLS * total


def _of_shapes(work: Work) -> dict[tuple[str, str], tuple[float, float]]:
    """Calls and FLOP of a step of a rank, by kind and what is computed."""
    sums: dict[tuple[str, str], tuple[float, float]] = {}
    for row in work.computed:
        if row.kind in KINDS_OF_SHAPES and row.what:
            calls, flops = sums.get((row.kind, row.what), (0.0, 0.0))
            sums[row.kind, row.what] = calls + row.calls / work.rank_steps, flops + row.flops / work.rank_steps
    return sums


def amounts(match: Match, with_steps: bool) -> Amounts | None:
    """The amounts of work of both sides, all roles together; ``None`` where what is computed is not known of one.
    ``with_steps``: whether the steps of both sides are compared."""
    pairs = [(before, after) for _, before, after in paired_work(match) if before.computed and after.computed]
    if not pairs:
        return None
    told = [same_work(*pair) for pair in pairs]
    shared = [one.shared for one in told]
    known = [share for share in shared if share is not None]
    flops = sum(one.before for one in told), sum(one.after for one in told)
    is_known = len(known) == len(shared) and all(flops)
    verdicts = [one.same for one in told]
    walls = match.before.mean.wall_ns, match.after.mean.wall_ns
    kernels = (
        sum(round(_kernel_ns(before)) for before, _ in pairs),
        sum(round(_kernel_ns(after)) for _, after in pairs),
    )
    samples = _samples(pairs)
    sides = [work for work, _ in pairs], [work for _, work in pairs]
    return Amounts(
        same=False if False in verdicts else None if None in verdicts else True,
        shared=min(known) if is_known else None,
        flops=flops if is_known else None,
        samples=samples,
        ns_per_sample={
            what: (round(walls[0] / counts[0]), round(walls[1] / counts[1])) for what, counts in samples.items()
        }
        if with_steps
        else {},
        ns_per_tflop=_per_tflop(walls, flops) if is_known and with_steps else None,
        kernel_ns=kernels,
        kernel_ns_per_tflop=_per_tflop(kernels, flops) if is_known else None,
        mfu=(_used(sides[0], walls[0], "computing_ns"), _used(sides[1], walls[1], "computing_ns")),
        bandwidth=(_used(sides[0], walls[0], "memory_ns"), _used(sides[1], walls[1], "memory_ns")),
    )


def _per_tflop(ns: tuple[int, int], flops: tuple[float, float]) -> tuple[int, int]:
    return round(ns[0] / flops[0] * 1e12), round(ns[1] / flops[1] * 1e12)


def _kernel_ns(work: Work) -> float:
    return sum(row.ns for row in work.computed) / work.rank_steps


def _samples(pairs: Sequence[tuple[Work, Work]]) -> dict[str, tuple[float, float]]:
    """Tokens and images of a step of a rank, where both sides of one role tell."""
    if len(pairs) != 1:
        return {}
    ((before, after),) = pairs
    return {
        what: (count / before.rank_steps, after.samples[what] / after.rank_steps)
        for what, count in before.samples.items()
        if count and after.samples.get(what)
    }


def _used(works: Sequence[Work], wall_ns: int, resource: str) -> float | None:
    """The time that the step needs of a resource at its peak, over its own time."""
    ns = bounded = used = 0.0
    for work in works:
        ns += sum(row.ns for row in work.computed) / work.rank_steps
        bounded += sum(row.bounded_ns for row in work.computed) / work.rank_steps
        used += sum(getattr(row, resource) for row in work.computed) / work.rank_steps
    return used / wall_ns if wall_ns > 0 and ns and bounded >= KNOWN * ns else None
