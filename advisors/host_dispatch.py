"""Host dispatch: where the device is idle because the host was late, and what the host was doing instead.

Everything is decided gap by gap (`late_gaps`, `bookings`): a rank whose launches lead its kernels by half a
millisecond at the median can still lose most of its idle time to a few dozen late launches.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from advisor_core.api import Scalar, Vocabulary
from advisor_core.api.advisors import (
    Advisor,
    Column,
    Interval,
    Metric,
    Observations,
    Params,
    Reference,
    Rows,
    Setting,
    advisor,
)
from advisor_core.api.facts import (
    DEVICE_TASKS,
    HOST_EVENTS,
    KERNELS,
    MEMORY_RECORD,
    NO_TIME,
    OPERATORS,
    PAUSE_NS,
    PROFILE,
    STEP_TRACE,
    TIMES_USUAL,
    Facts,
    HostActivity,
    Layer,
    NotApplicable,
    Profile,
    Unavailable,
    bookings,
    host_activity,
    host_pauses,
    kernel_list,
    late_gaps,
    launches,
    ledger,
    matching,
    paused,
    rank_summary,
    steps,
    sync_calls,
    union,
    work,
)
from advisors.measuring import (
    HOST_LANE,
    LARGEST,
    by_gap,
    call_site,
    gap_intervals,
    host_rows,
    leaves,
    next_kernels,
    pieces_of,
    records,
    row,
    share,
    stack_of,
    step_count,
    step_ns,
    under,
)
from advisors.messages import message
from advisors.without_waiting import Change, Replay, replay

LATE_ACTIVITIES = ("python", "framework", "runtime")
LATE = tuple(f"idle/host/{activity}" for activity in LATE_ACTIVITIES)
"""Leaves in which the host was simply too slow; compiling, loading data, collecting garbage and allocating have
leaves and rules of their own."""

_STEP_NS = Column("step_ns", "float", "ns", "mean wall time of a step")
_SAVED = (
    Column("saved_ns", "float", "ns", "how much shorter a step of a long run would be without it, by replay"),
    Column("saved_share", "float", "ratio", "saved_ns over the time of a step"),
)


def _saved(replayed: Replay, wall: float, change: Change) -> dict[str, float]:
    """`_SAVED`. A step of a long run can be longer than the mean of the recorded ones: the share is of the longer."""
    saved = replayed.saved_by(change) / replayed.steps
    return {"saved_ns": saved, "saved_share": share(saved, max(wall, replayed.recorded_ns / replayed.steps))}


def _layer(events: pd.DataFrame, rows: np.ndarray, skew_ns: int) -> Layer:
    """The time in these host events, in device time."""
    starts = events["start_ns"].to_numpy()[rows] - skew_ns
    return union(starts, starts + events["duration_ns"].to_numpy()[rows])


def _without(events: pd.DataFrame, rows: np.ndarray, host: HostActivity, skew_ns: int) -> Change:
    """The host without these events, each on the thread that it was on."""
    on_launcher = np.isin(events["thread"].to_numpy()[rows], list(host.launchers))
    return Change(_layer(events, rows[~on_launcher], skew_ns), _layer(events, rows[on_launcher], skew_ns))


# --- HD001: the symptom


@advisor(
    "host_dispatch.idle",
    needs=(ledger, rank_summary),
    wants=(bookings, kernel_list, STEP_TRACE, KERNELS, work),
    columns=(
        _STEP_NS,
        Column("idle_ns", "float", "ns", "the device neither computes nor communicates, per step"),
        Column("idle_share", "float", "ratio", "idle over wall time"),
        Column("host_late_ns", "float", "ns", "of it: the next task was not launched yet; unknown without launches"),
        Column("host_late_share", "float", "ratio", "host_late_ns over idle_ns"),
        Column("gaps", "float", "count", "idle gaps per step; unknown where only the exporter sums up the step"),
        Column("largest_gap_ns", "float", "ns", "longest gap; unknown likewise"),
        Column("slow_host_share", "float", "ratio", "of the idle time: host in Python, operators or runtime calls"),
        Column("sync_share", "float", "ratio", "of the idle time: after synchronising calls"),
        Column("compile_share", "float", "ratio", "of the idle time: online compilation"),
        Column("task_switch_share", "float", "ratio", "of the idle time: launched in time, started late"),
        Column("unknown_share", "float", "ratio", "of the idle time: no cause known"),
    ),
)
def idle(facts: Facts, params: Params) -> Observations:
    """Idle time of the device, by cause."""
    if kernel_list in facts:
        raise NotApplicable(message("capture_start.no_loop"))
    booked, summary = facts.get(bookings), facts[rank_summary]
    per_leaf, wall, steps = leaves(facts), float(summary["wall_ns"].mean()), len(summary)
    total = under(per_leaf, "idle")
    gaps = booked.gaps if booked is not None else pd.DataFrame({"launch_ns": [], "host_late_ns": []})
    lengths = booked.gaps["end_ns"] - booked.gaps["start_ns"] if booked is not None else pd.Series(dtype="int64")
    launched = (gaps["launch_ns"] != NO_TIME).any()
    late = float(gaps["host_late_ns"].sum()) / steps if launched or not total else np.nan
    frame = row(
        step_ns=wall,
        idle_ns=total,
        idle_share=share(total, wall),
        host_late_ns=late,
        host_late_share=share(late, total),
        gaps=len(gaps) / steps if booked is not None else np.nan,
        largest_gap_ns=np.nan if booked is None else float(lengths.max()) if len(gaps) else 0.0,
        slow_host_share=share(under(per_leaf, *LATE), total),
        sync_share=share(under(per_leaf, "idle/sync"), total),
        compile_share=share(under(per_leaf, "idle/host/compile"), total),
        task_switch_share=share(under(per_leaf, "idle/task_switch"), total),
        unknown_share=share(under(per_leaf, "idle/unknown", "idle/host/unknown"), total),
    )

    def evidence(number: int) -> Sequence[Reference]:
        causes = per_leaf[per_leaf.index.str.startswith("idle/")].sort_values(ascending=False)
        rows = [{"cause": path, "time": ns, "share": share(ns, total)} for path, ns in causes.items()]
        found: list[Reference] = [
            Metric(message("host_dispatch.idle_by_cause"), rows, {"time": "ns", "share": "ratio"})
        ]
        sizes = lengths.sort_values(ascending=False, kind="stable")
        if booked is not None:
            found += gap_intervals(booked, sizes)
        if booked is not None and work in facts:
            found += next_kernels(facts, gaps.loc[sizes.index[:LARGEST], "next"])
        if STEP_TRACE in facts and len(facts[STEP_TRACE]):
            columns = ("step", "computing_ns", "uncovered_communication_ns", "free_ns", "stage_ns")
            rows_of = np.arange(len(facts[STEP_TRACE]))
            found.append(Rows(message("common.exporter_totals"), STEP_TRACE, rows_of, columns))
        return found

    return Observations(frame, evidence)


# --- HD002: late launches


@advisor(
    "host_dispatch.late_launches",
    needs=(steps, ledger, bookings, late_gaps, HOST_EVENTS, work, replay, PROFILE),
    wants=(KERNELS, MEMORY_RECORD, host_activity, launches, host_pauses),
    columns=(
        _STEP_NS,
        Column("saved_ns", "float", "ns", "late_ns, or what a host without these delays saves in a long run, if less"),
        Column("saved_share", "float", "ratio", "saved_ns over the time of a step"),
        Column("late_ns", "float", "ns", "idle while the launch was late: in Python, operators or runtime, per step"),
        Column("late_share", "float", "ratio", "late_ns over wall time"),
        Column("python_ns", "float", "ns", "of it: in Python between two operators"),
        Column("framework_ns", "float", "ns", "of it: in operators of the framework (dispatch)"),
        Column("runtime_ns", "float", "ns", "of it: in CANN calls (launch, tiling, workspace)"),
        Column("gaps", "float", "count", "gaps with a late launch, per step"),
        Column("longest_ns", "float", "ns", "longest of these gaps"),
        Column("operator", "text", "", "operator with most late time, the one that the model's code called"),
        Column("operator_ns", "float", "ns", "late time of that operator, per step"),
        Column("task_queue", "text", "", "off, on, workspace (level 2) or unknown, as far as the trace shows it"),
        Column("queue_saved_ns", "float", "ns", "how much shorter a step would be with a task queue, where it is off"),
    ),
)
def late_launches(facts: Facts, params: Params) -> Observations:
    """Idle time before tasks that the host launched too late, by operator."""
    booked = facts[bookings]
    events, steps, wall = facts[HOST_EVENTS], step_count(facts), step_ns(facts)
    pieces = _late_pieces(facts)
    per_leaf = pieces.groupby("path", observed=True)["ns"].sum() / steps
    late = under(per_leaf, *LATE)
    sums = by_gap(pieces)
    calls = facts[late_gaps].set_index("gap")
    calls = calls.assign(ns=sums.reindex(calls.index, fill_value=0))
    calls = calls[calls["ns"] > 0]
    calls["operator"] = _names(events, calls["outer_row"])
    operators = (
        calls.groupby("operator")["ns"].agg(["count", "sum", "max"]).sort_values("sum", ascending=False, kind="stable")
    )
    task_queue = _task_queue(events, facts.get(MEMORY_RECORD))
    replayed, host = facts[replay], facts.get(host_activity)
    slow = _labelled(host, *LATE_ACTIVITIES)
    without = _saved(replayed, wall, Change(slow, slow))
    queue = Change(handed_over=_cann_calls(facts)) if task_queue == "off" and host is not None else Change()
    frame = row(
        step_ns=wall,
        saved_ns=min(late, without["saved_ns"]),
        saved_share=min(share(late, wall), without["saved_share"]),
        late_ns=late,
        late_share=share(late, wall),
        python_ns=under(per_leaf, "idle/host/python"),
        framework_ns=under(per_leaf, "idle/host/framework"),
        runtime_ns=under(per_leaf, "idle/host/runtime"),
        gaps=len(sums) / steps,
        longest_ns=float(sums.max()) if len(sums) else 0.0,
        operator=operators.index[0] if len(operators) else None,
        operator_ns=float(operators["sum"].iloc[0]) / steps if len(operators) else 0.0,
        task_queue=task_queue,
        queue_saved_ns=replayed.saved_by(queue) / steps,
    )

    def evidence(number: int) -> Sequence[Reference]:
        places: list[dict[str, Scalar]] = [{"leaf": path, "time": under(per_leaf, path)} for path in LATE]
        per_step = operators.assign(gaps=operators["count"] / steps, late=operators["sum"] / steps).reset_index()
        table = records(per_step, operator="operator", gaps="gaps", late="late", longest="max")
        units = {"late": "ns", "longest": "ns", "gaps": "count"}
        worst = calls.sort_values("ns", ascending=False, kind="stable").head(LARGEST)
        return [
            Metric(message("host_dispatch.by_activity"), places, {"time": "ns"}),
            Metric(message("host_dispatch.late_operators"), table, units),
            *host_rows("host_dispatch.late_calls", worst["outer_row"].to_numpy()),
            *next_kernels(facts, worst["next"]),
            *gap_intervals(booked, sums, 1),
            *(stack_of(events, int(worst["outer_row"].iloc[0])) if len(worst) else ()),
        ]

    return Observations(frame, evidence)


def _late_pieces(facts: Facts) -> pd.DataFrame:
    """The pieces of idle time in which the host was too slow, less its rare long pauses (HD014)."""
    pieces = pieces_of(facts[bookings], *LATE)
    if host_pauses in facts:
        pauses = paused(facts[host_pauses])
        pieces["ns"] -= pauses.measure(pieces["end_ns"].to_numpy()) - pauses.measure(pieces["start_ns"].to_numpy())
    return pieces[pieces["ns"] > 0]


def _labelled(host: HostActivity | None, *activities: str) -> Layer:
    """The time in which the host was at one of these activities."""
    if host is None:
        return Change().feeding
    labels = host.labels
    chosen = np.isin(labels.ids, [host.activities.index(activity) for activity in activities])
    return Layer(labels.starts[chosen], labels.ends[chosen], labels.ids[chosen])


def _cann_calls(facts: Facts) -> Layer:
    """Calls into CANN of the threads that feed the device, but for those that wait for it: what a thread of its own
    would do for them with a task queue."""
    events, host = facts[HOST_EVENTS], facts[host_activity]
    rows = (events["category"] == "cann").to_numpy() & np.isin(events["thread"].to_numpy(), list(host.feeders))
    rows &= ~matching(events["name"], facts[PROFILE].vocabulary.sync_calls)
    return _layer(events, np.flatnonzero(rows), facts[launches].skew_ns)


def _names(events: pd.DataFrame, rows: pd.Series) -> np.ndarray:
    """Names of host events; '(unknown)' for row -1."""
    numbers = rows.to_numpy()
    if not len(events):
        return np.full(len(numbers), "(unknown)", dtype=object)
    names = events["name"].iloc[np.maximum(numbers, 0)].astype(str).to_numpy()
    return np.where(numbers >= 0, names, "(unknown)").astype(object)


def _task_queue(events: pd.DataFrame, memory: pd.DataFrame | None) -> str:
    """TASK_QUEUE_ENABLE is not recorded, but 2 allocates workspace from a pool of its own and 0 queues nothing."""
    if memory is not None and (memory["component"] == "WORKSPACE").any():
        return "workspace"
    categories = events["category"]
    if categories.isin(["enqueue", "dequeue"]).any():
        return "on"
    return "off" if (categories == "cpu_op").any() and (categories == "cann").any() else "unknown"


# --- HD003: operators that cost the host more than the device


@advisor(
    "host_dispatch.operators",
    needs=(OPERATORS, steps, ledger, PROFILE),
    wants=(late_gaps, HOST_EVENTS, bookings, host_pauses),
    params=("first_calls",),
    columns=(
        _STEP_NS,
        Column("operators", "int", "count", "operators whose host time exceeds their device time"),
        Column("excess_ns", "float", "ns", "host time less device time of these operators, per step"),
        Column("idle_behind_ns", "float", "ns", "of it, what the device was really idle for: at most, per step"),
        Column("idle_behind_share", "float", "ratio", "idle_behind_ns over wall time"),
        Column("operator", "text", "", "operator with the largest excess"),
        Column("operator_calls", "int", "count", "its calls in the profile"),
        Column("operator_host_ns", "float", "ns", "its host time per call, children included"),
        Column("operator_device_ns", "float", "ns", "its device time per call"),
        Column("left_out", "int", "count", "first calls, and rare long ones, that were left out"),
    ),
)
def operators(facts: Facts, params: Params) -> Observations:
    """Operators whose summed host time exceeds their device time."""
    table, steps, wall = facts[OPERATORS], step_count(facts), step_ns(facts)
    calls = outermost_calls(table, facts[PROFILE].vocabulary)
    if calls.empty:
        raise NotApplicable(message("host_dispatch.no_operators"))
    calls = calls[~calls["waits"]]
    skip = 0 if _warmed_up(facts[PROFILE]) else int(params["first_calls"])
    order = calls.groupby("name", observed=True).cumcount()
    kept = (order >= skip) & ~_rarely_long(calls)
    left_out = int((~kept).sum())
    calls = calls[kept]
    totals = calls.groupby("name").agg(
        calls=("row", "size"), host=("host_total_ns", "sum"), device=("device_total_ns", "sum")
    )
    totals["excess"] = totals["host"] - totals["device"]
    slow = totals[totals["excess"] > 0].sort_values("excess", ascending=False, kind="stable")
    excess = float(slow["excess"].sum()) / steps
    behind = min(excess, _idle_behind(facts, slow.index, steps))
    top = slow.iloc[0] if len(slow) else None
    frame = row(
        step_ns=wall,
        operators=len(slow),
        excess_ns=excess,
        idle_behind_ns=behind,
        idle_behind_share=share(behind, wall),
        operator=slow.index[0] if top is not None else None,
        operator_calls=int(top["calls"]) if top is not None else 0,
        operator_host_ns=float(top["host"] / top["calls"]) if top is not None else np.nan,
        operator_device_ns=float(top["device"] / top["calls"]) if top is not None else np.nan,
        left_out=left_out,
    )

    def evidence(number: int) -> Sequence[Reference]:
        rows = records(slow.reset_index(), operator="name", calls="calls", host="host", device="device")
        title = message("host_dispatch.slow_operators")
        references: list[Reference] = [Metric(title, rows, {"calls": "count", "host": "ns", "device": "ns"})]
        for name in slow.index[:2]:
            own = calls[calls["name"] == name].sort_values("host_total_ns", ascending=False, kind="stable")
            columns = ("name", "input_shapes", "host_self_ns", "host_total_ns", "device_total_ns")
            shown = own["row"].to_numpy()[:LARGEST]
            references.append(Rows(message("host_dispatch.slow_calls", name=name), OPERATORS, shown, columns))
        if len(slow):
            longest = calls[calls["name"] == slow.index[0]].nlargest(1, "host_total_ns")["row"].to_numpy()
            references += stack_of(table, int(longest[0]))
        return references

    return Observations(frame, evidence)


def outermost_calls(table: pd.DataFrame, words: Vocabulary) -> pd.DataFrame:
    """The operator calls that the model's code made, without those made inside them.

    operator_details.csv lists calls by start, so that a call is followed by its children, and a call's total is the
    sum of the self times of itself and what is below it: where it ends follows from running sums. Annotations
    (``Optimizer.step#SGD.step``) are looked through. Columns: ``row``, ``name``, ``host_total_ns``,
    ``device_total_ns``, ``waits`` (it, or a call inside it, waits for the device: its host time is waiting).

    Raises `Unavailable` where the totals do not add up, as when the calls of several threads are interleaved.
    """
    running = np.concatenate([[0], np.cumsum(table["host_self_ns"].to_numpy())])
    total = table["host_total_ns"].to_numpy()
    ends = np.searchsorted(running, running[:-1] + total - _ROUNDING_NS)
    ends = np.clip(ends, np.arange(1, len(table) + 1), len(table))
    operator = ~matching(table["name"], words.annotation)
    reach = np.maximum.accumulate(np.where(operator, ends, 0))
    outer = operator & (np.arange(len(table)) >= np.concatenate([[0], reach[:-1]]))
    off = np.abs(running[ends] - running[:-1] - total)[outer].sum()
    if off > _NESTING_TOLERANCE * max(1, total[outer].sum()):
        raise Unavailable(message("host_dispatch.interleaved"))
    waits = matching(table["name"], _WAITING) | matching(table["name"], words.sync_operators)
    waiting = np.concatenate([[0], np.cumsum(waits)])
    rows = np.flatnonzero(outer)
    return pd.DataFrame(
        {
            "row": rows,
            "name": table["name"].iloc[rows].astype(str).to_numpy(),
            "host_total_ns": total[rows],
            "device_total_ns": table["device_total_ns"].to_numpy()[rows],
            "waits": waiting[ends[rows]] > waiting[rows],
        }
    )


_ROUNDING_NS = 100
_NESTING_TOLERANCE = 0.01
_WAITING = re.compile(r"acl_memcpy|synchronize|wait_event", re.I)
"""Calls in which the host waits for the device or for a copy: their host time is a symptom, not a cost."""


def _warmed_up(profile: Profile) -> bool:
    """Whether steps ran before the profiled ones, so that no call in the profile is the first of the process."""
    earlier = [profile.profiler.get(f"schedule.{name}") for name in ("skip_first", "wait", "warmup")]
    return any(isinstance(count, int) and count > 0 for count in earlier)


def _rarely_long(calls: pd.DataFrame) -> pd.Series:
    """The calls in which something else held the host for long (HD014): they say nothing of what the operator costs."""
    usual = calls.groupby("name", observed=True)["host_total_ns"].transform("median")
    return calls["host_total_ns"] >= np.maximum(PAUSE_NS, TIMES_USUAL * usual)


def _idle_behind(facts: Facts, names: pd.Index[str], steps: int) -> float:
    """Idle time in which a launch of one of these operators was late; all late time where that is not known."""
    if not facts.knows(late_gaps, HOST_EVENTS, bookings):
        return under(leaves(facts), *LATE, "idle/unknown")
    sums = by_gap(_late_pieces(facts))
    calls = facts[late_gaps]
    own = calls[np.isin(_names(facts[HOST_EVENTS], calls["outer_row"]), names.to_numpy())]
    return float(sums.reindex(own["gap"], fill_value=0).sum()) / steps


# --- HD004: synchronising calls


@advisor(
    "host_dispatch.sync_calls",
    needs=(steps, sync_calls, HOST_EVENTS, ledger, launches, host_activity, replay, PROFILE),
    about=(
        Column("operator", "text", "", "operator that synchronises, as the model's code called it"),
        Column("place", "text", "", "frame of the model's code, '' without call stacks"),
    ),
    columns=(
        _STEP_NS,
        Column("idle_ns", "float", "ns", "idle time left behind, per step"),
        Column("idle_share", "float", "ratio", "idle_ns over wall time"),
        Column("calls", "float", "count", "calls per step"),
        Column("held_ns", "float", "ns", "the device was busy meanwhile: costs nothing, per step"),
        Column("longest_ns", "float", "ns", "most idle time behind one call"),
        *_SAVED,
    ),
)
def synchronising(facts: Facts, params: Params) -> Observations:
    """Synchronising calls and the idle time they leave behind, by place in the code."""
    events, steps, wall = facts[HOST_EVENTS], step_count(facts), step_ns(facts)
    calls, recorded = facts[sync_calls], facts[host_activity].steps
    # The last call of the last step ends when the device is done: after its window, within the step of the framework.
    inside = (calls["step"] >= 0) | (calls["idle_ns"] > 0) | (recorded.at(calls["start_ns"].to_numpy()) >= 0)
    calls = calls[inside].reset_index(drop=True)
    source = np.where(calls["outer_row"] >= 0, calls["outer_row"], calls["row"])
    calls["operator"] = _names(events, pd.Series(source))
    calls["place"] = _places(events, source)
    groups = calls.groupby(["operator", "place"], sort=True)
    frame = groups.agg(
        idle_ns=("idle_ns", "sum"), calls=("row", "size"), held_ns=("held_ns", "sum"), longest_ns=("idle_ns", "max")
    ).reset_index()
    for column in ("idle_ns", "calls", "held_ns"):
        frame[column] = frame[column] / steps
    frame["longest_ns"] = frame["longest_ns"].astype(float)
    frame["step_ns"] = wall
    frame["idle_share"] = frame["idle_ns"] / wall
    waits = _whole_waits(events, calls, facts[launches].skew_ns, facts[PROFILE].vocabulary)
    saved = [_saved(facts[replay], wall, _waits_gone(waits.iloc[rows])) for rows in groups.indices.values()]
    for measured in _SAVED:
        frame[measured.name] = np.array([values[measured.name] for values in saved], dtype=float)

    def evidence(number: int) -> Sequence[Reference]:
        subject = frame.iloc[number]
        own = calls[(calls["operator"] == subject["operator"]) & (calls["place"] == subject["place"])]
        own = own.sort_values("idle_ns", ascending=False, kind="stable")
        rows = records(own, LARGEST, start_ns="start_ns", held="held_ns", idle_after="idle_ns")
        title = message("host_dispatch.sync_site")
        first = int(own["outer_row"].iloc[0] if own["outer_row"].iloc[0] >= 0 else own["row"].iloc[0])
        return [
            *host_rows("host_dispatch.sync_calls", own["row"]),
            Metric(title, rows, {"start_ns": "ns", "held": "ns", "idle_after": "ns"}),
            *stack_of(events, first),
        ]

    return Observations(frame, evidence)


def _waits_gone(waits: pd.DataFrame) -> Change:
    return Change(union(waits["start_ns"].to_numpy(), waits["end_ns"].to_numpy()))


def _whole_waits(events: pd.DataFrame, calls: pd.DataFrame, skew_ns: int, words: Vocabulary) -> pd.DataFrame:
    """From when to when each call held the host: with the operator around it where that does nothing but read a value,
    as its copy and its bookkeeping go when it goes."""
    outer = calls["outer_row"].to_numpy()
    reads = (outer >= 0) & matching(events["name"], words.sync_operators)[np.maximum(outer, 0)]
    around = events.iloc[np.maximum(outer, 0)]
    start = around["start_ns"].to_numpy() - skew_ns
    end = start + around["duration_ns"].to_numpy()
    return pd.DataFrame(
        {
            "start_ns": np.where(reads, start, calls["start_ns"].to_numpy()),
            "end_ns": np.where(reads, end, calls["end_ns"].to_numpy()),
        }
    )


def _places(events: pd.DataFrame, rows: np.ndarray) -> np.ndarray:
    stacks = events["call_stack"].astype("category").cat
    sites = np.array([call_site(str(text)) for text in stacks.categories], dtype=object)
    return sites[stacks.codes.to_numpy()[rows]] if len(sites) else np.full(len(rows), "", dtype=object)


# --- HD005, HD007, HD008, HD009, HD012: an activity of the host that kept the device waiting


Chosen = Callable[[pd.DataFrame, Vocabulary], np.ndarray]


def _activity(
    name: str, meaning: str, leaf: str, calls_of: Chosen, absent: Callable[[Facts], None], *, recurs: bool = True
) -> Advisor:
    """An advisor about one leaf of idle time and the host calls behind it. ``recurs``: each step makes these calls, so
    that a long run has them as the recorded steps do; what strikes at random is judged where it struck."""

    def measure(facts: Facts, params: Params) -> Observations:
        events, count, wall = facts[HOST_EVENTS], step_count(facts), step_ns(facts)
        absent(facts)
        windows, skew = facts[steps], facts[launches].skew_ns
        host: HostActivity = facts[host_activity]
        rows = np.flatnonzero(calls_of(events, facts[PROFILE].vocabulary))
        dispatching = np.isin(events["thread"].to_numpy()[rows], list(host.feeders | host.launchers))
        change = _without(events, rows[dispatching] if recurs else rows, host, skew)
        start = events["start_ns"].to_numpy()[rows] - skew
        length = events["duration_ns"].to_numpy()[rows]
        begin, end = int(windows["start_ns"].min()), int(windows["end_ns"].max())
        inside = (start < end) & (start + length > begin)
        inside &= _not_nested(events["thread"].to_numpy()[rows], start, length)
        rows, length = rows[inside], length[inside]
        booked = facts[bookings]
        sums = by_gap(pieces_of(booked, leaf))
        lost = under(leaves(facts), leaf)
        replayed = facts[replay] if recurs else Replay.of(facts, long_run=False)
        frame = row(
            step_ns=wall,
            **_saved(replayed, wall, change),
            idle_ns=lost,
            idle_share=share(lost, wall),
            calls=len(rows) / count,
            total_ns=float(length.sum()) / count,
            longest_ns=float(length.max()) if len(length) else 0.0,
            gaps=len(sums) / count,
        )

        def evidence(number: int) -> Sequence[Reference]:
            order = np.argsort(-length, kind="stable")
            found = host_rows("host_dispatch.activity_calls", rows[order])
            names = events["name"].iloc[rows].astype(str).to_numpy()
            table = pd.DataFrame({"name": names, "ns": length}).groupby("name")["ns"].agg(["size", "sum", "max"])
            table = table.sort_values("sum", ascending=False, kind="stable").head(10)
            metric = records(table.reset_index(), call="name", count="size", total="sum", longest="max")
            if metric:
                units = {"count": "count", "total": "ns", "longest": "ns"}
                found.append(Metric(message("host_dispatch.activity"), metric, units))
            found += gap_intervals(booked, sums)
            stacked = rows[order][(events["call_stack"].iloc[rows[order]] != "").to_numpy()]
            return [*found, *stack_of(events, int(stacked[0]) if len(stacked) else -1)]

        return Observations(frame, evidence)

    measure.__doc__ = meaning
    declare = advisor(
        name,
        needs=(steps, ledger, bookings, HOST_EVENTS, launches, host_activity, PROFILE, work, replay),
        columns=(
            _STEP_NS,
            *_SAVED,
            Column("idle_ns", "float", "ns", "idle time of the device meanwhile, per step"),
            Column("idle_share", "float", "ratio", "idle_ns over wall time"),
            Column("calls", "float", "count", "calls per step, those inside another one left out"),
            Column("total_ns", "float", "ns", "time in these calls per step, whatever the device did meanwhile"),
            Column("longest_ns", "float", "ns", "longest call"),
            Column("gaps", "float", "count", "idle gaps per step with such a call in them"),
        ),
    )
    return declare(measure)


def _not_nested(thread: np.ndarray, start: np.ndarray, length: np.ndarray) -> np.ndarray:
    """Which calls do not lie within another one of the same thread."""
    order = np.lexsort((-length, start, thread))
    calls = pd.DataFrame({"thread": thread[order], "end": (start + length)[order]})
    reach = calls.groupby("thread")["end"].cummax().groupby(calls["thread"]).shift(fill_value=np.iinfo(np.int64).min)
    found = np.zeros(len(start), dtype=bool)
    found[order] = start[order] >= reach.to_numpy()
    return found


def _cann(what: str) -> Chosen:
    return lambda events, words: (events["category"] == "cann").to_numpy() & matching(events["name"], words.calls[what])


def _require_cann(facts: Facts) -> None:
    if not (facts[HOST_EVENTS]["category"] == "cann").any():
        raise Unavailable(
            message("host_dispatch.no_cann"), message("host_dispatch.no_cann.collect"), ("host", "level1")
        )


def _require_loader(facts: Facts) -> None:
    if not matching(facts[HOST_EVENTS]["name"], facts[PROFILE].vocabulary.data_loader).any():
        raise NotApplicable(message("host_dispatch.no_dataloader"))


def _require_gc(facts: Facts) -> None:
    recorded = facts[PROFILE].profiler.get("gc_detect_threshold")
    if recorded is None and not (facts[HOST_EVENTS]["category"] == "gc").any():
        raise Unavailable(message("host_dispatch.no_gc"), message("host_dispatch.no_gc.collect"), ("gc",))


compilation = _activity(
    "host_dispatch.compile",
    "Online compilation of operators while the device waited.",
    "idle/host/compile",
    _cann("compile"),
    _require_cann,
)
data_loading = _activity(
    "host_dispatch.dataloader",
    "Waiting for the data loader while the device waited.",
    "idle/host/dataloader",
    lambda events, words: matching(events["name"], words.data_loader),
    _require_loader,
)
garbage = _activity(
    "host_dispatch.gc",
    "Garbage collection of Python while the device waited.",
    "idle/host/gc",
    lambda events, words: (events["category"] == "gc").to_numpy(),
    _require_gc,
    recurs=False,
)
allocation = _activity(
    "host_dispatch.allocator",
    "Allocating and freeing device memory while the device waited.",
    "idle/host/memory",
    _cann("memory"),
    _require_cann,
)


# --- HD014: rare long pauses


@advisor(
    "host_dispatch.pauses",
    needs=(steps, work, launches, bookings, HOST_EVENTS, host_activity, host_pauses, PROFILE),
    columns=(
        _STEP_NS,
        *_SAVED,
        Column("pauses", "int", "count", "rare long pauses in the profiled steps"),
        Column("total_ns", "float", "ns", "time in these pauses, per step"),
        Column("longest_ns", "float", "ns", "longest pause"),
        Column("usual_ns", "float", "ns", "what the passage of the longest pause takes as a rule"),
        Column("gc_recorded", "bool", "", "collections of Python's garbage are in the profile"),
    ),
)
def pauses(facts: Facts, params: Params) -> Observations:
    """Rare long pauses of the host in which nothing is recorded."""
    windows, count, wall = facts[steps], step_count(facts), step_ns(facts)
    found = facts[host_pauses]
    inside = (found["start_ns"] < windows["end_ns"].max()) & (found["end_ns"] > windows["start_ns"].min())
    found = found[inside].assign(ns=found["end_ns"] - found["start_ns"])
    longest = found.sort_values("ns", ascending=False, kind="stable")
    recorded = facts[PROFILE].profiler.get("gc_detect_threshold") is not None
    frame = row(
        step_ns=wall,
        **_saved(Replay.of(facts, long_run=False), wall, Change(paused(found))),
        pauses=len(found),
        total_ns=float(found["ns"].sum()) / count,
        longest_ns=float(found["ns"].max()) if len(found) else 0.0,
        usual_ns=float(longest["usual_ns"].iloc[0]) if len(found) else np.nan,
        gc_recorded=recorded or bool((facts[HOST_EVENTS]["category"] == "gc").any()),
    )

    def evidence(number: int) -> Sequence[Reference]:
        table = records(longest, pause="ns", usual="usual_ns", occurrences="occurrences")
        units = {"pause": "ns", "usual": "ns", "occurrences": "count"}
        shown = longest.head(LARGEST)
        intervals = [
            Interval(message("host_dispatch.pause"), int(start), int(end), HOST_LANE)
            for start, end in zip(shown["start_ns"], shown["end_ns"], strict=True)
        ]
        return [
            Metric(message("host_dispatch.pauses"), table, units),
            *host_rows("host_dispatch.before_pauses", shown["before"]),
            *host_rows("host_dispatch.after_pauses", shown["after"]),
            *intervals,
        ]

    return Observations(frame, evidence)


# --- HD006: launch blocking


@advisor(
    "host_dispatch.launch_blocking",
    needs=(PROFILE, steps, ledger),
    wants=(HOST_EVENTS, host_activity, launches, replay),
    columns=(
        _STEP_NS,
        Column(
            "saved_ns",
            "float",
            "ns",
            "how much shorter a step would be, by replay; idle_ns without a trace",
        ),
        Column("recorded", "text", "", "ASCEND_LAUNCH_BLOCKING as recorded: on, off or unknown"),
        Column("calls_recorded", "bool", "", "launches and synchronisations are in the trace"),
        Column("launches", "float", "count", "launches per step"),
        Column("synchronised_share", "float", "ratio", "launches that a synchronisation follows at once"),
        Column("idle_ns", "float", "ns", "idle behind late launches, synchronisations and launch latency, per step"),
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
        units = {"launches": "count", "synchronised": "count"}
        found: list[Reference] = [Metric(message("host_dispatch.sync_after_launch"), counts, units)]
        if value is not None:
            found.append(_variable(profile, "ASCEND_LAUNCH_BLOCKING"))
        return [*found, *host_rows("host_dispatch.sync_calls", example)]

    return Observations(frame, evidence)


def _without_blocking(facts: Facts) -> float:
    """What is saved per step where no launch waits for its task, and a task queue takes the launches."""
    if not facts.knows(host_activity, launches, replay):
        return under(leaves(facts), *LATE, "idle/sync", "idle/launch_latency")
    events, host = facts[HOST_EVENTS], facts[host_activity]
    replayed = facts[replay]
    change = Change(_layer(events, host.syncs.ids, facts[launches].skew_ns), handed_over=_cann_calls(facts))
    return replayed.saved_by(change) / replayed.steps


def _synchronised(events: pd.DataFrame | None) -> tuple[int, int, np.ndarray]:
    """Launches, how many of them a synchronisation follows as the next of such calls of the thread, and some of those
    synchronisations (rows)."""
    none = np.zeros(0, dtype=np.int64)
    if events is None:
        return 0, 0, none
    cann = (events["category"] == "cann").to_numpy()
    launch = cann & matching(events["name"], _LAUNCH)
    sync = cann & matching(events["name"], _SYNC_STREAM)
    rows = np.flatnonzero(launch | sync)
    thread, start = events["thread"].to_numpy()[rows], events["start_ns"].to_numpy()[rows]
    rows = rows[np.lexsort((start, thread))]
    same = events["thread"].to_numpy()[rows][1:] == events["thread"].to_numpy()[rows][:-1]
    followed = np.flatnonzero(launch[rows][:-1] & sync[rows][1:] & same)
    return int(launch.sum()), len(followed), rows[followed + 1] if len(followed) else none


_LAUNCH = re.compile(r"^Node@launch$", re.I)
_SYNC_STREAM = re.compile(r"aclrtSynchronizeStream", re.I)


def _variable(profile: Profile, name: str) -> Setting:
    file = profile.setting_files.get("variables", "")
    return Setting(message("host_dispatch.setting"), name, profile.variables.get(name), file)


# --- HD010: gaps before tasks that had been launched in time


@advisor(
    "host_dispatch.task_switch",
    needs=(steps, ledger, bookings, work, launches, PROFILE),
    wants=(KERNELS,),
    columns=(
        _STEP_NS,
        Column("idle_ns", "float", "ns", "idle although the next task had been launched before the gap, per step"),
        Column("idle_share", "float", "ratio", "idle_ns over wall time"),
        Column("gaps", "float", "count", "such gaps per step"),
        Column("median_ns", "float", "ns", "median of such a gap"),
        Column("spread_ns", "float", "ns", "distance of their quartiles: small where a fixed cost repeats"),
        Column("median_lead_ns", "float", "ns", "median time from the launch of these tasks to their start"),
        Column("l2_cache", "text", "", "l2_cache option of the profiler: on, off or unknown"),
    ),
)
def task_switch(facts: Facts, params: Params) -> Observations:
    """Gaps that the device needs between two tasks although the host was in time."""
    booked = facts[bookings]
    launched = facts[launches]
    sums = by_gap(pieces_of(booked, "idle/task_switch"))
    gaps = booked.gaps.loc[sums.index]
    leads = launched.frame["lead_ns"].to_numpy()[gaps["next"].to_numpy()]
    lost, wall, steps = under(leaves(facts), "idle/task_switch"), step_ns(facts), step_count(facts)
    option = facts[PROFILE].profiler.get("l2_cache")
    frame = row(
        step_ns=wall,
        idle_ns=lost,
        idle_share=share(lost, wall),
        gaps=len(sums) / steps,
        median_ns=float(sums.median()) if len(sums) else np.nan,
        spread_ns=float(sums.quantile(0.75) - sums.quantile(0.25)) if len(sums) else np.nan,
        median_lead_ns=float(np.median(leads)) if len(leads) else np.nan,
        l2_cache="unknown" if option is None else "on" if option else "off",
    )

    def evidence(number: int) -> Sequence[Reference]:
        rows = [{"gap": int(sums.iloc[place]), "lead": int(leads[place])} for place in range(min(LARGEST, len(sums)))]
        profile = facts[PROFILE]
        found: list[Reference] = [Metric(message("host_dispatch.switch_gaps"), rows, {"gap": "ns", "lead": "ns"})]
        found += next_kernels(facts, gaps["next"])
        found += gap_intervals(booked, sums, 1)
        if option is not None:
            file = profile.setting_files.get("profiler", "")
            found.append(Setting(message("host_dispatch.setting"), "l2_cache", option, file))
        return found

    return Observations(frame, evidence)


# --- HD011: logging


@advisor(
    "host_dispatch.logging",
    needs=(PROFILE,),
    columns=(Column("log_level", "text", "", "ASCEND_GLOBAL_LOG_LEVEL as recorded, '' = unset"),),
)
def logging(facts: Facts, params: Params) -> Observations:
    """The log level of CANN."""
    profile = facts[PROFILE]
    frame = row(log_level=profile.variables.get("ASCEND_GLOBAL_LOG_LEVEL"))
    return Observations(frame, lambda number: [_variable(profile, "ASCEND_GLOBAL_LOG_LEVEL")])


# --- HD012: copies


@advisor(
    "host_dispatch.copies",
    needs=(steps, ledger, bookings, launches, host_activity, HOST_EVENTS, PROFILE),
    wants=(DEVICE_TASKS,),
    columns=(
        _STEP_NS,
        Column("idle_ns", "float", "ns", "idle during copies between host and device, per step"),
        Column("idle_share", "float", "ratio", "idle_ns over wall time"),
        Column(
            "on_host_ns",
            "float",
            "ns",
            "of it: the host was in a blocking copy and launched nothing; not in item and its like",
        ),
        Column("on_device_ns", "float", "ns", "of it: a copy ran on the device and nothing else"),
        Column("calls", "float", "count", "copy calls of the host per step"),
    ),
)
def copies(facts: Facts, params: Params) -> Observations:
    """Copies between host and device that leave the device without other work."""
    booked = facts[bookings]
    events, steps, wall, per_leaf = facts[HOST_EVENTS], step_count(facts), step_ns(facts), leaves(facts)
    host = facts[host_activity]
    on_device = under(per_leaf, "idle/copy")
    active = events["thread"].isin(list(host.feeders | host.launchers)).to_numpy()
    # Copies of operators that read a value back belong to the synchronising calls (HD004).
    reading = np.flatnonzero(matching(events["name"], facts[PROFILE].vocabulary.sync_operators) & active)
    reads = _layer(events, reading, facts[launches].skew_ns)
    pieces = pieces_of(booked, "idle/host/copy", "idle/copy")
    read_back = reads.measure(pieces["end_ns"].to_numpy()) - reads.measure(pieces["start_ns"].to_numpy())
    pieces["ns"] -= np.where(pieces["path"] == "idle/host/copy", read_back, 0)
    pieces = pieces[pieces["ns"] > 0]
    on_host = float(pieces.loc[pieces["path"] == "idle/host/copy", "ns"].sum()) / steps
    sums = by_gap(pieces)
    rows = np.flatnonzero(_cann("copy")(events, facts[PROFILE].vocabulary) & active)
    rows = rows[reads.at(events["start_ns"].to_numpy()[rows] - facts[launches].skew_ns) < 0]
    rows = rows[_in_window(facts, events, rows)]
    frame = row(
        step_ns=wall,
        idle_ns=on_host + on_device,
        idle_share=share(on_host + on_device, wall),
        on_host_ns=on_host,
        on_device_ns=on_device,
        calls=len(rows) / steps,
    )

    def evidence(number: int) -> Sequence[Reference]:
        longest = rows[np.argsort(-events["duration_ns"].to_numpy()[rows], kind="stable")]
        found = [*host_rows("host_dispatch.activity_calls", longest), *gap_intervals(booked, sums)]
        tasks = facts.get(DEVICE_TASKS)
        if tasks is not None and len(sums):
            chosen = booked.gaps.loc[sums.index]
            order = np.argsort(chosen["start_ns"].to_numpy())
            starts, ends = chosen["start_ns"].to_numpy()[order], chosen["end_ns"].to_numpy()[order]
            moved = np.flatnonzero(matching(tasks["task_type"], facts[PROFILE].vocabulary.copy_tasks))
            place = np.searchsorted(ends, tasks["start_ns"].to_numpy()[moved], side="right")
            end = (tasks["start_ns"] + tasks["duration_ns"]).to_numpy()[moved]
            meets = (place < len(starts)) & (end > starts[np.minimum(place, len(starts) - 1)])
            if meets.any():
                columns = ("name", "task_type", "stream", "start_ns", "duration_ns")
                found.append(Rows(message("host_dispatch.copy_tasks"), DEVICE_TASKS, moved[meets], columns))
        return found

    return Observations(frame, evidence)


def _in_window(facts: Facts, events: pd.DataFrame, rows: np.ndarray) -> np.ndarray:
    windows = facts[steps]
    start = events["start_ns"].to_numpy()[rows] - facts[launches].skew_ns
    end = start + events["duration_ns"].to_numpy()[rows]
    return np.asarray((start < windows["end_ns"].max()) & (end > windows["start_ns"].min()))


# --- HD013: between steps


@advisor(
    "host_dispatch.step_boundary",
    needs=(steps, ledger, bookings, work, launches),
    wants=(KERNELS,),
    columns=(
        _STEP_NS,
        Column("idle_ns", "float", "ns", "idle between two recorded steps of the framework, per step"),
        Column("idle_share", "float", "ratio", "idle_ns over wall time"),
        Column("longest_ns", "float", "ns", "longest such gap"),
    ),
)
def step_boundary(facts: Facts, params: Params) -> Observations:
    """Idle time between two steps, outside of what the framework records as a step."""
    if step_count(facts) < 2:
        raise NotApplicable(message("host_dispatch.one_step"))
    booked = facts[bookings]
    sums = by_gap(pieces_of(booked, "idle/step_boundary"))
    lost, wall = under(leaves(facts), "idle/step_boundary"), step_ns(facts)
    frame = row(
        step_ns=wall,
        idle_ns=lost,
        idle_share=share(lost, wall),
        longest_ns=float(sums.max()) if len(sums) else 0.0,
    )

    def evidence(number: int) -> Sequence[Reference]:
        return [*gap_intervals(booked, sums), *next_kernels(facts, booked.gaps.loc[sums.index[:LARGEST], "next"])]

    return Observations(frame, evidence)


ADVISORS = (
    idle,
    late_launches,
    operators,
    synchronising,
    compilation,
    launch_blocking,
    data_loading,
    garbage,
    allocation,
    task_switch,
    logging,
    copies,
    step_boundary,
    pauses,
)
