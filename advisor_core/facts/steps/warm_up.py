"""A first step that differs from the steady ones by what happens only once: compiling, first calls, a wait for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd

from advisor_core.contracts.facts import Facts, fact
from advisor_core.contracts.missing import NotApplicable
from advisor_core.contracts.profile import PROFILE
from advisor_core.contracts.tables import HOST_EVENTS
from advisor_core.facts.device.work import work
from advisor_core.facts.intervals import Layer, empty, union
from advisor_core.facts.matching import matching
from advisor_core.facts.steps.kernel_list import kernel_list
from advisor_core.facts.steps.recorded_steps import recorded_steps
from advisor_core.text.messages import message

LONGER: Final = 1.3
"""Least ratio of the first step to the median of the others: steps of a steady job differ by a few per cent, a
third more is no variation. Our choice."""

EXPLAINED: Final = 0.5
"""Share of what the first step takes longer that first uses must account for: most of it. Our choice."""

TIMES_USUAL: Final = 10
"""A first call takes this many times the median of the later calls of its name; our choice. The durations of host work
in the real exports at hand spread by a factor of 2 to 3 around their median."""

FIRST_CALL_NS: Final = 1_000_000
"""A first call that takes less beyond its usual time compiles and loads nothing. Our choice."""

_LATER_CALLS: Final = 3
"""Later calls that are needed to know what is usual."""

_STEPS: Final = 3
"""Of two steps it is not known which is the odd one."""

_CALLS: Final = ("cpu_op", "runtime", "dequeue")


@dataclass(frozen=True)
class WarmUp:
    """``step``: id of the first step; ``start_ns`` and ``end_ns`` of it. ``usual_ns``: median of the others. Of what it
    takes longer: ``compile_ns`` with calls that compile, ``first_calls_ns`` with other first calls that take far longer
    than later ones, ``wait_ns`` in collectives that take far longer than the same ones later. ``calls``: rows of
    ``host_events`` of these calls, the longest first. ``of_job``: another rank tells that it warms up, not this one.
    ``waits``: no call of its own tells it, it only waited in a collective for a rank that is taken to warm up."""

    step: int
    start_ns: int
    end_ns: int
    usual_ns: int
    compile_ns: int
    first_calls_ns: int
    wait_ns: int
    calls: np.ndarray
    of_job: bool = False
    waits: bool = False


@fact("warm_up", needs=(work, recorded_steps, PROFILE), wants=(HOST_EVENTS, kernel_list))
def warm_up(facts: Facts) -> WarmUp:
    """The first of several recorded steps, where first uses make it longer than the others.

    That is so where it takes `LONGER` times as long as they do, and most of the difference is compiling, first calls,
    and waiting in collectives, beyond what the other steps have of it. A first step that is longer for another reason,
    such as other work, stays a step like the others, unless the job leaves it out because of another rank. It stays,
    too, where this rank only waited, and no rank that it could have waited for warms up
    (`advisor_core.job.leave_out.kept`): another one may have been late by its ordinary work, such as to load data.
    """
    windows, device = facts[recorded_steps], facts[work]
    profile = facts[PROFILE]
    if kernel_list in facts or profile.selected_step is not None or profile.keeps_first_step:
        raise NotApplicable(message("warm_up.none"))
    of_job = len(windows) > 1 and int(windows["step"].iloc[0]) == profile.left_out_step
    if len(windows) < _STEPS and not of_job:
        raise NotApplicable(message("warm_up.none"))
    starts, ends = windows["start_ns"].to_numpy(), windows["end_ns"].to_numpy()
    walls = ends - starts
    usual = int(np.median(walls[1:]))
    if walls[0] < LONGER * usual and not of_job:
        raise NotApplicable(message("warm_up.none"))
    compiling = calling = empty()
    rows = np.zeros(0, np.int64)
    if HOST_EVENTS in facts:
        events = facts[HOST_EVENTS]
        compiles = np.flatnonzero(matching(events["name"], profile.vocabulary.calls["compile"]))
        began = events["start_ns"].to_numpy()
        done = began + events["duration_ns"].to_numpy()
        compiling = union(began[compiles], done[compiles])
        first, lengths = _first_calls(events, ("name", "category"), events["category"].isin(_CALLS).to_numpy())
        calling = union(done[first] - lengths, done[first])
        rows = np.union1d(compiles, first)
        rows = rows[(began[rows] >= starts[0]) & (began[rows] < ends[0])]
        rows = rows[np.argsort(began[rows] - done[rows], kind="stable")]
    talks = device[device["communication"]].rename(columns={"end_ns": "done_ns"})
    talks = talks.assign(duration_ns=talks["done_ns"] - talks["start_ns"], kind=_kinds(talks["name"]))
    held, waited = _first_calls(talks.reset_index(drop=True), ("kind",), np.ones(len(talks), bool))
    waiting = union(talks["done_ns"].to_numpy()[held] - waited, talks["done_ns"].to_numpy()[held])
    first_use = union(*_both(compiling, calling))
    parts = [_beyond(layer, starts, ends) for layer in (compiling, first_use, union(*_both(first_use, waiting)))]
    most = EXPLAINED * (walls[0] - usual)
    if parts[-1] < most and not of_job:
        raise NotApplicable(message("warm_up.none"))
    return WarmUp(
        step=int(windows["step"].iloc[0]),
        start_ns=int(starts[0]),
        end_ns=int(ends[0]),
        usual_ns=usual,
        compile_ns=parts[0],
        first_calls_ns=max(parts[1] - parts[0], 0),
        wait_ns=max(parts[2] - parts[1], 0),
        calls=rows,
        of_job=of_job,
        waits=not of_job and parts[1] < most,
    )


def _first_calls(calls: pd.DataFrame, key: tuple[str, ...], chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of the chosen rows those that are the first of their kind and take far longer than later ones, and what they take
    beyond that [ns]."""
    rows = np.flatnonzero(chosen)
    ordered = calls.iloc[rows].assign(row=rows).sort_values("start_ns", kind="stable")
    groups = ordered.groupby(list(key), observed=True, sort=False)
    later = ordered[groups.cumcount() > 0].groupby(list(key), observed=True, sort=False)["duration_ns"]
    usual = later.agg(["median", "size"]).reset_index()
    first = groups.head(1).merge(usual, on=list(key))
    beyond = first["duration_ns"] - first["median"]
    far = (
        (first["size"] >= _LATER_CALLS)
        & (first["duration_ns"] >= TIMES_USUAL * first["median"])
        & (beyond >= FIRST_CALL_NS)
    )
    return first.loc[far, "row"].to_numpy().astype(np.int64), beyond[far].to_numpy().astype(np.int64)


def _kinds(names: pd.Series) -> pd.Series:
    """Collectives of one kind: their names without numbers."""
    return names.astype(str).str.replace(r"[_\d]+$", "", regex=True)


def _both(one: Layer, other: Layer) -> tuple[np.ndarray, np.ndarray]:
    return np.concatenate([one.starts, other.starts]), np.concatenate([one.ends, other.ends])


def _beyond(layer: Layer, starts: np.ndarray, ends: np.ndarray) -> int:
    """Time that the layer takes in the first step beyond the median of the other steps, ns."""
    covered = layer.measure(ends) - layer.measure(starts)
    return max(int(covered[0] - np.median(covered[1:])), 0)
