"""HD002: idle time before tasks that the host launched too late, by operator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from advisor_core.api import Scalar
from advisor_core.api.advisors import Column, Metric, Observations, Params, Reference, advisor
from advisor_core.api.facts import (
    HOST_EVENTS,
    KERNELS,
    MEMORY_RECORD,
    PROFILE,
    Facts,
    HostChange,
    aggregated,
    bookings,
    host_activity,
    host_pauses,
    joined,
    late_gaps,
    launches,
    ledger,
    phases,
    replay,
    steps,
    union,
    work,
)
from advisors.columns import LEAF, LONGEST, STEP_NS, TIME
from advisors.host_dispatch.dispatch_layers import dispatch_layers, part_of
from advisors.host_dispatch.graph_steps import replay_mode
from advisors.host_dispatch.host_events import names_of
from advisors.host_dispatch.late_time import LATE, late_pieces
from advisors.host_dispatch.pace import refilling
from advisors.host_dispatch.savings import saving_by_replay
from advisors.measuring import (
    LARGEST,
    by_gap,
    gap_intervals,
    host_rows,
    next_kernels,
    records,
    row,
    share,
    stack_of,
    step_count,
    step_ns,
    under,
)
from advisors.messages import message
from advisors.task_queue import seen_task_queue


@advisor(
    "host_dispatch.late_launches",
    needs=(steps, ledger, bookings, late_gaps, HOST_EVENTS, work, replay, dispatch_layers, PROFILE),
    wants=(KERNELS, MEMORY_RECORD, host_activity, launches, host_pauses, phases),
    columns=(
        STEP_NS,
        Column(
            "saved_ns",
            "float",
            "ns",
            "late_ns, or what a host without these delays saves in a long run, if less",
            zh="节省",
        ),
        Column("saved_share", "float", "ratio", "saved_ns over the time of a step", zh="节省占比"),
        Column(
            "late_ns",
            "float",
            "ns",
            "idle while the launch was late: in Python, operators or runtime, per step",
            zh="迟到",
        ),
        Column("late_share", "float", "ratio", "late_ns over wall time", zh="迟到占比"),
        Column(
            "awaited_layers",
            "text",
            "",
            "the layers of dispatch (python, framework, runtime) that the step waits for: as few as win half of what "
            "all do when they keep pace with the device",
            zh="等待的层",
        ),
        Column(
            "awaited_ns",
            "float",
            "ns",
            "what a step of a long run saves if these keep pace with the device and the others stay",
            zh="这些层的节省",
        ),
        Column(
            "awaited_left",
            "float",
            "ratio",
            "what these layers may take for that, of the host time that they take now",
            zh="这些层剩余占比",
        ),
        Column("python_ns", "float", "ns", "of it: in Python between two operators", zh="Python"),
        Column("framework_ns", "float", "ns", "of it: in operators of the framework (dispatch)", zh="框架"),
        Column("runtime_ns", "float", "ns", "of it: in CANN calls (launch, tiling, workspace)", zh="runtime"),
        Column("gaps", "float", "count", "gaps with a late launch, per step", zh="空隙数"),
        Column("longest_ns", "float", "ns", "longest of these gaps", zh="最长"),
        Column("operator", "text", "", "operator with most late time, the one that the model's code called", zh="算子"),
        Column("operator_ns", "float", "ns", "late time of that operator, per step", zh="算子"),
        Column(
            "task_queue",
            "text",
            "",
            "off, on, workspace (level 2) or unknown, as far as the trace shows it",
            zh="任务队列",
        ),
        Column(
            "graphs",
            "text",
            "",
            "whole (every step replays a captured graph), some_steps, pieces (parts of steps), none or unknown",
            zh="图重放",
        ),
    ),
    evidence=(
        LEAF,
        TIME,
        Column("late", "float", "ns", "idle behind launches of the operator, per step", zh="迟到"),
        LONGEST,
    ),
)
def late_launches(facts: Facts, params: Params) -> Observations:
    """Idle time before tasks that the host launched too late, by operator. It is judged over the steps as they are,
    whatever parts they have: every saving is one of the replay of whole steps, in which a layer that is quicker wins
    only where the device waits for it, and a per cent of the step is enough for a finding. The parts where it lies
    stand beside it; what a layer may still take is measured there.
    """
    booked = facts[bookings]
    events, steps, wall = facts[HOST_EVENTS], step_count(facts), step_ns(facts)
    pieces = late_pieces(facts)
    per_leaf = aggregated(pieces, "path", ns=("ns", "sum")).set_index("path")["ns"] / steps
    late = under(per_leaf, *LATE)
    sums = by_gap(pieces)
    calls = facts[late_gaps].set_index("gap")
    calls = calls.assign(ns=sums.reindex(calls.index, fill_value=0))
    calls = calls[calls["ns"] > 0]
    calls["operator"] = names_of(events, calls["outer_row"])
    operators = aggregated(calls, "operator", count=("ns", "size"), sum=("ns", "sum"), max=("ns", "max"))
    operators = operators.set_index("operator").sort_values("sum", ascending=False, kind="stable")
    replayed, found = facts[replay], facts[dispatch_layers]
    without = saving_by_replay(replayed, wall, HostChange(found.slow, found.slow))
    frame = row(
        step_ns=wall,
        saved_ns=min(late, without["saved_ns"]),
        saved_share=min(share(late, wall), without["saved_share"]),
        late_ns=late,
        late_share=share(late, wall),
        awaited_layers=", ".join(found.awaited) or None,
        awaited_ns=found.awaited_ns / steps,
        awaited_left=found.left_share,
        python_ns=under(per_leaf, "idle/host/python"),
        framework_ns=under(per_leaf, "idle/host/framework"),
        runtime_ns=under(per_leaf, "idle/host/runtime"),
        gaps=len(sums) / steps,
        longest_ns=float(sums.max()) if len(sums) else 0.0,
        operator=operators.index[0] if len(operators) else None,
        operator_ns=float(operators["sum"].iloc[0]) / steps if len(operators) else 0.0,
        task_queue=seen_task_queue(events, facts.get(MEMORY_RECORD)),
        graphs=replay_mode(facts),
    )

    def evidence(number: int) -> Sequence[Reference]:
        places: list[dict[str, Scalar]] = [{"leaf": path, "time": under(per_leaf, path)} for path in LATE]
        per_step = operators.assign(gaps=operators["count"] / steps, late=operators["sum"] / steps).reset_index()
        table = records(per_step, operator="operator", gaps="gaps", late="late", longest="max")
        worst = calls.sort_values("ns", ascending=False, kind="stable").head(LARGEST)
        return [
            Metric(message("host_dispatch.by_activity"), places),
            Metric(message("host_dispatch.late_operators"), table),
            *host_rows("host_dispatch.late_calls", worst["outer_row"].to_numpy()),
            *next_kernels(facts, worst["next"]),
            *gap_intervals(booked, sums, 1),
            *(stack_of(events, int(worst["outer_row"].iloc[0])) if len(worst) else ()),
        ]

    def cure(number: int) -> HostChange:
        owed = refilling(facts)
        late_or_owed = union(
            np.concatenate([found.late.starts, owed.starts]), np.concatenate([found.late.ends, owed.ends])
        )
        least = joined([part_of(found.whole[name], late_or_owed) for name in found.awaited])
        quicker = joined([found.quicker[name] for name in found.awaited])
        return replace(quicker, least=least, most=HostChange(found.slow, found.slow))

    return Observations(frame, evidence, cure=cure)
