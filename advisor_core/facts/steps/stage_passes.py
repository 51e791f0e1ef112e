"""Forward and backward passes of micro-batches over a stage of a pipeline.

PyTorch runs what autograd recorded on a thread of its own, and its profiler draws an arrow from each operator to the
one that computes its gradient: the threads at which these arrows end run backward passes.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from advisor_core.contracts.columns import Column
from advisor_core.contracts.facts import Facts, fact
from advisor_core.contracts.missing import NotApplicable, Unavailable
from advisor_core.contracts.tables import FLOWS, HOST_EVENTS
from advisor_core.facts.communication.calls import recorded_calls
from advisor_core.facts.communication.state import POINT_TO_POINT
from advisor_core.facts.device.work import work
from advisor_core.facts.host.launches import launches
from advisor_core.facts.intervals import NOTHING, Layer
from advisor_core.facts.steps.steps import steps
from advisor_core.text.messages import message

COLUMNS = (
    Column("step", "int", "", "row of steps"),
    Column("backward", "bool", "", "it computes gradients; else it is a forward pass"),
    Column("number", "int", "", "which pass of its kind in the step, from 1"),
    Column("start_ns", "int", "ns", "start of its first kernel"),
    Column("end_ns", "int", "ns", "end of its last kernel"),
)


@fact("passes", needs=(recorded_calls, work, launches, FLOWS, HOST_EVENTS, steps), columns=COLUMNS)
def passes(facts: Facts) -> pd.DataFrame:
    """One row per pass: kernels one after the other that are of one kind, between two sends or receives. What follows
    the last backward pass of a step, such as the optimizer, is none."""
    calls, device, windows = facts[recorded_calls], facts[work], facts[steps]
    between = calls.loc[calls["operation"].str.contains(POINT_TO_POINT), "start_ns"].to_numpy()
    if not len(between):
        raise NotApplicable(message("passes.no_pipeline"))
    kernels = _kernels(device, windows, facts)
    arrows = facts[FLOWS][facts[FLOWS]["kind"] == "forward_backward"]
    backward = kernels["thread"].isin(arrows.loc[arrows["end"] == "f", "thread"]).to_numpy(dtype=np.bool_)
    if not backward.any() or backward.all():
        raise Unavailable(message("passes.one_thread"), message("passes.one_thread.collect"), ("host",))
    crossed = np.searchsorted(np.sort(between), kernels["start_ns"].to_numpy())
    step = kernels["step"].to_numpy()
    new = (np.diff(step) != 0) | (np.diff(crossed) != 0) | (backward[1:] != backward[:-1])
    kernels["run"] = np.concatenate([[0], np.cumsum(new)])
    runs = kernels.assign(backward=backward).groupby("run").agg(
        step=("step", "first"),
        backward=("backward", "first"),
        thread=("thread", "first"),
        start_ns=("start_ns", "min"),
        end_ns=("end_ns", "max"),
        first_ns=("host_ns", "min"),
        last_ns=("host_end_ns", "max"),
    )  # fmt: skip
    found = runs[runs["backward"] | _recorded(runs, arrows[arrows["end"] == "s"])]
    last = found[found["backward"]].groupby("step")["start_ns"].max()
    found = found[found["start_ns"] <= found["step"].map(last).fillna(-1)]
    numbers = found.groupby(["step", "backward"]).cumcount() + 1
    return found.assign(number=numbers)[[column.name for column in COLUMNS]].reset_index(drop=True)


def _kernels(device: pd.DataFrame, windows: pd.DataFrame, facts: Facts) -> pd.DataFrame:
    """The kernels that compute in the steps and whose operators are known, in order: where they run, their ``thread``
    and the operator's time on the host."""
    starts, events = device["start_ns"].to_numpy(), facts[HOST_EVENTS]
    step = Layer.of(windows).at(starts)
    operator = facts[launches].frame["op_row"].to_numpy()
    own = (step != NOTHING) & (operator >= 0) & ~device["communication"].to_numpy(dtype=np.bool_)
    if not own.any():
        raise Unavailable(message("passes.one_thread"), message("passes.one_thread.collect"), ("host",))
    of = events.iloc[operator[own]]
    begun = of["start_ns"].to_numpy()
    kernels = pd.DataFrame(
        {
            "step": step[own],
            "start_ns": starts[own],
            "end_ns": device["end_ns"].to_numpy()[own],
            "thread": of["thread"].to_numpy(),
            "host_ns": begun,
            "host_end_ns": begun + of["duration_ns"].to_numpy(),
        }
    )
    return kernels.sort_values("start_ns", kind="stable", ignore_index=True)


def _recorded(runs: pd.DataFrame, tails: pd.DataFrame) -> pd.Series:
    """Mask of the runs with operators of which the gradient was computed later: those without are no forward pass, but
    the work of the framework between two of them."""
    found = pd.Series(False, index=runs.index)
    for thread, own in tails.groupby("thread")["time_ns"]:
        times = np.sort(own.to_numpy())
        here = runs[runs["thread"] == thread]
        first, last = (np.searchsorted(times, here[name].to_numpy()) for name in ("first_ns", "last_ns"))
        found[here.index] = last > first
    return found
