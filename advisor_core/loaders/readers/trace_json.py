"""Read trace_view.json into the tables of the host, the device, communication, flows, overlap, clock and counters.

Read once, in chunks; per chunk the events of each process become columns of numbers and codes, and only those that its
lane needs. Lanes are known by the name of their process, which a metadata event gives anywhere in the file: events of
a process that has no name yet keep all columns until the end. ``source_row`` is the ordinal of the event.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec
import numpy as np
import pandas as pd

from advisor_core.contracts import tables
from advisor_core.contracts.missing import Missing, Unavailable
from advisor_core.contracts.tables import Int64Array, PositionKind
from advisor_core.loaders import ascend_words as vocabulary
from advisor_core.loaders.readers import counters, times
from advisor_core.loaders.readers.columns import Interner
from advisor_core.loaders.readers.files import HashedFile
from advisor_core.loaders.readers.json_events import CHUNK_BYTES, Batch, ChunkIndex, Damage, ElementReader
from advisor_core.loaders.readers.problems import SHOWN, Problems, quoted
from advisor_core.loaders.readers.trace_event import TraceEvent, salvaged
from advisor_core.text.messages import message

if TYPE_CHECKING:
    import numpy.typing as npt

_FREQUENCY: Final = "AI Core Freq"
_DEVICE_LANES: Final = ("hardware", "communication")
_MARKS: Final = frozenset({"marker", "push/pop", "start/end", "marker_ex"})
"""The ``event_type`` of a mark (ENUM_MSTX_EVENT_TYPE of databases). The exporter names the lane of marks after the
executable of the process, so that its events alone tell it."""
_HOST_LANES: Final = ("python", "mindspore", "gc", "os", "mstx", "cann")
_CALLS: Final = "runtime"
"""The category of the calls into CANN, whose lane has its name."""
_FIRST_BIG_FLOW: Final = -2
"""Flow ids beyond int64 are numbered downwards from here."""
_NO_FLOW: Final = -1
"""The id of an arrow that has none: it leads nowhere."""

Columns: TypeAlias = "dict[str, npt.NDArray[Any]]"


class _Args(msgspec.Struct, gc=False):
    """The arguments that a lane needs. Any: a value of an unexpected type costs its column, not the chunk."""

    correlation: Any = msgspec.field(name="correlation_id", default=-1)
    connection: Any = msgspec.field(name="connection_id", default=-1)
    item: Any = msgspec.field(name="item_id", default="")
    stack: Any = msgspec.field(name="Call stack", default="")
    shapes: Any = msgspec.field(name="Input Dims", default="")
    task_type: Any = msgspec.field(name="Task Type", default="")
    stream: Any = msgspec.field(name="Physic Stream Id", default=-1)
    task: Any = msgspec.field(name="Task Id", default=-1)
    source: Any = msgspec.field(name="src rank", default=-1)
    target: Any = msgspec.field(name="dst rank", default=-1)
    size: Any = msgspec.field(name="size(Byte)", default=-1)
    link: Any = msgspec.field(name="link type", default="")
    transport: Any = msgspec.field(name="transport type", default="")
    mhz: Any = msgspec.field(name="MHz", default=None)
    read: Any = msgspec.field(name="Read(MB/s)", default=None)
    write: Any = msgspec.field(name="Write(MB/s)", default=None)
    throughput: Any = msgspec.field(name="Throughput(MB/s)", default=None)
    value: Any = None
    hit_rate: Any = msgspec.field(name="Hit Rate(%)", default=None)
    rx: Any = msgspec.field(name="Rx", default=None)
    tx: Any = msgspec.field(name="Tx", default=None)
    mark: Any = msgspec.field(name="event_type", default=None)
    name: Any = None
    sort_index: Any = None


class _Event(TraceEvent, gc=False):
    """An event of a trace of Ascend."""

    args: _Args | None = None


_decoder = msgspec.json.Decoder(list[_Event], float_hook=str)
_NO_ARGS: Final = _Args()

_TEXTS: Final = ("category", "item", "stack", "shapes", "task_type", "link", "transport")
_INTS: Final = ("correlation", "connection", "stream", "task", "source", "target", "size")
_NEEDED: Final[Mapping[vocabulary.Lane, tuple[str, ...]]] = {
    "python": ("category", "correlation", "stack", "shapes"),
    "mindspore": ("category", "stack", "shapes"),
    "gc": (),
    "os": (),
    "mstx": (),
    "cann": ("connection", "item"),
    "hardware": ("task_type", "stream", "task", "connection"),
    "communication": ("source", "target", "size", "link", "transport", "connection"),
    "overlap": (),
}
"""The members that are read of the events of a lane beside name, thread, start and duration; other lanes are not
read."""

_GET: Final[Mapping[str, Callable[[Any], Any]]] = {
    name: attrgetter(name) for name in (*_INTS, *_TEXTS) if name != "category"
}
_RATES: Final = ("read", "write", "throughput", "hit_rate", "rx", "tx", "value")
_COUNTED: Final[Mapping[str, Callable[[Any], Any]]] = {
    argument: attrgetter(name) for argument, name in zip(counters.ARGUMENTS, _RATES, strict=True)
}
_ph, _name, _cat, _pid, _tid, _ts, _dur, _id = map(attrgetter, ("ph", "name", "cat", "pid", "tid", "ts", "dur", "id"))


def _decode(data: bytes) -> list[_Event]:
    return _decoder.decode(data)


def _salvage(data: bytes) -> _Event | None:
    return salvaged(data, _Event, _Args)


@dataclass(frozen=True)
class TraceSource:
    """The trace file: source rows are ordinals of events, positions byte offsets of their ``{``."""

    file: str
    path: Path
    sha256: str | None
    index: ChunkIndex
    position: PositionKind = "offset"

    def positions(self, source_rows: Int64Array) -> Int64Array:
        return self.index.positions(self.path, source_rows)

    def tables(self, source_rows: Int64Array) -> Sequence[str]:
        return ()


@dataclass(frozen=True)
class Trace:
    frames: Mapping[str, pd.DataFrame]
    missing: Mapping[str, Missing]
    index: ChunkIndex


TABLES: Final = ("host_events", "device_tasks", "communication_tasks", "flows", "overlap", "frequency", "counters")


def read_trace(file: HashedFile, problems: Problems, chunk_bytes: int = CHUNK_BYTES) -> Trace:
    """All tables of a trace. Raises `Unavailable` for a file that is no trace."""
    events = _Events()

    def report(damage: Damage, offset: int, excerpt: bytes) -> None:
        shown = excerpt.decode("utf-8", "replace")
        if damage == "element":
            problems.count("loader.events_dropped", "", 1, [(offset, shown)])
        elif damage == "not_an_array":
            raise Unavailable(message("loader.not_trace" if excerpt.strip() else "loader.empty", file=problems.file))
        else:
            kept = events.count
            problems.say(
                "warning",
                message(f"loader.trace_{damage}", file=problems.file, offset=offset, events=kept, what=quoted(shown)),
            )

    reader = ElementReader(file, _decode, _salvage, report, chunk_bytes)
    for batch in reader:
        events.add(batch)
    if events.count == 0:
        raise Unavailable(message("loader.no_events", file=problems.file))
    return _Assembly(events, reader.index(), file.path, problems).trace()


class _Events:
    """Columns of the events read so far, by process."""

    def __init__(self) -> None:
        self.count = 0
        self.processes: dict[int, str] = {}
        self.threads: dict[tuple[int, int], str] = {}
        self.sort_indexes: dict[tuple[int, int], int] = {}
        self.slices: dict[int, list[Columns]] = {}
        self.marked: set[int] = set()
        self.flows: list[Columns] = []
        self.clock: list[Columns] = []
        self.rates: dict[counters.Sampled, list[Columns]] = {}
        self.interners: dict[str, Interner] = {name: Interner() for name in ("name", "flow", "phase", *_TEXTS)}
        self._big_flows: dict[str, int] = {}

    def add(self, batch: Batch[_Event]) -> None:
        events = np.empty(len(batch.elements), object)
        events[:] = batch.elements
        self.count += len(events)
        phases = self.interners["phase"]
        codes = phases.codes(list(map(_ph, batch.elements)))

        def of(*wanted: str) -> tuple[list[_Event], Int64Array]:
            mask = np.isin(codes, [phases[phase] for phase in wanted])
            return events[mask].tolist(), batch.ordinals[mask]

        self._name(of("M")[0])
        self._add_counters(*of("C"))
        self._add_slices(*of("X"))
        self._add_flows(*of("s", "f"))

    def lane(self, pid: int) -> vocabulary.Lane | None:
        """The lane of a process, by its name or its marks; None where neither is known yet."""
        if pid in self.marked:
            return "mstx"
        return vocabulary.lane(self.processes[pid]) if pid in self.processes else None

    def _name(self, events: Iterable[_Event]) -> None:
        for event in events:
            if event.args is None or not isinstance(event.pid, int):
                continue
            lane = (event.pid, event.tid if isinstance(event.tid, int) else -1)
            if event.name == "process_name":
                self.processes[event.pid] = str(event.args.name)
            elif event.name == "thread_name":
                self.threads[lane] = str(event.args.name)
            elif event.name == "thread_sort_index" and isinstance(event.args.sort_index, int):
                self.sort_indexes[lane] = event.args.sort_index

    def _add_counters(self, events: list[_Event], ordinals: Int64Array) -> None:
        """Of the counters (almost half of all events) the clock and the rates are kept."""
        names = Interner()
        codes = names.codes(list(map(_name, events)))
        for name, code in names.items():
            if not isinstance(name, str) or not (name == _FREQUENCY or counters.sampled(name)):
                continue
            places = np.flatnonzero(codes == code)
            kept = [events[place] for place in places.tolist()]
            arguments = [event.args or _NO_ARGS for event in kept]
            when: Columns = {"time_ns": times.points_ns(map(_ts, kept)), "source_row": ordinals[places]}
            if name == _FREQUENCY:
                self.clock.append(when | {"mhz": times.numbers([argument.mhz for argument in arguments])})
            for argument, one in counters.sampled(name).items():
                values = times.numbers(list(map(_COUNTED[argument], arguments)))
                self.rates.setdefault(one, []).append(when | {"value": values})

    def _add_slices(self, events: list[_Event], ordinals: Int64Array) -> None:
        if not events:
            return
        pids = _ints(list(map(_pid, events)))
        starts = times.points_ns(map(_ts, events))
        # an event without a duration gets one that is impossible, and is then counted as such
        durations = times.numbers(list(map(_dur, events)))
        objects = np.empty(len(events), object)
        objects[:] = events
        for pid in np.unique(pids).tolist():
            here = pids == pid
            first = events[int(here.argmax())]
            if first.args is not None and isinstance(first.args.mark, str) and first.args.mark in _MARKS:
                self.marked.add(pid)
            lane = self.lane(pid)
            if lane == "other":
                continue
            columns = self._columns(objects[here].tolist(), _NEEDED[lane] if lane else (*_INTS, *_TEXTS))
            columns |= {"start_ns": starts[here], "us": durations[here], "source_row": ordinals[here]}
            self.slices.setdefault(pid, []).append(columns)

    def _columns(self, events: list[_Event], needed: Sequence[str]) -> Columns:
        columns: Columns = {
            "name": self.interners["name"].codes(list(map(_name, events))),
            "thread": _ints(list(map(_tid, events))),
        }
        arguments = [event.args or _NO_ARGS for event in events] if needed else []
        for name in needed:
            values = list(map(_cat, events)) if name == "category" else list(map(_GET[name], arguments))
            columns[name] = self.interners[name].codes(values) if name in _TEXTS else _ints(values)
        return columns

    def _add_flows(self, events: list[_Event], ordinals: Int64Array) -> None:
        if not events:
            return
        self.flows.append(
            {
                # the name of a HostToDevice flow holds its id: its category is the same for all
                "kind": self.interners["flow"].codes([event.cat or event.name for event in events]),
                "end": self.interners["phase"].codes(list(map(_ph, events))),
                "flow": self._flow_ids(list(map(_id, events))),
                "thread": _ints(list(map(_tid, events))),
                "pid": _ints(list(map(_pid, events))),
                "time_ns": times.points_ns(map(_ts, events)),
                "source_row": ordinals,
            }
        )

    def _flow_ids(self, ids: list[Any]) -> Int64Array:
        try:
            numbers = np.fromiter(map(int, ids), np.int64, len(ids))
            if (numbers >= 0).all():
                return numbers
        except (TypeError, ValueError, OverflowError):
            pass
        return np.fromiter(map(self._flow_id, ids), np.int64, len(ids))

    def _flow_id(self, value: Any) -> int:
        if value is None:
            return _NO_FLOW
        try:
            number = int(value)
        except (TypeError, ValueError, OverflowError):
            return self._big_flows.setdefault(str(value), _FIRST_BIG_FLOW - len(self._big_flows))
        if 0 <= number < 2**63:
            return number
        return self._big_flows.setdefault(str(number), _FIRST_BIG_FLOW - len(self._big_flows))


class _Assembly:
    """The tables, once every process has its name."""

    def __init__(self, events: _Events, index: ChunkIndex, path: Path, problems: Problems) -> None:
        self._events = events
        self._path = path
        self._index = index
        self._problems = problems
        self._lanes = {
            pid: lane for pid in dict.fromkeys([*events.processes, *events.slices]) if (lane := events.lane(pid))
        }
        self._missing: dict[str, Missing] = {}

    def trace(self) -> Trace:
        nameless = [pid for pid in self._events.slices if pid not in self._lanes]
        if nameless:
            count = sum(len(part["us"]) for pid in nameless for part in self._events.slices[pid])
            pids = ", ".join(map(str, nameless[:SHOWN])) + (", …" if len(nameless) > SHOWN else "")
            text = message("loader.nameless", file=self._problems.file, pids=pids, count=count)
            self._problems.say("warning", text)
        parts = [part["thread"] for parts in self._events.slices.values() for part in parts]
        if parts and all((threads == -1).all() for threads in parts):
            self._problems.say("warning", message("loader.no_threads", file=self._problems.file))
        built: dict[str, pd.DataFrame | None] = {
            "host_events": self._host(),
            "device_tasks": self._device(),
            "communication_tasks": self._communication(),
            "flows": self._flows(),
            "overlap": self._overlap(),
            "frequency": self._frequency(),
            "counters": self._counters(),
        }
        frames = {}
        for name, frame in built.items():
            if frame is None:
                reason = message("loader.no_lane", file=self._problems.file, lane=_LANE_NAMES[name])
                self._missing[name] = Missing(reason)
            else:
                frames[name] = tables.SCHEMAS[name].conform(frame)
        return Trace(frames, self._missing, self._index)

    def _host(self) -> pd.DataFrame | None:
        slices = self._gather(_HOST_LANES, ("category", "correlation", "stack", "shapes", "connection", "item"))
        if slices is None or not len(slices["source_row"]):
            return None
        texts = self._events.interners
        lanes = slices.pop("lane")
        categories = texts["category"]
        category = slices["category"]
        for place, lane in enumerate(_HOST_LANES):
            if lane == "mindspore":  # its operators carry no category, only the frames of Python do
                nameless = (lanes == place) & (category == categories[""])
                category = np.where(nameless, categories["cpu_op"], category).astype(np.int32)
            elif lane != "python":
                own = categories[_CALLS if lane == "cann" else lane]
                category = np.where(lanes == place, own, category).astype(np.int32)
        return pd.DataFrame(
            {
                **slices,
                "category": categories.categorical(category, lambda text: vocabulary.tidy(text).lower()),
                "name": texts["name"].categorical(slices["name"]),
                "item": texts["item"].categorical(slices["item"], vocabulary.tidy),
                "call_stack": texts["stack"].categorical(slices["stack"], vocabulary.stack),
                "input_shapes": texts["shapes"].categorical(slices["shapes"], vocabulary.shapes),
            }
        )

    def _device(self) -> pd.DataFrame | None:
        slices = self._gather(("hardware",), _NEEDED["hardware"], times.HOUR_US)
        if slices is None or not len(slices["source_row"]):
            return None
        texts = self._events.interners
        slices["stream"] = np.where(slices["stream"] < 0, slices["thread"], slices["stream"])
        return pd.DataFrame(
            {
                **slices,
                "name": texts["name"].categorical(slices["name"]),
                "task_type": texts["task_type"].categorical(slices["task_type"], vocabulary.task_type),
            }
        )

    def _communication(self) -> pd.DataFrame:
        """Empty where the trace has no such lane: nothing was communicated."""
        slices = self._gather(("communication",), _NEEDED["communication"], times.HOUR_US)
        if slices is None:
            return tables.COMMUNICATION_TASKS.empty()
        texts = self._events.interners
        lane, group, plane = self._planes(slices.pop("pid"), slices.pop("thread"))
        told = slices["source"] >= 0
        if told.any() and (slices["target"] < 0).all():
            self._problems.say("warning", message("loader.no_peers", file=self._problems.file, count=int(told.sum())))
        return pd.DataFrame(
            {
                **slices,
                "lane": lane,
                "group": group,
                "plane": plane,
                "name": texts["name"].categorical(slices["name"]),
                "own_rank": _none(slices["source"]),
                "peer_rank": _none(slices["target"]),
                "bytes": slices["size"],
                "link": texts["link"].categorical(slices["link"], vocabulary.link),
                "transport": texts["transport"].categorical(slices["transport"], vocabulary.link),
            }
        )

    def _planes(self, pids: Int64Array, threads: Int64Array) -> tuple[pd.Categorical, Int64Array, Int64Array]:
        """Lane, group and plane of communication events. A plane belongs to the group that precedes it in the order
        in which the threads of its process are shown."""
        lanes = sorted(set(zip(pids.tolist(), threads.tolist(), strict=True)) | set(self._events.threads))
        lanes.sort(key=lambda lane: (lane[0], self._events.sort_indexes.get(lane, lane[1])))
        names = Interner()
        known: dict[tuple[int, int], tuple[int, int, int]] = {}
        group, process = -1, None
        for lane in lanes:
            if lane[0] != process:
                group, process = -1, lane[0]
            name = self._events.threads.get(lane, "")
            if found := re.match(r"Group (\d+)\b.*Communication", name):
                group = int(found[1])
            plane = re.match(r"Plane (\d+)", name)
            known[lane] = (names[name], group, int(plane[1]) if plane else -1)
        table = np.array([known[lane] for lane in lanes], np.int64).reshape(-1, 3)
        keys = pd.MultiIndex.from_tuples(lanes)
        rows = table[keys.get_indexer(pd.MultiIndex.from_arrays([pids, threads]))]
        return names.categorical(rows[:, 0].astype(np.int32)), rows[:, 1], rows[:, 2]

    def _overlap(self) -> pd.DataFrame | None:
        slices = self._gather(("overlap",), ())
        if slices is None:
            return None
        return pd.DataFrame({**slices, "kind": self._events.interners["name"].categorical(slices["name"])})

    def _flows(self) -> pd.DataFrame | None:
        if not self._events.flows:
            return None
        flows = _concatenate(self._events.flows)
        flows = self._possible(flows, (flows["time_ns"] != times.NO_TIME) & (flows["flow"] != _NO_FLOW), "flow")
        devices = [pid for pid, lane in self._lanes.items() if lane in _DEVICE_LANES]
        texts = self._events.interners
        return pd.DataFrame(
            {
                **flows,
                "kind": texts["flow"].categorical(flows["kind"], vocabulary.flow_kind),
                "end": texts["phase"].categorical(flows["end"]),
                "device": np.isin(flows["pid"], devices),
            }
        )

    def _frequency(self) -> pd.DataFrame | None:
        if not self._events.clock:
            return None
        clock = _concatenate(self._events.clock)
        possible = (clock["time_ns"] != times.NO_TIME) & (clock["mhz"] > 0) & np.isfinite(clock["mhz"])
        return pd.DataFrame(self._possible(clock, possible, _FREQUENCY))

    def _counters(self) -> pd.DataFrame | None:
        series = list(self._events.rates)
        if not series:
            return None
        parts = [_concatenate(self._events.rates[one]) for one in series]
        columns = _concatenate(parts)
        columns["code"] = np.repeat(np.arange(len(series)), [len(part["value"]) for part in parts])
        possible = (columns["time_ns"] != times.NO_TIME) & (columns["value"] >= 0) & np.isfinite(columns["value"])
        columns = self._possible(columns, possible & ~times.astray(columns["time_ns"]), _LANE_NAMES["counters"])
        return counters.table(series, columns.pop("code"), **columns)

    def _gather(
        self, lanes: Sequence[vocabulary.Lane], needed: Sequence[str], longest_us: float = times.DAY_US
    ) -> Columns | None:
        """The events of lanes in the order of the file; None where the trace has no such lane."""
        pids = [pid for pid, lane in self._lanes.items() if lane in lanes]
        if not pids:
            return None
        parts: list[Columns] = []
        for pid in pids:
            for part in self._events.slices.pop(pid, []):
                size = len(part["us"])
                filled = {name: part[name] if name in part else self._absent(name, size) for name in needed}
                filled["lane"] = np.full(size, lanes.index(self._lanes[pid]), np.int8)
                filled["pid"] = np.full(size, pid, np.int64)
                parts.append(filled | {name: part[name] for name in ("name", "thread", "start_ns", "us", "source_row")})
        if not parts:
            parts = [self._nothing(needed)]
        columns = _concatenate(parts)
        if len(pids) > 1:
            order = np.argsort(columns["source_row"], kind="stable")
            columns = {name: values[order] for name, values in columns.items()}
        spans = times.spans_ns(columns.pop("us"), longest_us)
        columns["duration_ns"] = spans
        starts = columns["start_ns"]
        possible = (spans != times.NO_TIME) & (starts != times.NO_TIME) & ~times.astray(starts)
        return self._possible(columns, possible)

    def _absent(self, name: str, size: int) -> npt.NDArray[Any]:
        if name in _TEXTS:
            return np.full(size, self._events.interners[name][""], np.int32)
        return np.full(size, -1, np.int64)

    def _nothing(self, needed: Sequence[str]) -> Columns:
        columns = {name: self._absent(name, 0) for name in needed}
        for name in ("lane", "pid", "thread", "start_ns", "source_row"):
            columns[name] = np.empty(0, np.int64)
        return columns | {"name": np.empty(0, np.int32), "us": np.empty(0)}

    def _possible(self, columns: Columns, kept: npt.NDArray[np.bool_], kind: str = "") -> Columns:
        """The rows that are possible; the others are said with byte offset and name (or ``kind``) of the first few."""
        if kept.all():
            return columns
        dropped = columns["source_row"][~kept]
        names = [kind] * SHOWN
        if "name" in columns:
            texts = list(self._events.interners["name"])
            names = [str(texts[code]) for code in columns["name"][~kept][:SHOWN].tolist()]
        offsets = self._index.positions(self._path, dropped[:SHOWN]).tolist()
        self._problems.count("loader.events_impossible", "", len(dropped), zip(offsets, names, strict=False))
        return {name: values[kept] for name, values in columns.items()}


_LANE_NAMES: Final = {
    "host_events": "Python, CANN",
    "device_tasks": "Ascend Hardware",
    "flows": "flow",
    "overlap": "Overlap Analysis",
    "frequency": _FREQUENCY,
    "counters": "HBM, LLC, HCCS, PCIe, QoS",
}


def _concatenate(parts: Sequence[Columns]) -> Columns:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _none(ranks: Int64Array) -> Int64Array:
    return np.where(ranks == vocabulary.UINT32_NONE, -1, ranks)


def _ints(values: list[Any]) -> Int64Array:
    """int64 of numbers or texts of numbers; -1 for what is none or does not fit."""
    try:
        return np.fromiter(values, np.int64, len(values))
    except (TypeError, ValueError, OverflowError):
        return np.fromiter(map(_int, values), np.int64, len(values))


def _int(value: Any) -> int:
    try:
        number = int(value)
    except (TypeError, ValueError, OverflowError):
        return -1
    return number if -(2**63) <= number < 2**63 else -1
