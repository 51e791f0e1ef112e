"""HD022: steps that launch the same kernels one by one, which could be captured as a graph and replayed.

A replay of a graph is one call, and its kernels follow each other with hardly a gap. What cannot be told from a
recording is how attention gets the lengths of a step, which are arguments on the host: by a call for each layer, or not
at all (docs/sources.md#replay-of-a-graph). So the first is expected, the second is the most that is won, and at the
least the graph is in pieces with attention between them.

In a recording of several parts each part that an engine runs is judged by itself: only decode repeats, what prefill
takes does not make it cheaper, and what trains is no matter of a graph of the engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pandas as pd

from advisor_core.api.advisors import Column, Metric, Observations, Params, Reference, advisor
from advisor_core.api.facts import (
    HOST_EVENTS,
    KERNELS,
    PART,
    PROFILE,
    Capturing,
    Facts,
    Groups,
    JudgedPart,
    NotApplicable,
    Unavailable,
    host_activity,
    judged_parts,
    launches,
    replay,
    steps,
    work,
)
from advisors.columns import STEP_NS
from advisors.host_dispatch.graph_steps import MOSTLY, by_step, require_replayed, step_of_tasks
from advisors.host_dispatch.savings import SAVED, saving_by_replay
from advisors.measuring import records, share, step_ns
from advisors.messages import message
from advisors.phases import worth_judging

QUICK_CALL_NS: Final = 30_000
LAYER_NS: Final = 60_000
"""The call that replays a graph takes at least so long, and on Ascend so long for each layer
(docs/sources.md#replay-of-a-graph). A layer is known by its attention."""

GAP_NS: Final = 150
"""Between two tasks of a graph (docs/sources.md#replay-of-a-graph)."""

ATTENTION: Final = "attention"
"""Class of the operators whose arguments change from step to step."""

OF_ENGINE: Final = ("prefill", "decode", "mixed")
"""Parts of a recording that an engine for inference runs."""


@advisor(
    "host_dispatch.capture",
    needs=(steps, work, launches, host_activity, replay, PROFILE),
    wants=(KERNELS, HOST_EVENTS, judged_parts),
    about=(PART,),
    columns=(
        STEP_NS,
        *SAVED,
        Column("steps_alike", "int", "count", "steps that run the same kernels", zh="相同的 step 数"),
        Column("launches", "float", "count", "tasks of such a step that are launched one by one", zh="下发次数"),
        Column("graph_count", "float", "count", "graphs that they would be: synchronising calls part them", zh="图数"),
        Column(
            "attention_tasks", "float", "count", "of them attention, which needs the lengths of the step", zh="注意力"
        ),
    ),
    evidence=(
        Column("type", "text", "", "operator type", zh="类型"),
        Column("tasks", "float", "count", "of a step", zh="任务数"),
    ),
)
def capture(facts: Facts, params: Params) -> Observations:
    """Steps that launch the same kernels one by one, and what it would save to replay them as a graph."""
    found = _found(facts)
    wall = step_ns(facts)
    judged = worth_judging(found, _Repeated.saved_ns, wall)
    if not judged:  # then it is the step that tells how little that is
        best = max(found, key=_Repeated.saved_ns)
        of_step = best.saved if best.part is None else {**best.saved, "saved_share": share(best.saved_ns(), wall)}
        judged = [replace(best, saved=of_step)]

    def evidence(number: int) -> Sequence[Reference]:
        counts = (judged[number].tasks["type"].value_counts() / judged[number].alike).rename_axis("type")
        table = counts.reset_index(name="tasks")
        return [Metric(message("host_dispatch.captured"), records(table, type="type", tasks="tasks"))]

    frame = pd.DataFrame([one.observed(wall) for one in judged])
    return Observations(frame, evidence, cure=lambda number: judged[number].change)


def _found(facts: Facts) -> list[_Repeated]:
    """What repeats in each part that an engine runs, or in all of a recording without parts.

    Raises:
        Unavailable: it is not known which kernels belong to a graph.
        NotApplicable: steps replay a graph already, or no two steps run the same kernels.
    """
    replays = require_replayed(facts)
    if (by_step(facts, replays)["replayed"] >= MOSTLY).any():
        raise NotApplicable(message("host_dispatch.others_replayed"))
    tasks = _launched_in_steps(facts, replays)
    starts = facts[work]["start_ns"].to_numpy()[tasks["task"].to_numpy()]
    engine = [part for part in facts.get(judged_parts) or () if part.part in OF_ENGINE]
    asked: list[tuple[JudgedPart | None, pd.DataFrame, int]]
    asked = [(part, *_in_part(tasks, part.inside.at(starts) >= 0)) for part in engine]
    asked = asked or [(None, *_alike(tasks))]
    found = [one for part, own, alike in asked if (one := _repeated(facts, part, own, alike)) is not None]
    if not found:
        raise NotApplicable(message("host_dispatch.nothing_repeats"))
    return found


@dataclass(frozen=True)
class _Repeated:
    """The ``tasks`` that ``alike`` steps launch one by one in a part of them, ``None`` in all; ``saved``: `SAVED` of
    the ``change`` that makes graphs of them."""

    part: str | None
    tasks: pd.DataFrame
    alike: int
    change: Capturing
    saved: dict[str, float]

    def saved_ns(self) -> float:
        return self.saved["saved_ns"]

    def observed(self, wall: float) -> dict[str, Any]:
        return {
            PART.name: self.part,
            "step_ns": wall,
            **self.saved,
            "steps_alike": self.alike,
            "launches": len(self.tasks) / self.alike,
            "graph_count": self.tasks["graph"].nunique() / self.alike,
            "attention_tasks": float(self.tasks["attention"].sum()) / self.alike,
        }


def _in_part(tasks: pd.DataFrame, inside: np.ndarray) -> tuple[pd.DataFrame, int]:
    """The tasks ``inside`` of a part, of the steps that run the same there, and how many these are; where none do, of
    those that run the same in all: without marks the border of a part can lie a kernel off."""
    own, count = _alike(tasks[inside])
    if count >= 2:
        return own, count
    alike, count = _alike(tasks)
    own = tasks[inside]
    return own[own["step"].isin(alike["step"])], count


def _repeated(facts: Facts, part: JudgedPart | None, tasks: pd.DataFrame, alike: int) -> _Repeated | None:
    """The saving by graphs of ``tasks`` that ``alike`` steps have; ``None`` where no two have them."""
    tasks = _stretches(tasks, facts)
    if alike < 2 or tasks.empty:
        return None
    change = _captured(facts, tasks)
    saved = saving_by_replay(facts[replay], step_ns(facts), change)
    if part is not None:
        saved["saved_share"] = share(saved["saved_ns"], part.wall_ns)
    return _Repeated(None if part is None else part.name, tasks, alike, change, saved)


def captured_engine(facts: Facts) -> Capturing | None:
    """What the engine repeats as graphs, of the part of the recording where this saves most; ``None`` where nothing of
    it could be one, where graphs are replayed already, or where the launches are not known."""
    if not facts.knows(launches, host_activity, replay, judged_parts):
        return None
    try:
        found = [one for one in _found(facts) if one.part is not None]
    except (NotApplicable, Unavailable):
        return None
    return max(found, key=_Repeated.saved_ns).change if found else None


def captured_steps(facts: Facts, own: np.ndarray, chosen: np.ndarray) -> Capturing | None:
    """The steps with these numbers, from 0, as graphs; ``None`` where nothing of them could be one, or the launches are
    not known. ``own``: as of `replayed`."""
    if not facts.knows(launches, host_activity, replay):
        return None
    tasks = _launched_in_steps(facts, own)
    tasks = _stretches(tasks[tasks["step"].isin(chosen)], facts)
    return None if tasks.empty else _captured(facts, tasks)


def _launched_in_steps(facts: Facts, own: np.ndarray) -> pd.DataFrame:
    """Tasks within steps that are launched by themselves, in the order in which the host hands them over: ``task``, its
    row of ``work``, ``step``, its number from 0, ``entered_ns``, ``type`` and ``attention``."""
    device, launched, step = facts[work], facts[launches], step_of_tasks(facts)
    rows = np.flatnonzero((step >= 0) & ~own & launched.known().to_numpy())
    named = device["type"].astype(str)
    found = pd.DataFrame(
        {
            "task": rows,
            "step": step[rows],
            "entered_ns": launched.frame["entered_ns"].to_numpy()[rows],
            "type": named.where(named != "", device["name"].astype(str)).to_numpy()[rows],
            "attention": (device["operator_class"] == ATTENTION).to_numpy()[rows],
        }
    )
    return found.sort_values(["entered_ns", "task"], kind="stable", ignore_index=True)


def _alike(tasks: pd.DataFrame) -> tuple[pd.DataFrame, int]:
    """Those of the steps that run the same tasks as most others do, and how many steps these are."""
    types = pd.Series(pd.factorize(tasks["type"])[0], index=tasks.index)
    contents = types.groupby(tasks["step"]).agg(lambda of_step: np.sort(of_step.to_numpy()).tobytes())
    if contents.empty:
        return tasks, 0
    steps_alike = contents.index[contents == contents.value_counts().index[0]]
    return tasks[tasks["step"].isin(steps_alike)], len(steps_alike)


def _stretches(tasks: pd.DataFrame, facts: Facts) -> pd.DataFrame:
    """Those in stretches long enough to be graphs, with ``graph``, the number of its stretch: a step, up to a call that
    waits for the device."""
    waits = np.searchsorted(facts[host_activity].syncs.starts, tasks["entered_ns"].to_numpy())
    graphs = Groups(pd.DataFrame({"step": tasks["step"].to_numpy(), "waits": waits}), ("step", "waits"), sort=False)
    long = graphs.sizes[graphs.codes] > facts[PROFILE].vocabulary.graph_siblings
    return tasks.assign(graph=graphs.codes)[long]


def _captured(facts: Facts, tasks: pd.DataFrame) -> Capturing:
    """All of them as whole graphs, attention with new arguments in each step."""
    rows, graph, attention = (tasks[name].to_numpy() for name in ("task", "graph", "attention"))
    none, between = np.zeros(len(rows), dtype=np.bool_), ~attention
    pieces = _numbered(graph, np.cumsum(attention))
    layers = LAYER_NS * attention.astype(np.int64)
    pauses = facts[replay].recorded.graph.pause
    usual = int(np.median(pauses[pauses > 0])) if (pauses > 0).any() else GAP_NS
    return Capturing(
        rows,
        graph,
        attention,
        np.maximum(layers, _once(graph, QUICK_CALL_NS)),
        GAP_NS,
        least=Capturing(
            rows[between], pieces[between], none[between], _once(pieces[between], LAYER_NS), max(usual, GAP_NS)
        ),
        most=Capturing(rows, graph, none, _once(graph, QUICK_CALL_NS), GAP_NS),
    )


def _once(graph: np.ndarray, ns: int) -> np.ndarray:
    """So long at the first task of each graph."""
    found = np.zeros(len(graph), dtype=np.int64)
    found[np.unique(graph, return_index=True)[1]] = ns
    return found


def _numbered(graph: np.ndarray, piece: np.ndarray) -> np.ndarray:
    """A number for each piece of each graph."""
    return Groups(pd.DataFrame({"graph": graph, "piece": piece}), ("graph", "piece")).codes
