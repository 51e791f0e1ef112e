"""Activity of the host over time, one label at each moment."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from advisor_core.contracts.facts import Facts, fact
from advisor_core.contracts.missing import Unavailable
from advisor_core.contracts.profile import PROFILE
from advisor_core.contracts.tables import DEVICE_TASKS, FLOWS, HOST_EVENTS
from advisor_core.facts.host.launches import Launches, launches
from advisor_core.facts.host.waiting_copies import waiting_copies
from advisor_core.facts.intervals import Layer, earliest_start_wins, empty, first_of, union
from advisor_core.facts.matching import matching
from advisor_core.text.messages import message
from advisor_core.vocabulary.vocabulary import Vocabulary

_CATEGORIES = ("runtime", "cpu_op", "dequeue", "enqueue", "gc", "user_annotation")
_FRAMEWORK = ("cpu_op", "python_function", "user_annotation", "enqueue", "dequeue")


@dataclass(frozen=True)
class HostActivity:
    """``activities``: the labels of the host, outermost cause first. ``labels``: at each moment the number of one, in
    device time. ``steps``: moments inside a recorded step of the framework (``ProfilerStep#N``); empty where none is
    recorded. ``syncs``: calls of the threads that feed the device that return when it has done its work (copies too),
    in device time; ids are rows of ``host_events``. ``feeders``: those threads; ``launchers``: the threads that empty
    the task queue; ``launching``: what these did, as ``labels``. ``framework``: calls of the framework were recorded;
    else time outside of calls into CANN may be Python's or the framework's."""

    activities: tuple[str, ...]
    labels: Layer
    steps: Layer
    syncs: Layer
    feeders: frozenset[int]
    launchers: frozenset[int]
    launching: Layer
    framework: bool = True


@fact("host_activity", needs=(HOST_EVENTS, launches, PROFILE), wants=(DEVICE_TASKS, FLOWS))
def host_activity(facts: Facts) -> HostActivity:
    """Activity of the threads that feed the device at each moment, one label each."""
    events, launched = facts[HOST_EVENTS], facts[launches]
    words = facts[PROFILE].vocabulary
    launchers, feeders = _threads(events, launched, words)
    if not launchers | feeders:
        raise Unavailable(message("host.none"), message("host.none.collect"), ("host", "level1"))
    skew = launched.skew_ns
    category = {name: (events["category"] == name).to_numpy() for name in _CATEGORIES}
    thread = events["thread"].to_numpy()
    fed, launched_by = np.isin(thread, list(feeders)), np.isin(thread, list(launchers))
    active = fed | launched_by
    runtime = category["runtime"]
    operators = category["cpu_op"] & fed & ~matching(events["name"], words.annotation)

    def layer(rows: np.ndarray) -> Layer:
        starts = events["start_ns"].to_numpy()[rows] - skew
        return union(starts, starts + events["duration_ns"].to_numpy()[rows])

    leaf_activities = {leaf.activity for leaf in words.leaves}
    calls = {
        name: (fed if name in leaf_activities else runtime & active) & matching(events["name"], pattern)
        for name, pattern in words.calls.items()
    }
    if not calls["sync"].any() and not runtime.any():
        calls["sync"] = operators & matching(events["name"], words.sync_operators)
    waits = calls["sync"]
    if DEVICE_TASKS in facts and FLOWS in facts:  # these drain the queue; what the device lacks meanwhile is the copy's
        waits = waits | (waiting_copies(events, facts[DEVICE_TASKS], facts[FLOWS], skew, words) & active)
    loading = fed & matching(events["name"], words.data_loader)
    annotated = (category["user_annotation"] | category["cpu_op"]) & matching(events["name"], words.step_mark)
    window = annotated if annotated.any() else active
    framework = bool(events["category"].isin(_FRAMEWORK).any())
    labels = {
        "gc": layer(category["gc"]),
        "compile": layer(calls["compile"]),
        "dataloader": layer(loading),
        "memory": layer(calls["memory"]),
        "sync": layer(calls["sync"]),
        "copy": layer(calls["copy"]),
        **{name: layer(calls[name]) for name in leaf_activities},
        "runtime": layer((category["dequeue"] & launched_by) | (runtime & active)),
        "framework": layer(operators | (category["enqueue"] & fed)),
        "python": (_span(layer(window)) if framework else empty()) if not annotated.any() else layer(annotated),
    }
    syncs = np.flatnonzero(waits & fed)
    starts = events["start_ns"].to_numpy()[syncs] - skew
    outer = earliest_start_wins(starts, starts + events["duration_ns"].to_numpy()[syncs])
    return HostActivity(
        words.activities,
        first_of([labels[name] for name in words.activities]),
        layer(annotated),
        Layer(outer.starts, outer.ends, syncs[outer.ids].astype(np.int64)),
        feeders,
        launchers,
        _of_launchers(words.activities, layer, calls, category["dequeue"], runtime, launched_by),
        framework,
    )


def _of_launchers(
    activities: Sequence[str],
    layer: Callable[[np.ndarray], Layer],
    calls: Mapping[str, np.ndarray],
    dequeues: np.ndarray,
    runtime: np.ndarray,
    launched_by: np.ndarray,
) -> Layer:
    rows = {name: chosen & launched_by for name, chosen in calls.items() if name != "sync"}
    rows["runtime"] = (dequeues | runtime) & launched_by
    return first_of([layer(rows[name]) if name in rows else empty() for name in activities])


def _threads(events: pd.DataFrame, launched: Launches, words: Vocabulary) -> tuple[frozenset[int], frozenset[int]]:
    """(threads that empty the task queue, threads that feed it or launch by themselves)."""
    category = events["category"]
    launchers = frozenset(_distinct(events.loc[category == "dequeue", "thread"]))
    by_launch = _distinct(launched.frame.loc[launched.known(), "thread"])
    feeders = frozenset(_distinct(events.loc[category == "enqueue", "thread"])) | (frozenset(by_launch) - launchers)
    marks = matching(events["name"], words.data_loader) | matching(events["name"], words.step_mark)
    loops = events.loc[marks, "thread"]
    return launchers, feeders | (frozenset(_distinct(loops)) if feeders else frozenset())


def _distinct(threads: pd.Series) -> Iterable[int]:
    return (int(thread) for thread in threads.unique())


def _span(layer: Layer) -> Layer:
    if not len(layer):
        return empty()
    return Layer(layer.starts[:1], layer.ends[-1:], layer.ids[:1])
