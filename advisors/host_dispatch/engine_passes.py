"""The passes of an engine that serves, in parts: before the forward pass, in it, after it, and up to the next.

Engines mark their passes (`Vocabulary.prefill_mark`). The forward pass within one is told, in this order, by a mark of
the engine (`Vocabulary.forward_mark`), by the outermost module that is called there, or by the replay of a graph; what
launches less than half of the device time of the pass is not the forward pass. Times are those of the host, on the
thread of the mark.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from advisor_core.api.advisors import Drawing, drawing
from advisor_core.api.facts import HOST_EVENTS, PROFILE, Facts, Vocabulary, launches, matching, parents_of, union, work
from advisor_core.api.renderers import Cell, View
from advisors.layers.modules import MARK
from advisors.messages import message
from advisors.rank_tables import rank_table

Ints = npt.NDArray[np.int64]

MARKS: Final = ("user_annotation", "mstx", "cpu_op")
LEAST = 0.5
"""Of the device time that a pass launches: a part that launches less is not its forward pass; our choice."""

KINDS: Final = {
    "prefill": "host_dispatch.passes.prefill",
    "decode": "host_dispatch.passes.decode",
    "mixed": "host_dispatch.passes.mixed",
}
PHASES: Final = ("before", "forward", "after", "between")
TOLD: Final = {
    "mark": "host_dispatch.passes.by_mark",
    "module": "host_dispatch.passes.by_module",
    "graph": "host_dispatch.passes.by_graph",
}
_NAMES: Final = {
    "before": "host_dispatch.passes.before",
    "forward": "host_dispatch.passes.forward",
    "after": "host_dispatch.passes.after",
    "between": "host_dispatch.passes.between",
}
_COLUMNS: Final = (
    ("host_dispatch.passes.kind", ""),
    ("host_dispatch.passes.count", ""),
    ("host_dispatch.passes.phase", ""),
    ("host_dispatch.passes.host", "ns"),
    ("host_dispatch.passes.waits", "ns"),
    ("host_dispatch.passes.longest", "ns"),
    ("host_dispatch.passes.device", "ns"),
    ("host_dispatch.passes.told", ""),
)


@drawing("host_dispatch.engine_passes", needs=(HOST_EVENTS, work, launches, PROFILE))
def passes_of_engine(facts: Facts) -> list[View]:
    """Marked passes of an engine: host time before, in and after the forward pass, and what each launches."""
    found = engine_passes(facts)
    if found.empty:
        return []
    rows: list[list[Cell]] = []
    for kind, name in KINDS.items():
        of_kind = found[found["kind"] == kind]
        for told in [*TOLD, ""]:
            own = of_kind[of_kind["told"] == told]
            for phase in PHASES:
                times = own[own[phase] >= 0]
                if times.empty or (phase in ("forward", "after") and not told):
                    continue
                means = [round(float(times[f"{phase}{more}"].mean())) for more in ("", "_waits", "_device")]
                longest = int(times[phase].max())
                by = message(TOLD[told]) if told else message("host_dispatch.passes.untold")
                label = message(_NAMES[phase] if told or phase == "between" else "host_dispatch.passes.whole")
                rows.append([message(name), len(times), label, means[0], means[1], longest, means[2], by])
    rank = facts[PROFILE].rank
    title = message("host_dispatch.view.passes", rank=rank, count=len(found))
    return [rank_table("engine-passes", title, rank, _COLUMNS, rows)]


def engine_passes(facts: Facts) -> pd.DataFrame:
    """One row per marked pass, in order of start: ``kind``; ``told``, by what the forward pass is told, '' where it is
    not; and of each phase its host time, as ``_waits`` the part in which the host waits for the device, and as
    ``_device`` the time of the kernels that it launches, ns. Where the forward pass is not told, ``before`` is the
    whole pass; ``between`` is -1 of the last pass of a thread."""
    events, words = facts[HOST_EVENTS], facts[PROFILE].vocabulary
    marks = marked_passes(events, words)
    if marks.empty:
        return pd.DataFrame({"kind": [], "told": []})
    launched = _Launched.of(facts, events)
    candidates = _candidates(events, words)
    syncs = events[(events["category"] == "runtime").to_numpy() & matching(events["name"], words.sync_calls)]
    rows = []
    for thread in np.unique(marks["thread"].to_numpy()).tolist():
        own = marks[marks["thread"] == thread]
        on_thread = {told: _spans(table[table["thread"] == thread]) for told, table in candidates.items()}
        waits = syncs[syncs["thread"] == thread]
        waiting = union(waits["start_ns"].to_numpy(), (waits["start_ns"] + waits["duration_ns"]).to_numpy())
        device = launched.on(thread)
        starts = own["start_ns"].to_numpy()
        ends = starts + own["duration_ns"].to_numpy()
        following = np.append(starts[1:], ends[-1:])
        for kind, start, end, next_start in zip(own["kind"], starts, ends, following, strict=True):
            told, low, high = _forward(on_thread, device, int(start), int(end))
            borders = np.array([start, low, high, end, max(end, next_start)])
            host, waited = np.diff(borders), np.diff(waiting.measure(borders))
            took = np.diff(device.before(borders))
            row: dict[str, object] = {"kind": kind, "told": told, "start_ns": int(start)}
            for place, phase in enumerate(PHASES):
                row |= {phase: host[place], f"{phase}_waits": waited[place], f"{phase}_device": took[place]}
            rows.append(row)
        rows[-1]["between"] = -1
    return pd.DataFrame(rows).sort_values("start_ns", kind="stable", ignore_index=True)


def marked_passes(events: pd.DataFrame, words: Vocabulary) -> pd.DataFrame:
    """The outermost marks of passes with their ``kind`` (prefill, decode or mixed), in order of start."""
    is_mark = events["category"].isin(MARKS[:2]).to_numpy()
    prefill, decode = (is_mark & matching(events["name"], each) for each in (words.prefill_mark, words.decode_mark))
    marks = events[prefill | decode]
    both = prefill[prefill | decode] & decode[prefill | decode]
    kind = np.where(both, "mixed", np.where(prefill[prefill | decode], "prefill", "decode"))
    starts = marks["start_ns"].to_numpy()
    around = parents_of(marks["thread"].to_numpy(), starts, starts + marks["duration_ns"].to_numpy())
    found: pd.DataFrame = marks.assign(kind=kind)[around < 0]
    return found.sort_values("start_ns", kind="stable")


def _candidates(events: pd.DataFrame, words: Vocabulary) -> dict[str, pd.DataFrame]:
    """Candidates for a forward pass, by the sign that tells them."""
    modules = events[(events["category"] == "python_function").to_numpy() & matching(events["name"], MARK)]
    starts = modules["start_ns"].to_numpy()
    around = parents_of(modules["thread"].to_numpy(), starts, starts + modules["duration_ns"].to_numpy())
    return {
        "mark": events[events["category"].isin(MARKS).to_numpy() & matching(events["name"], words.forward_mark)],
        "module": modules[around < 0],
        "graph": events[(events["category"] == "runtime").to_numpy() & matching(events["name"], words.graph_replay)],
    }


def _spans(events: pd.DataFrame) -> tuple[Ints, Ints]:
    """Start and end of each event, in order of start."""
    starts, took = (events[name].to_numpy(dtype=np.int64) for name in ("start_ns", "duration_ns"))
    order = np.argsort(starts, kind="stable")
    return starts[order], (starts + took)[order]


def _forward(candidates: dict[str, tuple[Ints, Ints]], device: _Launched, start: int, end: int) -> tuple[str, int, int]:
    """By what the forward pass between two moments is told, its start and its end; '' and the end twice for none.
    ``candidates``: by what it is told by, starts and ends in order."""
    (total,) = np.diff(device.before(np.array([start, end])))
    for told, (starts, ends) in candidates.items():
        first, last = np.searchsorted(starts, [start, end + 1])
        low, high = starts[first:last], ends[first:last]
        low, high = low[high <= end], high[high <= end]
        if not len(low) or not total:
            continue
        if told == "graph":  # a graph in pieces has several replays
            low, high = low.min(keepdims=True), high.max(keepdims=True)
        took = device.before(high) - device.before(low)
        most = int(took.argmax())
        if took[most] >= LEAST * total:
            return told, int(low[most]), int(high[most])
    return "", end, end


class _Launched:
    """Kernels by the time and thread of the call of the host, with their durations."""

    def __init__(self, threads: Ints, times: Ints, took: Ints) -> None:
        order = np.argsort(times, kind="stable")
        self._threads, self._times, self._took = threads[order], times[order], took[order]
        self._sums = np.concatenate([[0], np.cumsum(self._took)])

    @classmethod
    def of(cls, facts: Facts, events: pd.DataFrame) -> _Launched:
        device, launched = facts[work], facts[launches].frame
        rows = np.where(launched["op_row"] >= 0, launched["op_row"], launched["call_row"]).astype(np.int64)
        known = np.flatnonzero(rows >= 0)
        at = events.iloc[rows[known]]
        took = (device["end_ns"] - device["start_ns"]).to_numpy()[known]
        return cls(at["thread"].to_numpy(), at["start_ns"].to_numpy(), took)

    def on(self, thread: int) -> _Launched:
        """Those that this thread called for."""
        own = self._threads == thread
        return _Launched(self._threads[own], self._times[own], self._took[own])

    def before(self, times: Ints) -> Ints:
        """The time of the kernels that were called for before each moment, ns."""
        found: Ints = self._sums[np.searchsorted(self._times, times, side="left")]
        return found


DRAWINGS: tuple[Drawing, ...] = (passes_of_engine,)
