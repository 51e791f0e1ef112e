"""Events of a recording that has no trace file, such as a database, made of the canonical tables."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np
import pandas as pd

from advisor_core.contracts.tables import (
    COMMUNICATION_TASKS,
    DEVICE_TASKS,
    FLOWS,
    HOST_EVENTS,
    KERNELS,
    Int64Array,
    Table,
)
from advisor_core.slicing.events import BEGIN, END, HEADING, OPEN, SLICE, Events
from advisor_core.slicing.recording import Event
from advisor_core.slicing.trace_file import NoEventsError
from advisor_core.text.units import microseconds

_PROCESSES: Final = ("Host", "Host: calls of the device", "Device", "Communication")
_HOST, _CALLS, _DEVICE, _COMMUNICATION = range(4)
_LAUNCH: Final = "host_to_device"
"""The kind of arrow that begins at a call of the device; others begin and end at what the framework does."""

_ARGUMENTS: Final[Mapping[str, tuple[str, ...]]] = {
    HOST_EVENTS.name: ("category", "item", "input_shapes", "call_stack"),
    DEVICE_TASKS.name: ("task_type", "task"),
    KERNELS.name: ("type", "core", "task", "input_shapes", "input_dtypes", "output_shapes"),
    COMMUNICATION_TASKS.name: ("own_rank", "peer_rank", "bytes", "link", "transport"),
}
"""The columns that an event shows as arguments, where they have a value."""

_BYTES: Final = 220
"""At most so many bytes has an event beside its name and the texts of its arguments; measured."""


class TableEvents:
    """What the host and the device did, collectives, and the arrows between them. Raises `NoEventsError` where no table
    says when anything ran."""

    as_array = False

    def __init__(self, tables: Mapping[str, Table]) -> None:
        device = DEVICE_TASKS if DEVICE_TASKS.name in tables else KERNELS
        self._frames = {
            schema.name: tables[schema.name].frame
            for schema in (HOST_EVENTS, device, COMMUNICATION_TASKS)
            if schema.name in tables and len(tables[schema.name].frame)
        }
        if not self._frames:
            raise NoEventsError("no table says what ran when")
        rows = pd.concat([_rows(name, frame) for name, frame in self._frames.items()], ignore_index=True)
        keys = pd.MultiIndex.from_frame(rows[["process", "title"]])
        self._keys = keys.unique()
        self._lanes: list[tuple[int, str]] = list(self._keys)
        self._rows = rows.assign(lane=self._keys.get_indexer(keys))
        self._ends = self._arrows(tables[FLOWS.name].frame) if FLOWS.name in tables else _NO_ENDS
        self.events = self._events()

    def _arrows(self, flows: pd.DataFrame) -> pd.DataFrame:
        """The ends of arrows in lanes that are there. A collective has no stream: its end is where one begins."""
        kind, device = flows["kind"].astype(str), flows["device"].to_numpy()
        process = np.where(device, _DEVICE, np.where(kind == _LAUNCH, _CALLS, _HOST))
        title = np.where(device, _stream(flows["thread"]), _thread(flows["thread"]))
        if COMMUNICATION_TASKS.name in self._frames:
            tasks = self._frames[COMMUNICATION_TASKS.name]
            whole = tasks[tasks["plane"] < 0].drop_duplicates("start_ns").set_index("start_ns")["lane"].astype(str)
            of_call = device & (flows["thread"] < 0).to_numpy()
            process = np.where(of_call, _COMMUNICATION, process)
            title = np.where(of_call, flows["time_ns"].map(whole).to_numpy(), title)
        found = pd.DataFrame(
            {
                "kind": np.where(flows["end"].astype(str) == "s", BEGIN, END),
                "arrow": pd.factorize(kind + "\0" + flows["flow"].astype(str))[0],
                "name": kind,
                "lane": self._keys.get_indexer(pd.MultiIndex.from_arrays([process, title])),
                "time_ns": flows["time_ns"],
            }
        )
        return found[found["lane"] >= 0].reset_index(drop=True)

    def _events(self) -> Events:
        """By ordinal: the headings of processes and of lanes, the rows of the tables, the ends of arrows."""
        rows, ends = self._rows, self._ends
        lane_process = self._keys.get_level_values(0).to_numpy(np.int64)
        processes, lanes = len(_PROCESSES), len(self._lanes)
        parts = {
            "kind": (np.full(processes + lanes, HEADING), np.full(len(rows), SLICE), ends["kind"]),
            "process": (np.arange(processes), lane_process, rows["process"], lane_process[ends["lane"]]),
            "lane": (np.full(processes, OPEN), np.arange(lanes), rows["lane"], ends["lane"]),
            "arrow": (np.full(processes + lanes + len(rows), -1), ends["arrow"]),
            "start_ns": (np.zeros(processes + lanes), rows["start_ns"], ends["time_ns"]),
            "end_ns": (np.zeros(processes + lanes), rows["end_ns"], ends["time_ns"]),
            "bytes": (np.full(processes + lanes, _BYTES), rows["bytes"], np.full(len(ends), _BYTES)),
        }
        dtypes = {"kind": np.int8, "process": np.int32, "lane": np.int32, "bytes": np.int32}
        return Events(
            **{
                name: np.concatenate([np.asarray(part, dtypes.get(name, np.int64)) for part in of_name])
                for name, of_name in parts.items()
            }
        )

    def chosen(self, ordinals: Int64Array) -> Iterator[Event]:
        """The events of these ordinals, as trace events."""
        headings = len(_PROCESSES) + len(self._lanes)
        chosen = ordinals - headings
        rows = self._rows.iloc[chosen[(chosen >= 0) & (chosen < len(self._rows))]]
        ends = self._ends.iloc[chosen[chosen >= len(self._rows)] - len(self._rows)]
        yield from map(self._heading, ordinals[chosen < 0].tolist())
        yield from map(self._slice, rows.itertuples(index=False))
        yield from map(self._end, ends.itertuples(index=False))

    def _heading(self, ordinal: int) -> Event:
        if ordinal < len(_PROCESSES):
            named = {"args": {"name": _PROCESSES[ordinal]}}
            return {"ph": "M", "name": "process_name", "pid": ordinal + 1, "tid": 0, **named}
        lane = ordinal - len(_PROCESSES)
        return {"ph": "M", "name": "thread_name", **self._at(lane), "args": {"name": self._lanes[lane][1]}}

    def _at(self, lane: int) -> dict[str, int]:
        """Each lane has a thread id of its own in the file: Perfetto looks up the name of a thread by that alone."""
        return {"pid": self._lanes[lane][0] + 1, "tid": lane + 1}

    def _slice(self, row: Any) -> Event:
        frame = self._frames[row.table]
        values = {name: frame[name].iloc[row.row] for name in _ARGUMENTS[row.table]}
        return {
            "ph": "X",
            "name": row.name or "?",
            "cat": row.table,
            **self._at(row.lane),
            "ts": microseconds(row.start_ns),
            "dur": (row.end_ns - row.start_ns) / 1000,
            "args": {
                name: value if isinstance(value, str) else int(value)
                for name, value in values.items()
                if value not in ("", -1)
            },
        }

    def _end(self, row: Any) -> Event:
        end = {"ph": "s"} if row.kind == BEGIN else {"ph": "f", "bp": "e"}
        named = {"name": row.name, "cat": row.name, "id": row.arrow}
        return {**end, **named, **self._at(row.lane), "ts": microseconds(row.time_ns)}


_NO_ENDS: Final = pd.DataFrame(
    {name: pd.Series(dtype="int64") for name in ("kind", "arrow", "lane", "time_ns")}
    | {"name": pd.Series(dtype="object")}
)


def _rows(name: str, frame: pd.DataFrame) -> pd.DataFrame:
    """Where each row of a table lies, and at most how many bytes it takes as an event."""
    if name == HOST_EVENTS.name:
        process, title = np.where(frame["category"] == "runtime", _CALLS, _HOST), _thread(frame["thread"])
    elif name == COMMUNICATION_TASKS.name:
        process, title = np.full(len(frame), _COMMUNICATION), frame["lane"].astype(str)
    else:
        process, title = np.full(len(frame), _DEVICE), _stream(frame["stream"])
    texts = ["name", *(column for column in _ARGUMENTS[name] if isinstance(frame[column].dtype, pd.CategoricalDtype))]
    return pd.DataFrame(
        {
            "table": name,
            "row": np.arange(len(frame)),
            "process": process,
            "title": title,
            "name": frame["name"].astype(str),
            "start_ns": frame["start_ns"],
            "end_ns": frame["start_ns"] + frame["duration_ns"].clip(lower=0),
            "bytes": _BYTES + sum(_written_bytes(frame[text]) for text in texts),
        }
    )


def _written_bytes(texts: pd.Series) -> Int64Array:
    """The bytes of each text of a categorical column in JSON."""
    known = [len(json.dumps(text, ensure_ascii=False).encode("utf-8", "replace")) for text in texts.cat.categories]
    return np.array(known, np.int64)[texts.cat.codes.to_numpy()]


def _thread(numbers: pd.Series) -> pd.Series:
    return "thread " + numbers.astype(str)


def _stream(numbers: pd.Series) -> pd.Series:
    return "stream " + numbers.astype(str)
