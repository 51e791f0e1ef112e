"""trace_view.json: the timeline in the Chrome trace format, with the flows between its lanes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..export.calls import cann_calls, forward_backward, recorded_collections
from ..export.counters import clock_samples
from ..export.generation import Names
from ..export.overlap import OverlapAnalysis, collective_name
from ..export.planes import HARDWARE_NAMES, plane_step
from ..export.recording import Recording
from ..export.units import us
from ..export.values import LINE, MARK_DOMAIN, argument_shapes, argument_types, collective_dtype, frames
from ..layout import CommunicationGroup
from ..timeline import (
    COMPUTE_STREAM,
    NOT_IN_GRAPH,
    Collective,
    DeviceTask,
    HostSpan,
    LaunchPoint,
    PlaneTask,
    Timeline,
)
from .fields import us_text

Event = dict[str, object]

_NO_NOTIFY = 18446744073709551615


@dataclass(frozen=True, slots=True)
class _Lanes:
    """Process ids of the lanes: (process id, sort index, device) packed into one number
    (docs/sources.md#lanes-of-the-trace)."""

    timeline: Timeline
    threads: dict[CommunicationGroup, int]
    """The thread of a group; the next ones are its planes."""

    @classmethod
    def of(cls, timeline: Timeline) -> _Lanes:
        """The lanes of one rank."""
        threads, free = {}, 0
        for group in timeline.groups:
            threads[group] = free
            free += 1 + len(group.ranks)
        return cls(timeline, threads)

    def pid(self, sort_index: int) -> int:
        return self.timeline.pid << 10 | sort_index << 5 | self.timeline.device

    @property
    def garbage(self) -> int:
        return self.pid(1)

    @property
    def marks(self) -> int:
        return self.pid(6)

    @property
    def cann(self) -> int:
        return self.pid(7)

    @property
    def hardware(self) -> int:
        return self.pid(13)

    @property
    def frequency(self) -> int:
        return self.pid(14)

    @property
    def collectives(self) -> int:
        return self.pid(15)

    @property
    def overlap(self) -> int:
        return self.pid(23)


def trace_events(timeline: Timeline, names: Names, recording: Recording) -> list[Event]:
    """All events of one rank that a level records."""
    lanes = _Lanes.of(timeline)
    framework = [
        *_framework_spans(timeline, names),
        *_task_queue(timeline),
        *_framework_lanes(timeline),
        *_forward_backward_flows(timeline),
        *_python_spans(timeline),
        *_garbage_collections(timeline, lanes),
        *_marks(timeline, lanes),
    ]
    if not recording.device:
        return framework
    return [
        *framework,
        *_device_lanes(timeline, lanes, names, recording),
        *(_cann_calls(timeline, lanes, names, recording) if recording.details else ()),
        *_device_tasks(timeline, lanes, names),
        *_collectives(timeline, lanes, recording),
        *_frequency(timeline, lanes),
        *_overlap(timeline, lanes),
        *_operator_to_device_flows(timeline, lanes),
    ]


# --- framework ---------------------------------------------------------------------------------------


def _framework_spans(timeline: Timeline, names: Names) -> Iterator[Event]:
    for span in timeline.spans:
        if span.kind == "python":
            continue
        args: Event = {"Sequence number": span.sequence, "Fwd thread id": int(span.is_backward and span.sequence >= 0)}
        if span.inputs or span.scalars:
            args["Input Dims"] = argument_shapes(span, LINE)
            args["Input type"] = argument_types(span, LINE)
        if span.frames:
            args["Call stack"] = LINE.join(frames(span))
        category = names.annotation if span.kind == "annotation" else "cpu_op"
        yield {
            "ph": "X",
            "name": span.name,
            "pid": timeline.pid,
            "tid": span.tid,
            "ts": us_text(span.start),
            "dur": us(span.end - span.start),
            "cat": category,
            "args": args,
        }


def _python_spans(timeline: Timeline) -> Iterator[Event]:
    for span in timeline.spans:
        if span.kind != "python":
            continue
        args: Event = {"Python id": span.python_id, "Python parent id": _python_parent(span)}
        if span.name.startswith("nn.Module: "):
            args["Python module id"] = int(span.name.rpartition("_")[2])
        yield {
            "ph": "X",
            "name": span.name,
            "pid": timeline.pid,
            "tid": span.tid,
            "ts": us_text(span.start),
            "dur": us(span.end - span.start),
            "cat": "python_function",
            "args": args,
        }


def _garbage_collections(timeline: Timeline, lanes: _Lanes) -> Iterator[Event]:
    pauses = recorded_collections(timeline)
    if not pauses:
        return
    for pause in pauses:
        # The lane has one thread, under the number of the process.
        yield {
            "ph": "X",
            "name": "GC",
            "pid": lanes.garbage,
            "tid": timeline.pid,
            "ts": us_text(pause.start),
            "dur": us(pause.end - pause.start),
            "cat": "GC",
            "args": {},
        }
    yield from _lane(lanes.garbage, 1, "Python GC", "CPU", {timeline.pid: "Python GC"})


def _marks(timeline: Timeline, lanes: _Lanes) -> Iterator[Event]:
    """Ranges that the code marked. The exporter names their lane after the executable of the process, so that it is
    their arguments which tell them from other events."""
    if not timeline.marks:
        return
    for mark in sorted(timeline.marks, key=lambda mark: mark.start):
        yield {
            "name": mark.message,
            "pid": lanes.marks,
            "tid": mark.tid,
            "ts": us_text(mark.start),
            "dur": us(mark.end - mark.start),
            "ph": "X",
            "args": {"event_type": "start/end", "domain": MARK_DOMAIN},
        }
    threads = {mark.tid: f"Thread {mark.tid}" for mark in timeline.marks}
    yield from _lane(lanes.marks, 6, "python3", "CPU", threads)


def _python_parent(span: HostSpan) -> int:
    parent = span.parent
    while parent is not None and parent.kind != "python":
        parent = parent.parent
    return parent.python_id if parent is not None else 0


def _task_queue(timeline: Timeline) -> Iterator[Event]:
    def flow(phase: str, correlation: int, tid: int, time: int) -> Event:
        return {
            "ph": phase,
            "bp": "e",
            "name": "enqueue_to_dequeue",
            "id": correlation,
            "pid": timeline.pid,
            "tid": tid,
            "ts": us_text(time),
            "cat": "async_task_queue",
        }

    for entry in timeline.queue:
        yield {
            "ph": "X",
            "name": "Enqueue",
            "pid": timeline.pid,
            "tid": entry.tid,
            "ts": us_text(entry.enqueue_start),
            "dur": us(entry.enqueue_end - entry.enqueue_start),
            "cat": "enqueue",
            "args": {"correlation_id": entry.correlation},
        }
        yield flow("s", entry.correlation, entry.tid, entry.enqueue_start)
    for entry in timeline.queue:
        yield {
            "ph": "X",
            "name": f"Dequeue@{entry.operator}",
            "pid": timeline.pid,
            "tid": timeline.acl_tid,
            "ts": us_text(entry.dequeue_start),
            "dur": us(entry.dequeue_end - entry.dequeue_start),
            "cat": "dequeue",
            "args": {"correlation_id": entry.correlation},
        }
        yield flow("f", entry.correlation, timeline.acl_tid, entry.dequeue_start)


def _forward_backward_flows(timeline: Timeline) -> Iterator[Event]:
    for origin, node in forward_backward(timeline):
        for phase, end in (("s", origin), ("f", node)):
            yield {
                "ph": phase,
                "bp": "e",
                "name": "fwdbwd",
                "id": origin.sequence,
                "pid": timeline.pid,
                "tid": end.tid,
                "ts": us_text(end.start),
                "cat": "fwdbwd",
            }


# --- CANN and device -----------------------------------------------------------------------------------


def _cann_calls(timeline: Timeline, lanes: _Lanes, names: Names, recording: Recording) -> Iterator[Event]:
    for call in cann_calls(timeline, recording):
        level, name = call.level, call.name
        if level == "hccl":
            level, name = names.collective.lower(), name.replace("Hccl@", names.collective.capitalize() + "@")
        yield {
            "name": name,
            "pid": lanes.cann,
            "tid": call.tid,
            "ts": us_text(call.start),
            "dur": us(call.end - call.start),
            "args": {
                "Thread Id": call.tid,
                "Mode": call.mode,
                "level": level,
                "id": call.id,
                "item_id": call.item,
                "connection_id": call.connection,
            },
            "ph": "X",
        }


def _launched(timeline: Timeline) -> Iterator[tuple[DeviceTask | Collective, LaunchPoint]]:
    tasks: list[DeviceTask | Collective] = [*timeline.tasks, *timeline.collectives]
    for task in tasks:
        if task.launch is not None:
            yield task, task.launch


def _flow_id(task: DeviceTask | Collective, launch: LaunchPoint) -> int:
    if launch.flow is not None or isinstance(task, Collective):
        return launch.flow or launch.connection
    # Kernels are known to the driver by stream and task; the id does not fit 64 bits.
    return (task.stream << 16 | task.task_id) << 48 | 0xFFFFFFFF


def _place(task: DeviceTask | Collective, lanes: _Lanes) -> tuple[int, int]:
    if isinstance(task, Collective):
        return lanes.collectives, lanes.threads[task.group]
    return lanes.hardware, task.stream


def _device_tasks(timeline: Timeline, lanes: _Lanes, names: Names) -> Iterator[Event]:
    for task in timeline.tasks:
        yield _hardware_event(
            lanes,
            task.name,
            names.vector_task if task.task_type == "AI_VECTOR_CORE" else task.task_type,
            task.stream,
            task.task_id,
            task.subtask,
            task.connection,
            task.start,
            task.end,
        )
    for collective in timeline.collectives:
        for part in collective.tasks:
            name = HARDWARE_NAMES[part.kind]
            yield _hardware_event(
                lanes,
                name,
                name,
                collective.group.stream,
                collective.task_id,
                part.context,
                collective.launch.connection,
                part.start,
                part.end,
            )
    for launched, launch in _launched(timeline):
        flow = _flow_id(launched, launch)
        name = f"HostToDevice{flow}"
        pid, tid = _place(launched, lanes)
        yield {
            "name": name,
            "ph": "s",
            "cat": "HostToDevice",
            "id": str(flow),
            "pid": lanes.cann,
            "tid": launch.tid,
            "ts": us_text(launch.time),
        }
        yield {
            "name": name,
            "ph": "f",
            "id": str(flow),
            "ts": us_text(launched.start),
            "cat": "HostToDevice",
            "pid": pid,
            "tid": tid,
            "bp": "e",
        }


def _hardware_event(
    lanes: _Lanes,
    name: str,
    task_type: str,
    stream: int,
    task_id: int,
    subtask: int,
    connection: int,
    start: int,
    end: int,
) -> Event:
    return {
        "name": name,
        "pid": lanes.hardware,
        "tid": stream,
        "ts": us_text(start),
        "dur": us(end - start),
        "args": {
            "Model Id": NOT_IN_GRAPH,
            "Task Type": task_type,
            "Physic Stream Id": stream,
            "Task Id": task_id,
            "Batch Id": 0,
            "Subtask Id": subtask,
            "connection_id": connection,
        },
        "ph": "X",
    }


def _collectives(timeline: Timeline, lanes: _Lanes, recording: Recording) -> Iterator[Event]:
    for collective in timeline.collectives:
        yield {
            "name": collective_name(collective),
            "pid": lanes.collectives,
            "tid": lanes.threads[collective.group],
            "ts": us_text(collective.start),
            "dur": us(collective.end - collective.start),
            "args": {
                "connection_id": collective.launch.connection,
                "model id": NOT_IN_GRAPH,
                "data_type": collective_dtype(collective),
                "alg_type": "MESH-RING",
                "count": collective.data.nbytes // collective.data.dtype.size,
            },
            "ph": "X",
        }
        for part in collective.tasks if recording.details else ():
            yield {
                "name": part.kind,
                "pid": lanes.collectives,
                "tid": lanes.threads[collective.group] + part.plane + 1,
                "ts": us_text(part.start),
                "dur": us(part.end - part.start),
                "args": _plane_args(collective.group.local(timeline.rank), collective, part),
                "ph": "X",
            }


def _plane_args(rank: int, collective: Collective, part: PlaneTask) -> Event:
    duration = us(part.end - part.start)
    step = plane_step(collective, part)
    estimated = {"Notify_Record": 1, "Notify_Wait": 0.02}.get(part.kind, 0.6 + part.nbytes / 19300)
    return {
        "notify_id": str(_NO_NOTIFY if step.notify is None else step.notify),
        "duration estimated(us)": estimated,
        "stream id": collective.group.stream,
        "task id": collective.task_id,
        "context id": part.context,
        "task type": part.kind,
        "src rank": rank,
        "dst rank": NOT_IN_GRAPH if part.peer is None else part.peer,
        "transport type": step.transport,
        "size(Byte)": part.nbytes,
        "data type": step.dtype,
        "link type": step.link,
        "bandwidth(GB/s)": part.nbytes / duration / 1000 if part.nbytes > 0 else 0.0,
        "model id": NOT_IN_GRAPH,
    }


def _frequency(timeline: Timeline, lanes: _Lanes) -> Iterator[Event]:
    for time, mhz in clock_samples(timeline):
        yield {
            "name": "AI Core Freq",
            "ts": us_text(time),
            "pid": lanes.frequency,
            "tid": 0,
            "args": {"MHz": mhz},
            "ph": "C",
        }


def _overlap(timeline: Timeline, lanes: _Lanes) -> Iterator[Event]:
    for event in OverlapAnalysis.of(timeline).events():
        yield {
            "name": event.lane,
            "pid": lanes.overlap,
            "tid": OverlapAnalysis.LANES.index(event.lane),
            "ts": us_text(event.start),
            "dur": us(event.end - event.start),
            "ph": "X",
        }


def _operator_to_device_flows(timeline: Timeline, lanes: _Lanes) -> Iterator[Event]:
    for task, launch in _launched(timeline):
        span = launch.span
        pid, tid = _place(task, lanes)
        for phase, process, thread, time in (("s", timeline.pid, span.tid, span.start), ("f", pid, tid, task.start)):
            yield {
                "ph": phase,
                "bp": "e",
                "name": "torch_to_npu",
                "id": task.start,
                "pid": process,
                "tid": thread,
                "ts": us_text(time),
                "cat": "async_npu",
            }


# --- names of processes and threads --------------------------------------------------------------------


def _framework_lanes(timeline: Timeline) -> Iterator[Event]:
    properties: tuple[tuple[str, Event], ...] = (
        ("process_name", {"name": "Python"}),
        ("process_labels", {"labels": "CPU"}),
        ("process_sort_index", {"sort_index": 0}),
    )
    for name, args in properties:
        yield {"ph": "M", "name": name, "pid": timeline.pid, "tid": 0, "args": args}
    threads = {tid: tid for tid in (timeline.pid, timeline.autograd_tid)}
    # The thread that empties the queue is shown below the ones that fill it.
    threads[timeline.acl_tid] = timeline.autograd_tid + 1
    for tid, sort_index in threads.items():
        yield {"ph": "M", "name": "thread_name", "pid": timeline.pid, "tid": tid, "args": {"name": f"Thread {tid}"}}
        yield {
            "ph": "M",
            "name": "thread_sort_index",
            "pid": timeline.pid,
            "tid": tid,
            "args": {"sort_index": sort_index},
        }


def _device_lanes(timeline: Timeline, lanes: _Lanes, names: Names, recording: Recording) -> Iterator[Event]:
    label = f"NPU {timeline.device}" if names.has_device_column else "NPU"
    host_tids = (timeline.pid, timeline.autograd_tid, timeline.acl_tid)
    # Without events the lane of CANN has no name, but still the threads at which flows begin
    # (docs/sources.md#lanes-of-the-trace).
    name = "CANN" if recording.details else None
    yield from _lane(lanes.cann, 7, name, "CPU", {tid: f"Thread {tid}" for tid in host_tids})
    streams = (COMPUTE_STREAM, *(group.stream for group in timeline.groups))
    yield from _lane(lanes.hardware, 13, "Ascend Hardware", label, {stream: f"Stream {stream}" for stream in streams})
    yield from _lane(lanes.frequency, 14, "AI Core Freq", label, {})
    planes: dict[int, str] = {}
    for number, (group, thread) in enumerate(lanes.threads.items()):
        planes[thread] = f"Group {number} Communication"
        shown = len(group.ranks) if recording.details else 1
        planes |= {thread + 1 + plane: f"Plane {plane}" for plane in range(shown)}
    yield from _lane(lanes.collectives, 15, names.collective, label, planes)
    overlap = dict(enumerate(OverlapAnalysis.LANES))
    yield from _lane(lanes.overlap, 23, "Overlap Analysis", label, overlap, sorted_threads=False)


def _lane(
    pid: int, sort_index: int, name: str | None, label: str, threads: dict[int, str], *, sorted_threads: bool = True
) -> Iterator[Event]:
    def meta(what: str, tid: int, args: Event) -> Event:
        return {"name": what, "pid": pid, "tid": tid, "args": args, "ph": "M"}

    if name is not None:
        yield meta("process_name", 0, {"name": name})
    for tid, thread in threads.items():
        yield meta("thread_name", tid, {"name": thread})
        if sorted_threads:
            yield meta("thread_sort_index", tid, {"sort_index": tid})
    yield meta("process_labels", 0, {"labels": label})
    yield meta("process_sort_index", 0, {"sort_index": sort_index})
