"""All recorded steps of a rank: windows that tile its profiled device time, or the launches of a recording that is no
loop."""

from __future__ import annotations

import numpy as np
import pandas as pd

from advisor_core.contracts.columns import Column
from advisor_core.contracts.facts import Facts, fact
from advisor_core.contracts.missing import Unavailable
from advisor_core.facts.device.work import work
from advisor_core.facts.steps.backlog import backlog
from advisor_core.facts.steps.kernel_list import KernelList, kernel_list
from advisor_core.facts.steps.marks import step_marks
from advisor_core.facts.steps.start_up import start_up
from advisor_core.text.messages import message

COLUMNS = (
    Column("step", "int", "", "step id, -1 for the anonymous step of a profile without steps"),
    Column("start_ns", "int", "ns", "first device task"),
    Column("end_ns", "int", "ns", "first device task of the next step, of the last step the end of its last task"),
)


@fact("recorded_steps", needs=(work,), wants=(start_up, backlog, kernel_list, step_marks), columns=COLUMNS)
def recorded_steps(facts: Facts) -> pd.DataFrame:
    """One row per step, in order of time.

    A step lasts from its first device task to the first device task of the next step, the last one to its last task.
    So the gap between two steps belongs to the earlier one: it ends when the host gets the next step going, and the
    exporter books it there too (Free of step N, torch_npu `_trace_step_time_parser.py`). For a single step this is
    first to last device task, the exporter's Stage + Bubble. Tasks that carry no step although others do (warm-up)
    open no window.

    Tasks that carry no step at all (those of a trace) have the steps of the framework's marks, as far as there are any.
    A wait for the start of other ranks, or for work that was handed over before, with which a recording can begin, is
    no part of the first step. Of a recording that is no loop the launches are the steps, without a cold start, and the
    time between them is in none.
    """
    if kernel_list in facts:
        return _of_launches(facts[kernel_list])
    device = facts[work]
    stepped = device[device["step"] >= 0] if (device["step"] >= 0).any() else device
    if stepped.empty:
        raise Unavailable(message("work.none"), message("work.none.collect"), ("device",))
    if step_marks in facts:
        spans = facts[step_marks]
    else:
        by_step = stepped.groupby("step", sort=True)
        spans = pd.DataFrame({"start_ns": by_step["start_ns"].min(), "last_ns": by_step["end_ns"].max()})
        spans = spans.sort_values("start_ns").reset_index()
    starts = spans["start_ns"].to_numpy()
    last = int(spans["last_ns"].max())
    windows = pd.DataFrame({"step": spans["step"], "start_ns": starts, "end_ns": np.append(starts[1:], last)})
    if start_up in facts:
        _begin_later(windows, facts[start_up].start_ns, facts[start_up].end_ns)
    if backlog in facts:
        _begin_later(windows, facts[backlog].began_ns, facts[backlog].start_ns)
    return windows


def _begin_later(windows: pd.DataFrame, wait_ns: int, end_ns: int) -> None:
    """Steps that begin before the wait does begin at its end instead."""
    begun = windows["start_ns"] <= wait_ns
    windows.loc[begun, "start_ns"] = windows.loc[begun, "start_ns"].clip(lower=end_ns)


def _of_launches(launches: KernelList) -> pd.DataFrame:
    """The launches, without a cold start."""
    numbers = np.arange(len(launches.starts))
    frame = pd.DataFrame({"step": numbers, "start_ns": launches.starts, "end_ns": launches.ends})
    steady: pd.DataFrame = frame[launches.cold :].reset_index(drop=True)
    return steady
