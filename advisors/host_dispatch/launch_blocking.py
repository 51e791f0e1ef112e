"""HD006: launches that each wait for their task to finish."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pandas as pd

from advisor_core.api.advisors import Column, Metric, Observations, Params, Reference, advisor
from advisor_core.api.facts import (
    HOST_EVENTS,
    PROFILE,
    Facts,
    HostChange,
    host_activity,
    launches,
    ledger,
    matching,
    replay,
    steps,
)
from advisors.columns import STEP_NS
from advisors.host_dispatch.host_events import recorded_variable
from advisors.host_dispatch.late_time import LATE
from advisors.host_dispatch.savings import layer_of, runtime_calls
from advisors.measuring import host_rows, leaves, row, step_count, step_ns, under
from advisors.messages import message


@advisor(
    "host_dispatch.launch_blocking",
    needs=(PROFILE, steps, ledger),
    wants=(HOST_EVENTS, host_activity, launches, replay),
    columns=(
        STEP_NS,
        Column(
            "saved_ns",
            "float",
            "ns",
            "how much shorter a step would be, by replay; idle_ns without a trace",
            zh="节省",
        ),
        Column("recorded", "text", "", "ASCEND_LAUNCH_BLOCKING as recorded: on, off or unknown", zh="记录值"),
        Column("calls_recorded", "bool", "", "launches and synchronisations are in the trace", zh="记录的次数"),
        Column("launches", "float", "count", "launches per step", zh="下发次数"),
        Column(
            "synchronised_share", "float", "ratio", "launches that a synchronisation follows at once", zh="同步占比"
        ),
        Column(
            "idle_ns",
            "float",
            "ns",
            "idle behind late launches, synchronisations and launch latency, per step",
            zh="空闲",
        ),
    ),
    evidence=(
        Column("synchronised", "int", "count", "launches that a synchronisation follows at once", zh="随后同步"),
    ),
)
def launch_blocking(facts: Facts, params: Params) -> Observations:
    """Whether every launch waits for its task to finish."""
    profile = facts[PROFILE]
    value = profile.variables.get("ASCEND_LAUNCH_BLOCKING")
    launches, followed, example = _synchronised(facts.get(HOST_EVENTS))
    lost = under(leaves(facts), *LATE, "idle/sync", "idle/launch_latency")
    frame = row(
        step_ns=step_ns(facts),
        saved_ns=_without_blocking(facts) if followed else lost,
        recorded="unknown" if value is None else "on" if value.strip() == "1" else "off",
        calls_recorded=launches > 0,
        launches=launches / step_count(facts) if launches else np.nan,
        synchronised_share=followed / launches if launches else np.nan,
        idle_ns=lost,
    )

    def evidence(number: int) -> Sequence[Reference]:
        counts = [{"launches": launches, "synchronised": followed}]
        found: list[Reference] = [Metric(message("host_dispatch.sync_after_launch"), counts)]
        if value is not None:
            found.append(recorded_variable(profile, "ASCEND_LAUNCH_BLOCKING"))
        return [*found, *host_rows("host_dispatch.sync_calls", example)]

    return Observations(frame, evidence)


def _without_blocking(facts: Facts) -> float:
    """What is saved per step where no launch waits for its task, and a task queue takes the launches."""
    if not facts.knows(host_activity, launches, replay):
        return under(leaves(facts), *LATE, "idle/sync", "idle/launch_latency")
    events, host = facts[HOST_EVENTS], facts[host_activity]
    replayed = facts[replay]
    change = HostChange(layer_of(events, host.syncs.ids, facts[launches].skew_ns), handed_over=runtime_calls(facts))
    return replayed.saved_by(change) / replayed.steps


def _synchronised(events: pd.DataFrame | None) -> tuple[int, int, np.ndarray]:
    """Launches, how many of them a synchronisation follows as the next of such calls of the thread, and some of those
    synchronisations (rows)."""
    none = np.zeros(0, dtype=np.int64)
    if events is None:
        return 0, 0, none
    runtime = (events["category"] == "runtime").to_numpy()
    launch = runtime & matching(events["name"], _LAUNCH)
    sync = runtime & matching(events["name"], _SYNC_STREAM)
    rows = np.flatnonzero(launch | sync)
    thread, start = events["thread"].to_numpy()[rows], events["start_ns"].to_numpy()[rows]
    rows = rows[np.lexsort((start, thread))]
    same = events["thread"].to_numpy()[rows][1:] == events["thread"].to_numpy()[rows][:-1]
    followed = np.flatnonzero(launch[rows][:-1] & sync[rows][1:] & same)
    return int(launch.sum()), len(followed), rows[followed + 1] if len(followed) else none


_LAUNCH = re.compile(r"^Node@launch$", re.I)
_SYNC_STREAM = re.compile(r"aclrtSynchronizeStream", re.I)
