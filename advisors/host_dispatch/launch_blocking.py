"""HD006, GHD005: launches that each wait for their task to finish."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from advisor_core.api import Vocabulary
from advisor_core.api.advisors import Column, Metric, Observations, Params, Reference, advisor
from advisor_core.api.facts import (
    HOST_EVENTS,
    PROFILE,
    Facts,
    HostChange,
    Layer,
    host_activity,
    launches,
    ledger,
    matching,
    replay,
    steps,
    work,
)
from advisors.columns import STEP_NS
from advisors.host_dispatch.host_events import recorded_variable
from advisors.host_dispatch.late_time import LATE
from advisors.host_dispatch.savings import layer_of, runtime_calls
from advisors.host_dispatch.waiting_launches import waiting_launches
from advisors.measuring import host_rows, leaves, row, step_count, step_ns, under
from advisors.messages import message


@advisor(
    "host_dispatch.launch_blocking",
    needs=(PROFILE, steps, ledger),
    wants=(HOST_EVENTS, host_activity, launches, replay, work),
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
            "waiting_share",
            "float",
            "ratio",
            "launches that return only when what they launched has ended, of those that a task is linked to",
            zh="等待占比",
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
        Column(
            "launches_waiting",
            "int",
            "count",
            "launches that return only when what they launched has ended",
            zh="等待完成",
        ),
    ),
)
def launch_blocking(facts: Facts, params: Params) -> Observations:
    """Whether every launch waits for its task to finish."""
    profile = facts[PROFILE]
    value = profile.variables.get("ASCEND_LAUNCH_BLOCKING")
    launches, followed, example = _synchronised(facts.get(HOST_EVENTS), profile.vocabulary)
    waiting = waiting_launches(facts)
    waits = waiting.waits if len(waiting.rows) > followed else None
    lost = under(leaves(facts), *LATE, "idle/sync", "idle/launch_latency")
    change = _unblocked(facts, waits) if followed or waits is not None else None
    frame = row(
        step_ns=step_ns(facts),
        saved_ns=lost if change is None else facts[replay].saved_by(change) / facts[replay].steps,
        recorded="unknown" if value is None else "on" if value.strip() == "1" else "off",
        calls_recorded=launches > 0,
        launches=launches / step_count(facts) if launches else np.nan,
        synchronised_share=followed / launches if launches else np.nan,
        waiting_share=len(waiting.rows) / waiting.linked if waiting.linked else np.nan,
        idle_ns=lost,
    )

    def evidence(number: int) -> Sequence[Reference]:
        counts = [{"launches": launches, "synchronised": followed, "launches_waiting": len(waiting.rows)}]
        found: list[Reference] = [Metric(message("host_dispatch.sync_after_launch"), counts)]
        if value is not None:
            found.append(recorded_variable(profile, "ASCEND_LAUNCH_BLOCKING"))
        if waits is not None:
            return [*found, *host_rows("host_dispatch.waiting_launches", waiting.rows)]
        return [*found, *host_rows("host_dispatch.sync_calls", example)]

    return Observations(frame, evidence, cure=lambda number: change)


def _unblocked(facts: Facts, waits: Layer | None) -> HostChange | None:
    """No launch waits for its task, and a task queue, if there is such a thing, takes the launches. ``waits``: when
    launches waited within the launching call; ``None`` where synchronisations follow them. ``None`` where it cannot be
    replayed."""
    if not facts.knows(host_activity, launches, replay):
        return None
    events, host = facts[HOST_EVENTS], facts[host_activity]
    held = layer_of(events, host.syncs.ids, facts[launches].skew_ns) if waits is None else waits
    return HostChange(held, handed_over=runtime_calls(facts))


def _synchronised(events: pd.DataFrame | None, words: Vocabulary) -> tuple[int, int, np.ndarray]:
    """Launches, how many of them a synchronisation follows as the next of such calls of the thread, and those
    synchronisations (rows). That one follows the replay of a graph tells nothing about single kernels."""
    none = np.zeros(0, dtype=np.int64)
    if events is None:
        return 0, 0, none
    runtime = (events["category"] == "runtime").to_numpy()
    launch = runtime & matching(events["name"], words.launching_calls)
    sync = runtime & matching(events["name"], words.sync_calls)
    rows = np.flatnonzero(launch | sync)
    thread, start = events["thread"].to_numpy()[rows], events["start_ns"].to_numpy()[rows]
    rows = rows[np.lexsort((start, thread))]
    same = events["thread"].to_numpy()[rows][1:] == events["thread"].to_numpy()[rows][:-1]
    single = launch & ~matching(events["name"], words.graph_replay)
    followed = np.flatnonzero(single[rows][:-1] & sync[rows][1:] & same)
    return int(launch.sum()), len(followed), rows[followed + 1] if len(followed) else none
