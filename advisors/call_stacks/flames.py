"""Flame graphs: time of the host and of the device by call stack."""

from __future__ import annotations

from typing import Final, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from advisor_core.api.advisors import Drawing, drawing
from advisor_core.api.facts import HOST_EVENTS, PROFILE, Facts, host_steps, launches, steps, work
from advisor_core.api.renderers import Flame, FlameView, FrameKind, View
from advisors.call_stacks.own_times import own_times
from advisors.call_stacks.paths import Nesting, Paths, called, placed
from advisors.messages import message

Ints = npt.NDArray[np.int64]

MOST: Final = 1500
"""Places of a graph, those with most time; our choice: with their names they take about 100 kB."""


_TITLES: Final = {"host": "call_stacks.view.host", "device": "call_stacks.view.device"}
_ASIDE: Final = ("python_function", "gc", "user_annotation", "mstx")
"""A thread with no other events runs no operator and launches nothing: it waits, or does other work beside the step."""

_STACKED: Final = ("cpu_op", "python_function")
"""Without these the host has calls of the runtime alone, which call nothing that is recorded."""


@drawing("call_stacks.flames", needs=(HOST_EVENTS, PROFILE, called), wants=(steps, host_steps, work, launches))
def flames(facts: Facts) -> list[View]:
    """Time by call stack in the profiled steps: of the host by thread, and of the device by what launched it."""
    events, profile = facts[HOST_EVENTS], facts[PROFILE]
    if events.empty or (steps not in facts and host_steps not in facts):
        return []
    nesting = facts[called].nesting
    windows = _host_windows(facts, events, nesting.hidden)
    views = []
    if (host := _host(events, nesting, windows)) is not None:
        views.append(_view(host, profile.rank, len(windows)))
    if steps in facts and launches in facts and (device := _device(facts)) is not None:
        views.append(_view(device, profile.rank, len(facts[steps])))
    return [*views]


def _host_windows(facts: Facts, events: pd.DataFrame, is_mark: npt.NDArray[np.bool_]) -> pd.DataFrame:
    """The profiled steps on the host, which is ahead of the device: from a mark to the next, of the last one to its
    end; a single step without a mark is all that was recorded."""
    if host_steps in facts:
        return facts[host_steps]
    windows, marks = facts[steps], events[is_mark].sort_values("start_ns")
    number = pd.to_numeric(marks["name"].astype(str).str.extract(r"(\d+)$")[0], errors="coerce").fillna(-1)
    begin, end = marks["start_ns"].to_numpy(), (marks["start_ns"] + marks["duration_ns"]).to_numpy()
    end = np.append(begin[1:], end[-1:])
    chosen = number.isin(windows["step"]).to_numpy() & (number >= 0).to_numpy()
    if chosen.any():
        return pd.DataFrame({"start_ns": begin[chosen], "end_ns": end[chosen]})
    if len(windows) > 1:
        return windows
    last = (events["start_ns"] + events["duration_ns"]).max()
    return pd.DataFrame({"start_ns": [events["start_ns"].min()], "end_ns": [last]})


def _host(events: pd.DataFrame, nesting: Nesting, windows: pd.DataFrame) -> Flame | None:
    if not events["category"].isin(_STACKED).any():
        return None
    own = own_times(events, windows)
    works = events["thread"].isin(events["thread"][~events["category"].isin(_ASIDE)].unique()).to_numpy()
    own[~works] = 0
    paths = Paths()
    threads, number = np.unique(events["thread"].to_numpy(), return_inverse=True)
    roots = np.array([paths.place(-1, str(thread), "thread") for thread in threads.tolist()], dtype=np.int64)
    places = placed(paths, events, nesting, nesting.around, roots[number])
    return flame_of("host", paths, places, own)


def _device(facts: Facts) -> Flame | None:
    windows, device, launched = facts[steps], facts[work], facts[launches].frame
    starts = device["start_ns"].to_numpy()
    window = np.searchsorted(windows["start_ns"].to_numpy(), starts, side="right") - 1
    shown = np.flatnonzero((window >= 0) & (starts < windows["end_ns"].to_numpy()[np.maximum(window, 0)]))
    calls = np.where(launched["op_row"] >= 0, launched["op_row"], launched["call_row"]).astype(np.int64)[shown]
    if not (calls >= 0).any():
        return None
    paths, places = facts[called].paths.copy(), facts[called].places
    above = np.where(calls >= 0, places[np.maximum(calls, 0)], -1)
    if (calls < 0).any():
        above[calls < 0] = paths.place(-1, "", "unknown")
    kernels = device.iloc[shown]
    names = kernels["type"].astype(str).where(kernels["type"] != "", kernels["name"].astype(str))
    codes, kinds = pd.factorize(names)
    frames = np.array([name for name, _ in paths.frames] + [""], dtype=object)  # -1: no frame
    is_same = np.asarray(frames[above] == names.to_numpy(), dtype=np.bool_)
    number, distinct = pd.factorize((above + 1) * len(kinds) + codes)
    pairs = (divmod(pair, len(kinds)) for pair in distinct.tolist())
    leaves = [paths.place(parent - 1, str(kinds[code]), "kernel") for parent, code in pairs]
    took = (kernels["end_ns"] - kernels["start_ns"]).to_numpy()
    # On GPUs the type of a kernel is the operator that launched it.
    places = np.where(is_same, above, np.asarray(leaves, dtype=np.int64)[number])
    return flame_of("device", paths, places, took)


def flame_of(of: Literal["host", "device", "memory"], paths: Paths, places: Ints, times: Ints) -> Flame | None:
    """The tree of ``paths`` with the times (or bytes) of its places, without those below that have least; ``None``
    where there are none."""
    count = len(paths.parents)
    total = np.zeros(count, dtype=np.int64)
    known = places >= 0
    np.add.at(total, places[known], times[known])
    own = total.copy()
    parents = np.asarray(paths.parents, dtype=np.int64)
    for place in range(count - 1, -1, -1):  # distinct stacks, callers first
        if parents[place] >= 0:
            total[parents[place]] += total[place]
    order = np.argsort(-total, kind="stable")  # a caller has no less than what it calls, and stands before it
    kept = np.sort(order[: MOST + 1][total[order[: MOST + 1]] > 0][:MOST])
    if not len(kept):
        return None
    number = np.full(count, -1, dtype=np.int64)
    number[kept] = np.arange(len(kept))
    frames: dict[tuple[str, FrameKind], int] = {}
    nodes = []
    for place in kept.tolist():
        name = frames.setdefault(paths.frames[place], len(frames))
        parent = int(number[parents[place]]) if parents[place] >= 0 else -1
        nodes.append((parent, name, int(total[place])))
    left = np.zeros(len(kept), dtype=np.int64)
    shown = number >= 0
    below = shown & (parents >= 0)
    np.add.at(left, number[parents[below]], total[below])
    left = total[kept] - own[kept] - left
    for place in np.flatnonzero(left > 0).tolist():
        nodes.append((place, frames.setdefault(("", "left_out"), len(frames)), int(left[place])))
    return Flame(of=of, frames=list(frames), nodes=nodes)


def _view(flame: Flame, rank: int, count: int) -> FlameView:
    of: Literal["host", "device"] = "host" if flame.of == "host" else "device"
    return FlameView(
        id=f"{of}-stacks-rank{rank}",
        title=message(_TITLES[of], rank=rank, count=count),
        unit="ns",
        rank=rank,
        data=flame,
    )


DRAWINGS: tuple[Drawing, ...] = (flames,)
