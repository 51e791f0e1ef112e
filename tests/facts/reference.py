"""The ledger, written plainly: one microsecond at a time, by looking through everything that happens in it.

Slow and obvious, it is what `advisor_core.facts.ledger.bookings` is held against. Works on the same small timelines, whose
borders are all whole microseconds.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from advisor_core.plugins.host import load_host

LATENCY = 30
LONG_CALL = 30
"""The launch counts from so long before the end of the call in which it lies."""
ORDER = ("gc", "compile", "dataloader", "memory", "sync", "copy", "runtime", "framework", "python")
NAMES = {
    "gc": ("gc", "collect"),
    "compile": ("runtime", "AscendCL@aclopCompileAndExecute"),
    "dataloader": ("cpu_op", "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"),
    "memory": ("runtime", "AscendCL@aclrtMalloc"),
    "sync": ("runtime", "AscendCL@aclrtSynchronizeStreamWithTimeout"),
    "copy": ("runtime", "AscendCL@aclrtMemcpy"),
    "runtime": ("dequeue", "Dequeue@aclnnAdd"),
    "framework": ("cpu_op", "aten::add"),
}

CLASSES = load_host().vocabulary("ascend").operator_classes


@dataclass
class Kernel:
    start: int
    end: int
    type: str
    launch: int | None = None

    @property
    def talks(self) -> bool:
        return self.type.startswith("hcom")


@dataclass
class Task:
    """A task on a plane: ``peer`` is the rank it waits for, ``None`` for one that moves data."""

    start: int
    end: int
    peer: int | None


@dataclass
class Story:
    kernels: list[Kernel]
    planes: list[Task] = field(default_factory=list)
    host: list[tuple[str, int, int]] = field(default_factory=list)
    """(activity, start, end) on the main thread or, for runtime and compile, on the launching one."""
    copies: list[tuple[int, int]] = field(default_factory=list)
    waits: list[tuple[int, int]] = field(default_factory=list)


def ledger(story: Story) -> dict[str, int]:
    """Path to microseconds."""
    start = min(k.start for k in story.kernels)
    end = max(k.end for k in story.kernels)
    booked: Counter[str] = Counter()
    owed: dict[int, int] = {}
    for t in range(start, end):
        running = [k for k in story.kernels if k.start <= t < k.end]
        computing = {CLASSES.class_of(k.type) for k in running if not k.talks}
        if computing:
            booked["compute/" + min(computing, key=CLASSES.names.index)] += 1
        elif running:
            booked[_communicating(story, t)] += 1
        else:
            booked[_idle(story, t, owed)] += 1
    return dict(booked)


def _communicating(story: Story, t: int) -> str:
    tasks = [task for task in story.planes if task.start <= t < task.end]
    if any(task.peer is None for task in tasks):
        return "communication/transmit"
    if tasks:
        return f"communication/wait/rank {max(tasks, key=lambda task: (task.end, -(task.peer or 0))).peer}"
    holders = [k for k in story.kernels if k.talks and k.start <= t < k.end]
    if any(k.start <= task.start < k.end for k in holders for task in story.planes):
        return "communication/launch"
    return "communication/unknown"


def _idle(story: Story, t: int, owed: dict[int, int]) -> str:
    begin = max(k.end for k in story.kernels if k.end <= t)
    following = min((k for k in story.kernels if k.start > t), key=lambda k: k.start)
    if following.launch is None:
        return "idle/unknown"
    launch = _launched(story, following.launch, following.start)
    if t < launch:
        return _late(story, t, owed)
    if any(a <= t < b for a, b in story.copies):
        return "idle/copy"
    if any(a <= t < b for a, b in story.waits):
        return "idle/dependency"
    switched = launch <= begin and following.start - begin > LATENCY
    return "idle/task_switch" if switched else "idle/launch_latency"


def _launched(story: Story, launch: int, start: int) -> int:
    """A call that goes on for long after its arrow began has launched when it is nearly done."""
    calls = [(a, b) for activity, a, b in story.host if activity == "compile" and a <= launch < b]
    return max(launch, min(max(calls)[1] - LONG_CALL, start)) if calls else launch


def _late(story: Story, t: int, owed: dict[int, int]) -> str:
    active = {activity for activity, a, b in story.host if a <= t < b}
    label = next((name for name in ORDER if name in active), "python")
    if label == "sync":
        return "idle/sync"
    if label in ("runtime", "framework", "python"):
        ended = [(b, a) for activity, a, b in story.host if activity == "sync" and b <= t]
        if ended:
            b, a = max(ended)
            if b not in owed:
                owed[b] = sum(any(k.start <= u < k.end for k in story.kernels) for u in range(a, b))
            if owed[b] > 0:
                owed[b] -= 1
                return "idle/sync"
    return f"idle/host/{label}"
