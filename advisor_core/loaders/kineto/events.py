"""Read the events of a Kineto trace once, in chunks, into columns of numbers and codes.

What an event is follows from its category, wherever it stands in the file. Kept are the events of the host, of the
device, of memory, and the flows between forward and backward; of each only what the canonical tables need.
``source_row`` is the ordinal of the event.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt

from advisor_core.contracts.tables import Int64Array
from advisor_core.loaders.kineto import words
from advisor_core.loaders.readers import times
from advisor_core.loaders.readers.columns import Interner
from advisor_core.loaders.readers.json_events import Batch
from advisor_core.loaders.readers.trace_event import TraceEvent, salvaged

Columns = dict[str, npt.NDArray[Any]]
MEMORY: Final = "[memory]"
"""The name of an event in which the allocator gives or takes memory."""
_NOT_RECORDED: Final = msgspec.Raw(b"")


class Args(msgspec.Struct, gc=False):
    """The arguments that the tables need. Any: a value of an unexpected type costs its column, not the chunk. Raw:
    nested lists, decoded once per distinct text."""

    external: Any = msgspec.field(name="External id", default=None)
    external_2021: Any = msgspec.field(name="external id", default=-1)
    correlation: Any = -1
    stream: Any = None
    device: Any = None
    graph: Any = msgspec.field(name="graph id", default=-1)
    shapes: msgspec.Raw = msgspec.field(name="Input Dims", default=_NOT_RECORDED)
    dtypes: msgspec.Raw = msgspec.field(name="Input type", default=_NOT_RECORDED)
    strides: msgspec.Raw = msgspec.field(name="Input Strides", default=_NOT_RECORDED)
    values: msgspec.Raw = msgspec.field(name="Concrete Inputs", default=_NOT_RECORDED)
    stack: Any = msgspec.field(name="Call stack", default="")
    python: Any = msgspec.field(name="Python id", default=-1)
    python_parent: Any = msgspec.field(name="Python parent id", default=-1)
    bytes: Any = msgspec.field(name="Bytes", default=0)
    address: Any = msgspec.field(name="Addr", default=-1)
    allocated: Any = msgspec.field(name="Total Allocated", default=None)
    reserved: Any = msgspec.field(name="Total Reserved", default=None)
    device_type: Any = msgspec.field(name="Device Type", default=0)
    device_id: Any = msgspec.field(name="Device Id", default=-1)
    collective: Any = msgspec.field(name="Collective name", default="")
    sent: Any = msgspec.field(name="In msg nelems", default=-1)
    received: Any = msgspec.field(name="Out msg nelems", default=-1)
    dtype: Any = ""
    group_size: Any = msgspec.field(name="Group size", default=-1)
    group: Any = msgspec.field(name="Process Group Name", default="")
    sequence: Any = msgspec.field(name="Seq", default=-1)


class Event(TraceEvent, gc=False):
    """An event of a Kineto trace."""

    args: Args | None = None


_decoder = msgspec.json.Decoder(list[Event], float_hook=str)
_NO_ARGS: Final = Args()
_RAW: Final = ("shapes", "dtypes", "strides", "values")


def decode(data: bytes) -> list[Event]:
    """The events of an array."""
    return _decoder.decode(data)


def salvage(data: bytes) -> Event | None:
    """As of `salvaged`."""
    return salvaged(data, Event, Args, _as_decoded)


def _as_decoded(name: str, value: Any) -> Any:
    return msgspec.Raw(json.dumps(value).encode()) if name in _RAW else value


_name, _cat, _pid, _tid, _ts, _dur, _ph, _id = map(attrgetter, ("name", "cat", "pid", "tid", "ts", "dur", "ph", "id"))
_GET: Final[Mapping[str, Callable[[Any], Any]]] = {name: attrgetter(name) for name in Args.__struct_fields__}


class Events:
    """Columns of the events read so far. Codes are those of ``interners``, by the name of the column."""

    def __init__(self) -> None:
        self.count = 0
        self.host: list[Columns] = []
        self.device: list[Columns] = []
        self.memory: list[Columns] = []
        self.flows: list[Columns] = []
        self.collectives: list[Columns] = []
        texts = (
            "name",
            "category",
            "shapes",
            "dtypes",
            "strides",
            "values",
            "stack",
            "phase",
            "collective",
            "group",
            "dtype",
        )
        self.interners: dict[str, Interner] = {name: Interner() for name in texts}

    def add(self, batch: Batch[Event]) -> None:
        """Keep what is needed of a batch."""
        events = np.empty(len(batch.elements), object)
        events[:] = batch.elements
        self.count += len(events)
        phases = self.interners["phase"]
        phase = phases.codes(list(map(_ph, batch.elements)))
        categories = self.interners["category"]
        category = categories.codes(list(map(_cat, batch.elements)))
        of_host, of_device = (
            _categories(categories, classify) for classify in (words.host_category, words.device_task)
        )

        def of(mask: npt.NDArray[np.bool_]) -> tuple[list[Event], Int64Array, npt.NDArray[Any]]:
            return events[mask].tolist(), batch.ordinals[mask], category[mask]

        spans = phase == phases["X"]
        self._add_host(*of(spans & of_host[category]))
        self._add_device(*of(spans & of_device[category]))
        of_flow = _categories(categories, words.flow_kind)
        self._add_flows(*of(np.isin(phase, [phases["s"], phases["f"]]) & of_flow[category]))
        self._add_memory(*of(phase == phases["i"]))

    def _add_host(self, events: list[Event], ordinals: Int64Array, category: npt.NDArray[Any]) -> None:
        if not events:
            return
        arguments = [event.args or _NO_ARGS for event in events]
        self.host.append(
            {
                **self._spans(events, ordinals, category),
                **self._numbers(arguments, "correlation", "python", "python_parent"),
                "thread": whole_numbers(list(map(_tid, events))),
                "external": _external(arguments),
                "shapes": self._raw("shapes", [args.shapes for args in arguments]),
                "dtypes": self._raw("dtypes", [args.dtypes for args in arguments]),
                "strides": self._raw(
                    "strides", [args.strides if _REPEATS.search(args.strides) else _NOT_RECORDED for args in arguments]
                ),
                "values": self._raw(
                    "values",
                    [
                        args.values if event.name in words.WITH_VALUES else _NOT_RECORDED
                        for event, args in zip(events, arguments, strict=True)
                    ],
                ),
                "stack": self.interners["stack"].codes(list(map(_GET["stack"], arguments))),
            }
        )
        self._add_collectives(arguments, ordinals)

    def _add_device(self, events: list[Event], ordinals: Int64Array, category: npt.NDArray[Any]) -> None:
        if not events:
            return
        arguments = [event.args or _NO_ARGS for event in events]
        streams = [
            event.tid if args.stream is None else args.stream for event, args in zip(events, arguments, strict=True)
        ]
        devices = [
            event.pid if args.device is None else args.device for event, args in zip(events, arguments, strict=True)
        ]
        self.device.append(
            {
                **self._spans(events, ordinals, category),
                **self._numbers(arguments, "correlation", "graph"),
                "stream": whole_numbers(streams),
                "device": whole_numbers(devices),
                "external": _external(arguments),
            }
        )
        self._add_collectives(arguments, ordinals)

    def _add_collectives(self, arguments: list[Args], ordinals: Int64Array) -> None:
        """The metadata of collectives, recorded with the operator or with the kernel, of which there are few."""
        places = [place for place, args in enumerate(arguments) if args.collective]
        if not places:
            return
        chosen = [arguments[place] for place in places]
        texts = {name: self.interners[name].codes([_GET[name](args) for args in chosen]) for name in _COLLECTIVE_TEXTS}
        self.collectives.append(
            {
                **texts,
                **self._numbers(chosen, "group_size", "sequence"),
                "elements": np.fmax(*(times.numbers([_GET[name](args) for args in chosen]) for name in _SIZES)),
                "source_row": ordinals[places],
            }
        )

    def _add_flows(self, events: list[Event], ordinals: Int64Array, category: npt.NDArray[Any]) -> None:
        if not events:
            return
        self.flows.append(
            {
                "kind": category,
                "end": self.interners["phase"].codes(list(map(_ph, events))),
                "flow": whole_numbers(list(map(_id, events))),
                "thread": whole_numbers(list(map(_tid, events))),
                "start_ns": times.points_ns(map(_ts, events)),
                "source_row": ordinals,
            }
        )

    def _add_memory(self, events: list[Event], ordinals: Int64Array, category: npt.NDArray[Any]) -> None:
        """Add the bytes that the allocator of the device gave (positive) and took back (negative); the host has type
        0."""
        places = [
            place
            for place, event in enumerate(events)
            if event.name == MEMORY and event.args is not None and event.args.device_type not in (0, "0")
        ]
        if not places:
            return
        events = [events[place] for place in places]
        arguments = [event.args or _NO_ARGS for event in events]
        self.memory.append(
            {
                **self._numbers(arguments, "address", "device_id"),
                **{
                    name: times.numbers(list(map(_GET[name], arguments))) for name in ("bytes", "allocated", "reserved")
                },
                "thread": whole_numbers(list(map(_tid, events))),
                "start_ns": times.points_ns(map(_ts, events)),
                "source_row": ordinals[places],
            }
        )

    def _spans(self, events: list[Event], ordinals: Int64Array, category: npt.NDArray[Any]) -> Columns:
        return {
            "name": self.interners["name"].codes(list(map(_name, events))),
            "category": category,
            "start_ns": times.points_ns(map(_ts, events)),
            "us": times.numbers(list(map(_dur, events))),
            "source_row": ordinals,
        }

    def _numbers(self, arguments: list[Args], *names: str) -> Columns:
        return {name: whole_numbers(list(map(_GET[name], arguments))) for name in names}

    def _raw(self, name: str, recorded: Iterable[msgspec.Raw]) -> npt.NDArray[Any]:
        texts = ["" if raw is _NOT_RECORDED else bytes(raw).decode("utf-8", "replace") for raw in recorded]
        return self.interners[name].codes(texts)


_REPEATS: Final = re.compile(rb"[\[ ,]0[\],]")
"""Strides of a tensor that is repeated along an axis: only these tell more than the shape."""
_COLLECTIVE_TEXTS: Final = ("collective", "group", "dtype")
_SIZES: Final = ("sent", "received")


def _categories(categories: Interner, kind: Callable[[str], str]) -> npt.NDArray[np.bool_]:
    """Mask of the known categories that are of a kind."""
    return np.array([bool(kind(str(category))) for category in categories], bool)


def _external(arguments: Iterable[Args]) -> Int64Array:
    """The id of the operator, in either spelling."""
    return whole_numbers([args.external_2021 if args.external is None else args.external for args in arguments])


def whole_numbers(values: Sequence[Any]) -> Int64Array:
    """int64 of numbers or texts that end in one (``stream 7``); -1 for what has none or does not fit."""
    try:
        return np.fromiter(values, np.int64, len(values))
    except (TypeError, ValueError, OverflowError):
        return np.fromiter(map(_whole, values), np.int64, len(values))


def _whole(value: Any) -> int:
    try:
        number = int(value.rpartition(" ")[2] if isinstance(value, str) else value)
    except (TypeError, ValueError, OverflowError):
        return -1
    return number if -(2**63) <= number < 2**63 else -1


def gathered(parts: list[Columns]) -> Columns | None:
    """The parts as one; None where there are none. Takes the parts out of the list, a column at a time: they are as
    large as what they become."""
    if not parts:
        return None
    taken = parts.copy()
    parts.clear()
    return {name: np.concatenate([part.pop(name) for part in taken]) for name in list(taken[0])}
