"""Read one Kineto trace into the canonical tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pandas as pd

from advisor_core.contracts.missing import Missing, Unavailable
from advisor_core.contracts.tables import FLOWS, SCHEMAS, Int64Array
from advisor_core.loaders.kineto import collectives, device, memory, references, words
from advisor_core.loaders.kineto.events import Columns, Events, decode, gathered, salvage
from advisor_core.loaders.kineto.head import Recorded, joined, recorded
from advisor_core.loaders.kineto.host import Host, host_events
from advisor_core.loaders.kineto.operators import operators
from advisor_core.loaders.readers import times
from advisor_core.loaders.readers.files import HashedFile
from advisor_core.loaders.readers.gzip_file import GzipFile
from advisor_core.loaders.readers.json_events import CHUNK_BYTES, ChunkIndex, Damage, ElementReader
from advisor_core.loaders.readers.problems import SHOWN, Problems, quoted
from advisor_core.nesting import enclosing_of
from advisor_core.text.messages import message

_LONGEST_REST: Final = 16 << 20


@dataclass(frozen=True)
class Trace:
    """``device``: the one that the tables are of, None where nothing ran on any; ``index``: to find events again."""

    frames: Mapping[str, pd.DataFrame]
    missing: Mapping[str, Missing]
    recorded: Recorded
    device: int | None
    index: ChunkIndex


def read_trace(file: HashedFile | GzipFile, problems: Problems, chunk_bytes: int = CHUNK_BYTES) -> Trace:
    """All tables of a trace. Raises `Unavailable` for a file that holds no event."""
    events = Events()

    def report(damage: Damage, offset: int, excerpt: bytes) -> None:
        shown = excerpt.decode("utf-8", "replace")
        if damage == "element":
            problems.count("loader.events_dropped", "", 1, [(offset, shown)])
        elif damage == "not_an_array":
            raise Unavailable(message("loader.not_trace" if excerpt.strip() else "loader.empty", file=problems.file))
        else:
            what = message(f"loader.trace_{damage}", file=problems.file, offset=offset, events=events.count,
                what=quoted(shown))  # fmt: skip
            problems.say("warning", what)

    reader = ElementReader(file, decode, salvage, report, chunk_bytes)
    for batch in reader:
        events.add(batch)
    if isinstance(file, GzipFile) and file.damage == "damaged":
        problems.say("warning", message("loader.gzip_damaged", file=problems.file, events=events.count))
    if not events.count:
        raise Unavailable(message("loader.no_events", file=problems.file))
    around = recorded(joined(reader.head, reader.rest(_LONGEST_REST)))
    return _Assembly(events, around, reader.index(), file, problems).trace()


@dataclass
class _Assembly:
    """The tables, once all events are read."""

    events: Events
    around: Recorded
    index: ChunkIndex
    file: HashedFile | GzipFile
    problems: Problems
    tasks: device.Device | None = None
    frames: dict[str, pd.DataFrame] = field(default_factory=dict)
    missing: dict[str, Missing] = field(default_factory=dict)

    def trace(self) -> Trace:
        host = self._host()
        number = self._device(host)
        self._memory(host, number)
        self._operators(host)
        for name in SCHEMAS:
            if name not in self.frames and name not in self.missing:
                self.missing[name] = self._never(name)
        return Trace(self.frames, self.missing, self.around, number, self.index)

    def _host(self) -> Host | None:
        columns = self._possible(gathered(self.events.host), times.DAY_US)
        if columns is None:
            self.missing["host_events"] = self._absent("kineto.no_host", "host")
            return None
        host = host_events(columns, self.events.interners)
        self.frames["host_events"] = host.frame
        return host

    def _operators(self, host: Host | None) -> None:
        if host is None or not host.of("cpu_op").any():
            self.missing["operators"] = self._absent("kineto.no_operators", "host")
        else:
            self.frames["operators"] = operators(host, self.tasks)

    def _device(self, host: Host | None) -> int | None:
        columns = self._possible(gathered(self.events.device), times.HOUR_US)
        if columns is None:
            for name in ("kernels", "device_tasks", "flows"):
                self.missing[name] = self._absent("kineto.no_device", "device")
            self.missing["collectives"] = self._absent("kineto.no_device", "device")
            return None
        every = columns
        number, columns = self._one_device(columns)
        tasks = self.tasks = device.device(columns, self.events.interners, host)
        calls = collectives.operations(tasks, host, gathered(self.events.collectives), self.events.interners)
        self.frames["kernels"] = device.kernels(tasks, host, calls["operation"])
        self.frames["device_tasks"] = device.device_tasks(tasks)
        if len(calls):
            self.frames["collectives"] = collectives.collectives(tasks, calls, self.frames["kernels"])
        else:
            self.missing["collectives"] = Missing(message("kineto.no_collectives", file=self.problems.file),
                kind="not_applicable")  # fmt: skip
        self._flows(tasks, host, every["correlation"][every["device"] != number])
        if host is not None:
            kinds = self.events.interners["category"].categorical(every["category"], words.device_task)
            is_work = np.asarray(kinds != words.SYNC)
            references.check({name: values[is_work] for name, values in every.items()}, host, self.problems)
        return number

    def _one_device(self, columns: Columns) -> tuple[int, Columns]:
        """The tasks of the device that was busy longest: a profile is that of one device."""
        busy = pd.Series(columns["duration_ns"]).groupby(columns["device"]).sum().sort_values(ascending=False)
        number = int(busy.index[0])
        if len(busy) > 1:
            other_devices = ", ".join(map(str, sorted(busy.index[1:].tolist())))
            what = message("kineto.devices", file=self.problems.file, device=number, others=other_devices)
            self.problems.say("warning", what)
        of_device = columns["device"] == number
        return number, {name: values[of_device] for name, values in columns.items()}

    def _flows(self, tasks: device.Device, host: Host | None, elsewhere: Int64Array) -> None:
        if host is None or not (tasks.call >= 0).any():
            self.missing["flows"] = self._absent("kineto.no_launches", "host")
            return
        frame = device.launch_flows(tasks, host, elsewhere)
        recorded = self._times(gathered(self.events.flows))
        if recorded is not None and len(recorded["flow"]):
            texts = self.events.interners
            more = pd.DataFrame(
                {
                    "kind": texts["category"].categorical(recorded["kind"], words.flow_kind),
                    "end": texts["phase"].categorical(recorded["end"]),
                    "flow": recorded["flow"],
                    "thread": recorded["thread"],
                    "time_ns": recorded["start_ns"],
                    "source_row": recorded["source_row"],
                }
            )
            plain = {"kind": str, "end": str}
            both = [frame.astype(plain), FLOWS.conform(more).astype(plain)]
            frame = FLOWS.conform(pd.concat(both, ignore_index=True))
        self.frames["flows"] = frame

    def _memory(self, host: Host | None, number: int | None) -> None:
        columns = self._times(gathered(self.events.memory))
        if columns is not None:
            of_device = np.isin(columns["device_id"], [number, -1] if number is not None else columns["device_id"])
            columns = {name: values[of_device] for name, values in columns.items()}
        if columns is None or not len(columns["start_ns"]):
            for name in ("memory_record", "operator_memory"):
                self.missing[name] = self._absent("kineto.no_memory", "memory")
            return
        read = {
            "memory_record": memory.memory_record(columns),
            "operator_memory": memory.operator_memory(columns, _operators_around(host, columns)),
        }
        for name, frame in read.items():
            if frame is None:
                self.missing[name] = self._absent("kineto.no_totals", "memory")
            else:
                self.frames[name] = frame

    def _times(self, columns: Columns | None) -> Columns | None:
        """With points on the clock of the host, without those that cannot be one."""
        if columns is None:
            return None
        starts = columns["start_ns"]
        possible = (starts != times.NO_TIME) & ~times.astray(starts)
        columns = self._select(columns, possible)
        return columns | {"start_ns": columns["start_ns"] + self.around.base_ns}

    def _possible(self, columns: Columns | None, longest_us: float) -> Columns | None:
        """With durations, without events that have no possible one; None where no event is left."""
        if columns is None:
            return None
        spans = times.spans_ns(columns["us"], longest_us)
        columns = {name: values for name, values in columns.items() if name != "us"} | {"duration_ns": spans}
        timed = self._times(self._select(columns, spans != times.NO_TIME))
        return timed if timed is not None and len(timed["start_ns"]) else None

    def _select(self, columns: Columns, usable: Any) -> Columns:
        """The usable rows; the others are said with byte offset and name of the first few."""
        if usable.all():
            return columns
        dropped = columns["source_row"][~usable]
        names = [""] * SHOWN
        if "name" in columns:
            texts = list(self.events.interners["name"])
            names = [str(texts[code]) for code in columns["name"][~usable][:SHOWN].tolist()]
        offsets = positions(self.file, self.index, dropped[:SHOWN]).tolist()
        self.problems.count("loader.events_impossible", "", len(dropped), zip(offsets, names, strict=False))
        return {name: values[usable] for name, values in columns.items()}

    def _absent(self, reason: str, option: str) -> Missing:
        return Missing(message(reason, file=self.problems.file), message(f"kineto.collect.{option}"), (option,))

    def _never(self, table: str) -> Missing:
        """A table that no trace of this kind has."""
        return Missing(message(f"kineto.never.{table}"), kind="not_applicable")


def positions(file: HashedFile | GzipFile, index: ChunkIndex, rows: np.ndarray) -> np.ndarray:
    """Byte offsets of events in the content of the file."""
    if isinstance(file, GzipFile):
        return index.positions(file.path, rows, file.points.read_at)
    return index.positions(file.path, rows)


def _operators_around(host: Host | None, columns: Columns) -> np.ndarray:
    """The name of the innermost operator around each event, '' for none."""
    if host is None:
        return np.full(len(columns["start_ns"]), "", object)
    rows = enclosing_of(host.work_of_operators(), columns["thread"], columns["start_ns"])
    return host.names(rows)
