"""Ways in which a trace of events gets damaged that leave it well-formed: events that are lost, doubled or out of
order, categories and members that were not written, values of another type. The same seed does the same damage."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

Event = dict[str, Any]
OfEvents = Callable[[list[Event], Random], list[Event]]

DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")
RUNTIME = ("cuda_runtime", "cuda_driver")
FLOWS = ("ac2g",)
OPERATORS = ("cpu_op",)
WRONG: tuple[Any, ...] = (None, "x", [], {}, True, -1, "NaN")


def of(*categories: str) -> Callable[[Event], bool]:
    return lambda event: str(event.get("cat")).lower() in categories


def _steps(event: Event) -> bool:
    return str(event.get("name")).startswith("ProfilerStep#")


def dropped(chosen: Callable[[Event], bool], share: float = 1.0) -> OfEvents:
    """Without a share of the events of a kind."""
    return lambda events, chance: [event for event in events if not (chosen(event) and chance.random() < share)]


def doubled(chosen: Callable[[Event], bool], share: float = 1.0) -> OfEvents:
    """A share of the events of a kind stands twice, one behind the other."""
    return lambda events, chance: [
        event for event in events for _ in range(2 if chosen(event) and chance.random() < share else 1)
    ]


def without(member: str, chosen: Callable[[Event], bool], share: float = 1.0) -> OfEvents:
    """Events of a kind have lost a member."""

    def change(events: list[Event], chance: Random) -> list[Event]:
        return [
            {key: value for key, value in event.items() if key != member}
            if chosen(event) and chance.random() < share
            else event
            for event in events
        ]

    return change


def mistyped(member: str, chosen: Callable[[Event], bool], share: float = 0.3) -> OfEvents:
    """A member of events of a kind has a value of another type."""

    def change(events: list[Event], chance: Random) -> list[Event]:
        return [
            {**event, member: chance.choice(WRONG)} if chosen(event) and chance.random() < share else event
            for event in events
        ]

    return change


def scaled(member: str, factor: float, chosen: Callable[[Event], bool]) -> OfEvents:
    """Times of events of a kind are in another unit."""
    return lambda events, chance: [
        {**event, member: event[member] * factor} if chosen(event) and member in event else event for event in events
    ]


def shifted(chosen: Callable[[Event], bool], by_us: float) -> OfEvents:
    """Events of a kind have the times of another clock."""
    return lambda events, chance: [
        {**event, "ts": event["ts"] + by_us} if chosen(event) and "ts" in event else event for event in events
    ]


def shuffled(events: list[Event], chance: Random) -> list[Event]:
    return chance.sample(events, len(events))


def reversed_order(events: list[Event], chance: Random) -> list[Event]:
    return events[::-1]


def _any(event: Event) -> bool:
    return event.get("ph") == "X"


_KINDS: Sequence[tuple[str, Callable[[Event], bool]]] = (
    ("device", of(*DEVICE)),
    ("runtime", of(*RUNTIME)),
    ("flows", of(*FLOWS)),
    ("operators", of(*OPERATORS)),
    ("steps", _steps),
)

OF_EVENTS: dict[str, OfEvents] = {
    **{f"drop-all-{name}": dropped(kind) for name, kind in _KINDS},
    **{f"drop-some-{name}": dropped(kind, 0.3) for name, kind in _KINDS},
    **{f"double-all-{name}": doubled(kind) for name, kind in _KINDS},
    **{f"double-some-{name}": doubled(kind, 0.3) for name, kind in _KINDS},
    **{
        f"no-{member}-{name}": without(member, kind, 0.3)
        for member in ("ts", "dur", "args")
        for name, kind in _KINDS[:4]
    },
    **{f"no-{member}-anywhere": without(member, _any) for member in ("ts", "dur", "args", "cat")},
    **{
        f"wrong-{member}-{name}": mistyped(member, kind)
        for member in ("ts", "dur", "args")
        for name, kind in _KINDS[:2]
    },
    **{f"nanoseconds-{name}": scaled("dur", 1_000, kind) for name, kind in (*_KINDS[:2], _KINDS[3])},
    "early-device": shifted(of(*DEVICE), -5_000),
    "drop-any": dropped(_any, 0.3),
    "double-any": doubled(_any),
    "shuffled": shuffled,
    "reversed": reversed_order,
}


def rewritten(trace: bytes, change: OfEvents, chance: Random) -> bytes:
    """A trace, compressed or not, with other events."""
    body = json.loads(gzip.decompress(trace) if trace[:2] == b"\x1f\x8b" else trace)
    body["traceEvents"] = change(body["traceEvents"], chance)
    return gzip.compress(json.dumps(body).encode(), mtime=0)
