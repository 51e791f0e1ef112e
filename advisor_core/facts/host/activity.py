"""Activity of the host over time, one label at each moment."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from advisor_core.contracts.facts import Facts, Unavailable, fact
from advisor_core.facts.host.launches import Launches
from advisor_core.facts.intervals import Layer, earliest_start_wins, empty, first_of, union
from advisor_core.text.messages import message

ACTIVITIES = ("gc", "compile", "dataloader", "memory", "sync", "copy", "runtime", "framework", "python")
"""Labels, outermost cause first: where several hold at once the first one is the cause. Garbage collection stops every
thread; compiling, allocating, synchronising and copying are named calls within the runtime; the runtime is what the
launching thread does; the framework is what the threads that feed it do inside operators; Python is the rest of a
step, in which no operator is running."""

CALLS = {
    "compile": re.compile(r"aclopCompile|opCompile|aclopBuild|aclGenGraph|aclnn_?compile", re.I),
    "memory": re.compile(
        r"aclrtMalloc|aclrtFree|aclMallocMem|MallocPhysical|FreePhysical|aclrtMapMem|aclrtUnmapMem", re.I
    ),
    "sync": re.compile(r"aclrtSynchronize|aclrtStreamSynchronize|aclrtDeviceSynchronize", re.I),
    "copy": re.compile(r"aclrtMemcpy", re.I),
}
"""CANN calls that a label stands for."""
LOADER = re.compile(r"DataLoader.*__next__", re.I)
STEP_MARK = re.compile(r"^ProfilerStep#")
"""The annotation around a profiled step."""
ANNOTATION = re.compile(r"#|^[\w.]+\.(forward|backward|step|zero_grad|__\w+__)$")
"""Marks around Python code that the profiler records like operators: ``Optimizer.step#SGD.step``,
``DistributedDataParallel.forward``, ``enumerate(DataLoader)#...``. What runs inside them between two operators is
Python."""
_CATEGORIES = ("cann", "cpu_op", "dequeue", "enqueue", "gc", "user_annotation")
_FRAMEWORK = ("cpu_op", "python_function", "user_annotation", "enqueue", "dequeue")
SYNC_OPERATORS = re.compile(r"aten::(item|_local_scalar_dense|nonzero|is_nonzero|_to_cpu|unique|masked_select)$")
"""Operators that wait for the device; used where the trace has no CANN calls (Level0)."""


@dataclass(frozen=True)
class HostActivity:
    """``labels``: at each moment the number of a label in `ACTIVITIES`, in device time. ``steps``: moments inside a
    recorded step of the framework (``ProfilerStep#N``); empty where none is recorded. ``syncs``: synchronising calls
    of the threads that feed the device, in device time; ids are rows of ``host_events``. ``feeders``: those threads;
    ``launchers``: the threads that empty the task queue; ``launching``: what these did, as ``labels``. ``framework``:
    calls of the framework were recorded; else time outside of calls into CANN may be Python's or the framework's."""

    labels: Layer
    steps: Layer
    syncs: Layer
    feeders: frozenset[int]
    launchers: frozenset[int]
    launching: Layer
    framework: bool = True


def matching(names: pd.Series, pattern: re.Pattern[str]) -> np.ndarray:
    """Which rows of a categorical have a name in which the pattern occurs; each distinct name is tried once."""
    hits = np.array([bool(pattern.search(str(name))) for name in names.cat.categories.tolist()], dtype=bool)
    return hits[names.cat.codes.to_numpy()] if len(hits) else np.zeros(len(names), dtype=bool)


@fact("host_activity", needs=("host_events", "launches"))
def host_activity(facts: Facts) -> HostActivity:
    """What the threads that feed the device were doing at each moment, one label each."""
    events, launched = facts["host_events"], facts["launches"]
    launchers, feeders = _threads(events, launched)
    if not launchers | feeders:
        raise Unavailable(message("host.none"), message("host.none.collect"), ("host", "level1"))
    skew = launched.skew_ns
    category = {name: (events["category"] == name).to_numpy() for name in _CATEGORIES}
    thread = events["thread"].to_numpy()
    fed, launched_by = np.isin(thread, list(feeders)), np.isin(thread, list(launchers))
    active = fed | launched_by
    cann = category["cann"]
    operators = category["cpu_op"] & fed & ~matching(events["name"], ANNOTATION)

    def layer(rows: np.ndarray) -> Layer:
        starts = events["start_ns"].to_numpy()[rows] - skew
        return union(starts, starts + events["duration_ns"].to_numpy()[rows])

    calls = {name: cann & active & matching(events["name"], pattern) for name, pattern in CALLS.items()}
    if not calls["sync"].any() and not cann.any():
        calls["sync"] = operators & matching(events["name"], SYNC_OPERATORS)
    loading = fed & matching(events["name"], LOADER)
    annotated = (category["user_annotation"] | category["cpu_op"]) & matching(events["name"], STEP_MARK)
    window = annotated if annotated.any() else active
    framework = bool(events["category"].isin(_FRAMEWORK).any())
    labels = {
        "gc": layer(category["gc"]),
        "compile": layer(calls["compile"]),
        "dataloader": layer(loading),
        "memory": layer(calls["memory"]),
        "sync": layer(calls["sync"]),
        "copy": layer(calls["copy"]),
        "runtime": layer((category["dequeue"] & launched_by) | (cann & active)),
        "framework": layer(operators | (category["enqueue"] & fed)),
        "python": (_span(layer(window)) if framework else empty()) if not annotated.any() else layer(annotated),
    }
    syncs = np.flatnonzero(calls["sync"] & fed)
    starts = events["start_ns"].to_numpy()[syncs] - skew
    outer = earliest_start_wins(starts, starts + events["duration_ns"].to_numpy()[syncs])
    return HostActivity(
        first_of([labels[name] for name in ACTIVITIES]),
        layer(annotated),
        Layer(outer.starts, outer.ends, syncs[outer.ids].astype(np.int64)),
        feeders,
        launchers,
        _of_launchers(layer, calls, category["dequeue"], cann, launched_by),
        framework,
    )


def _of_launchers(
    layer: Callable[[np.ndarray], Layer],
    calls: Mapping[str, np.ndarray],
    dequeues: np.ndarray,
    cann: np.ndarray,
    launched_by: np.ndarray,
) -> Layer:
    rows = {name: chosen & launched_by for name, chosen in calls.items() if name != "sync"}
    rows["runtime"] = (dequeues | cann) & launched_by
    return first_of([layer(rows[name]) if name in rows else empty() for name in ACTIVITIES])


def _threads(events: pd.DataFrame, launched: Launches) -> tuple[frozenset[int], frozenset[int]]:
    """(threads that empty the task queue, threads that feed it or launch by themselves)."""
    category = events["category"]
    launchers = frozenset(_distinct(events.loc[category == "dequeue", "thread"]))
    by_launch = _distinct(launched.frame.loc[launched.known(), "thread"])
    feeders = frozenset(_distinct(events.loc[category == "enqueue", "thread"])) | (frozenset(by_launch) - launchers)
    loops = events.loc[matching(events["name"], LOADER) | matching(events["name"], STEP_MARK), "thread"]
    return launchers, feeders | (frozenset(_distinct(loops)) if feeders else frozenset())


def _distinct(threads: pd.Series) -> Iterable[int]:
    return (int(thread) for thread in threads.unique())


def _span(layer: Layer) -> Layer:
    if not len(layer):
        return empty()
    return Layer(layer.starts[:1], layer.ends[-1:], layer.ids[:1])
