"""The layers of dispatch: Python between operators, operators of the framework, calls into the runtime.

The first two are work of the threads that feed the device. A call into the runtime is work of theirs, too, or of the
thread that empties a task queue, beside them. What makes one layer quicker (fewer operators, bound threads, another
allocator) leaves the others as they are, and the step then waits for the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from advisor_core.api.facts import (
    HOST_EVENTS,
    PROFILE,
    Facts,
    HostActivity,
    HostChange,
    JudgedPart,
    Layer,
    bookings,
    fact,
    host_activity,
    host_pauses,
    joined,
    judged_parts,
    launches,
    matching,
    phases,
    replay,
    steps,
    union,
)
from advisors.host_dispatch.late_time import LATE_ACTIVITIES, late_pieces
from advisors.host_dispatch.pace import in_pace, outside_idle_phases
from advisors.host_dispatch.savings import layer_of
from advisors.phases import LEAST_SHARE

PYTHON, FRAMEWORK, RUNTIME = LATE_ACTIVITIES

ENOUGH = 0.5
"""Of what all layers win together: layers that win at least so much are named, and promised, without the others. Our
choice: most of it."""

SavedByEach = Callable[[Sequence[HostChange]], list[int]]


@dataclass(frozen=True)
class Dispatch:
    """Dispatch that is too slow. ``slow``: all of its work on the threads that feed the device; ``late``: the idle
    time that it costs; ``whole``: the work of each layer; ``quicker``: what each leaves out if it keeps pace
    with the device and is never late. ``awaited``: the layers that the steps wait for, as of `awaited_layers`;
    ``awaited_ns``: what these save; ``alone_ns`` and ``on_top_ns``: what each of the others saves by itself and on top
    of them. Of all recorded steps, long run. ``inside``: of a recording of several parts, those that the late time lies
    in; ``None`` all of it."""

    slow: Layer
    late: Layer
    whole: Mapping[str, HostChange]
    quicker: Mapping[str, HostChange]
    awaited: tuple[str, ...]
    awaited_ns: int
    alone_ns: Mapping[str, int]
    on_top_ns: Mapping[str, int]
    inside: Layer | None = None

    @property
    def left_share(self) -> float:
        """The part of their present host time that the awaited layers may take, where the host is late: while prefill
        keeps the device busy it may take as long as it does, which says nothing of decode. NaN without a layer."""
        took, left_out = (sum(self._host_ns(of[name]) for name in self.awaited) for of in (self.whole, self.quicker))
        return 1 - left_out / took if took else float("nan")

    def _host_ns(self, change: HostChange) -> int:
        return _total(change if self.inside is None else part_of(change, self.inside))


@fact(
    "dispatch_layers",
    needs=(steps, bookings, HOST_EVENTS, launches, replay, PROFILE),
    wants=(host_activity, host_pauses, phases, judged_parts),
)
def dispatch_layers(facts: Facts) -> Dispatch:
    """The layers of dispatch that a step waits for where the host launches late, and those that come next."""
    host = facts.get(host_activity)
    slow = outside_idle_phases(facts, _dispatching(host))
    pieces = late_pieces(facts)
    late = outside_idle_phases(facts, union(pieces["start_ns"].to_numpy(), pieces["end_ns"].to_numpy()))
    whole = {} if host is None else work_of_layers(facts, host, slow)
    quicker = {name: joined([part_of(one, late), in_pace(facts, slow, one)]) for name, one in whole.items()}
    if host is None or not len(late):
        return Dispatch(slow, late, whole, quicker, (), 0, {}, {})
    found = _judged(slow, late, whole, quicker, facts[replay].saved_by_each)
    return replace(found, inside=_with_most(facts.get(judged_parts) or (), late))


def _with_most(parts: Sequence[JudgedPart], late: Layer) -> Layer | None:
    """The stretches of the parts that have a share of the late time that counts; ``None`` without parts."""
    shares = [within(late, part.inside).total() for part in parts]
    chosen = [part.inside for part, ns in zip(parts, shares, strict=True) if ns >= LEAST_SHARE * sum(shares) > 0]
    if not chosen:
        return None
    return union(np.concatenate([layer.starts for layer in chosen]), np.concatenate([layer.ends for layer in chosen]))


def _judged(
    slow: Layer, late: Layer, whole: Mapping[str, HostChange], quicker: Mapping[str, HostChange], saved: SavedByEach
) -> Dispatch:
    awaited, won = awaited_layers(quicker, saved)
    others = [name for name in quicker if name not in awaited]
    first = [quicker[name] for name in awaited]
    asked = [quicker[name] for name in others] + [joined([*first, quicker[name]]) for name in others]
    found = saved(asked) if asked else []
    alone, together = found[: len(others)], found[len(others) :]
    return Dispatch(
        slow,
        late,
        whole,
        quicker,
        awaited,
        won,
        dict(zip(others, alone, strict=True)),
        {name: max(0, ns - won) for name, ns in zip(others, together, strict=True)},
    )


def _dispatching(host: HostActivity | None) -> Layer:
    """The time in which the host was in Python, in operators or in runtime calls."""
    if host is None:
        return HostChange().feeding
    labels = host.labels
    chosen = np.isin(labels.ids, [host.activities.index(activity) for activity in LATE_ACTIVITIES])
    return Layer(labels.starts[chosen], labels.ends[chosen], labels.ids[chosen])


def work_of_layers(facts: Facts, host: HostActivity, slow: Layer) -> dict[str, HostChange]:
    """All the work of each layer. ``slow``: the moments at which the host is at dispatch, device time."""
    events, skew = facts[HOST_EVENTS], facts[launches].skew_ns
    fed = np.isin(events["thread"].to_numpy(), list(host.feeders))
    category = events["category"]
    calls = layer_of(events, np.flatnonzero(fed & (category == "runtime").to_numpy()), skew)
    marks = matching(events["name"], facts[PROFILE].vocabulary.annotation)  # around Python, whatever their category
    operators = layer_of(events, np.flatnonzero(fed & category.isin(("cpu_op", "enqueue")).to_numpy() & ~marks), skew)
    at_runtime, at_operators = within(slow, calls), within(slow, operators)
    launching = host.launching
    emptying = launching.ids == host.activities.index(RUNTIME)
    behind_queue = union(launching.starts[emptying], launching.ends[emptying])
    return {
        PYTHON: HostChange(slow.without(operators).without(calls)),
        FRAMEWORK: HostChange(at_operators.without(calls)),
        RUNTIME: HostChange(at_runtime, behind_queue),
    }


def within(layer: Layer, other: Layer) -> Layer:
    """The part of ``layer`` in which ``other`` has something."""
    return layer.without(layer.without(other))


def part_of(change: HostChange, layer: Layer) -> HostChange:
    """The part of a change that is in ``layer``."""
    return HostChange(within(change.feeding, layer), within(change.launching, layer))


def awaited_layers(changes: Mapping[str, HostChange], saved_by_each: SavedByEach) -> tuple[tuple[str, ...], int]:
    """The layers that a step waits for, the one that wins most alone first: as few as win `ENOUGH` of what all win; and
    what they save. ``changes``: what a quicker one leaves out; ``saved_by_each``: replays changes, ns."""
    names = list(changes)
    *alone, whole = saved_by_each([*(changes[name] for name in names), joined(list(changes.values()))])
    chosen: list[str] = []
    won = 0
    left = dict(zip(names, alone, strict=True))
    while left and (not chosen or won < ENOUGH * whole):
        best = max(left, key=lambda name: (left[name], _total(changes[name])))
        chosen.append(best)
        won = left.pop(best)
        rest = list(left)
        together = saved_by_each([joined([changes[one] for one in (*chosen, name)]) for name in rest]) if rest else []
        left = dict(zip(rest, together, strict=True))
    return tuple(chosen), won


def _total(change: HostChange) -> int:
    """The host time that a change leaves out, ns."""
    return change.feeding.total() + change.launching.total()


FACTS = (dispatch_layers,)
