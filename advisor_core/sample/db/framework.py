"""Tables of the framework: its calls, their connections to tasks and to each other, and their call stacks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import count

from ..export.calls import cann_calls, forward_backward, recorded_collections
from ..export.recording import Recording
from ..export.values import LINE, MARK_DOMAIN, argument_shapes, argument_types, frames
from ..timeline import NOT_IN_GRAPH, Collective, DeviceTask, HostSpan, Timeline
from .database import Database, Strings, Value
from .enums import FRAMEWORK_TYPES, MSTX_TYPES, number
from .session import global_tid

Row = tuple[Value, ...]
FIRST_MARK = 4_000_000_001
"""The connections of marks are counted from here."""
_QUEUE, _PYTHON, _OPERATOR = (number(FRAMEWORK_TYPES, name) for name in ("queue", "trace", "op"))


class FrameworkTables:
    """The tables of one rank.

    Numbers of the framework's own connections lie above those of CANN. An operator is connected with the kernels and
    collectives that it launched, not with copies, and with the node that undoes it.
    """

    def __init__(self, timeline: Timeline, recording: Recording, strings: Strings) -> None:
        self._timeline = timeline
        self._strings = strings
        self._next, self._next_stack = count(), count()
        self._connections: list[Row] = []
        self._stacks: list[Row] = []
        calls = cann_calls(timeline, recording) if recording.device else []
        self._first = max((call.connection for call in calls), default=-1) + 1
        nodes = {call.connection for call in calls if call.level == "node"}
        self._connected = self._connect(nodes)

    def write(self, database: Database) -> None:
        """Write all of them."""
        database.table("PYTORCH_API", [*self._queue_rows(), *self._python_rows(), *self._operator_rows()])
        database.table("CONNECTION_IDS", self._connections)
        database.table("PYTORCH_CALLCHAINS", self._stacks)
        thread = global_tid(self._timeline, self._timeline.pid)
        pauses = [(pause.start, pause.end, thread) for pause in recorded_collections(self._timeline)]
        database.table("GC_RECORD", pauses)
        database.table("MSTX_EVENTS", self._mark_rows())

    def _connect(self, nodes: set[int]) -> dict[int, list[int]]:
        """The connections of every span that has some."""
        connected: dict[int, list[int]] = defaultdict(list)
        first = self._first + max((entry.correlation for entry in self._timeline.queue), default=-1) + 1
        pairs = sorted(forward_backward(self._timeline), key=lambda pair: pair[0].start)
        for connection, (origin, node) in enumerate(pairs, first):
            connected[id(origin)].append(connection)
            connected[id(node)].append(connection)
        tasks: list[DeviceTask | Collective] = [*self._timeline.tasks, *self._timeline.collectives]
        for task in sorted(tasks, key=lambda task: task.start):
            launch = task.launch
            if launch is not None and launch.connection in nodes:
                connected[id(launch.span)].append(launch.connection)
        return connected

    def _connection(self, connections: list[int]) -> int | None:
        if not connections:
            return None
        number_ = next(self._next)
        self._connections += [(number_, connection) for connection in connections]
        return number_

    def _times(self, start: int, end: int, tid: int) -> Row:
        # The column has the type TEXT: numbers in it are stored as text.
        return str(start), str(end), global_tid(self._timeline, tid)

    def _queue_rows(self) -> Iterator[Row]:
        nothing: Row = (None,) * 5
        entries = self._timeline.queue
        for entry in sorted(entries, key=lambda entry: entry.enqueue_start):
            times = self._times(entry.enqueue_start, entry.enqueue_end, entry.tid)
            connection = self._connection([self._first + entry.correlation])
            yield *times, connection, self._strings("Enqueue"), *nothing, _QUEUE
        for entry in entries:
            times = self._times(entry.dequeue_start, entry.dequeue_end, self._timeline.acl_tid)
            connection = self._connection([self._first + entry.correlation])
            yield *times, connection, self._strings(f"Dequeue@{entry.operator}"), *nothing, _QUEUE

    def _python_rows(self) -> Iterator[Row]:
        for span in self._timeline.spans:
            if span.kind == "python":
                times = self._times(span.start, span.end, span.tid)
                yield *times, None, self._strings(span.name), None, None, None, None, None, _PYTHON

    def _operator_rows(self) -> Iterator[Row]:
        spans = (span for span in self._timeline.spans if span.kind != "python")
        for span in sorted(spans, key=lambda span: span.start):
            yield (
                *self._times(span.start, span.end, span.tid),
                self._connection(self._connected.get(id(span), [])),
                self._strings(span.name),
                span.sequence,
                int(span.is_backward and span.sequence >= 0),
                # Real files have shapes and types in each other's column.
                self._text(argument_shapes(span, LINE)),
                self._text(argument_types(span, LINE)),
                self._stack(span),
                _OPERATOR,
            )

    def _mark_rows(self) -> Iterator[Row]:
        for connection, mark in enumerate(sorted(self._timeline.marks, key=lambda mark: mark.start), FIRST_MARK):
            thread = global_tid(self._timeline, mark.tid)
            kind = number(MSTX_TYPES, "start/end")
            yield (
                *(mark.start, mark.end, kind, NOT_IN_GRAPH, NOT_IN_GRAPH, self._strings(mark.message), thread, thread),
                self._strings(MARK_DOMAIN),
                connection,
            )

    def _text(self, text: str) -> int | None:
        return self._strings(text) if text else None

    def _stack(self, span: HostSpan) -> int | None:
        if not span.frames:
            return None
        number_ = next(self._next_stack)
        self._stacks += [(number_, self._strings(frame), depth) for depth, frame in enumerate(frames(span))]
        return number_
