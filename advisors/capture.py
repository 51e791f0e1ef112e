"""Capture quality of one rank: what the way of profiling hides or distorts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from advisor_core.api import Scalar
from advisor_core.api.advisors import Column, Interval, Metric, Observations, Params, Reference, Rows, Setting, advisor
from advisor_core.api.facts import (
    FLOWS,
    HOST_EVENTS,
    KERNELS,
    PROFILE,
    Facts,
    NotApplicable,
    Profile,
    Unavailable,
    kernel_list,
    launches,
    rank_summary,
    start_up,
    steps,
    union,
    work,
)
from advisors.columns import PROFILED_STEPS
from advisors.measuring import DEVICE_LANE, LARGEST, row, share
from advisors.messages import message

_INFLATING = ("with_stack", "with_modules", "record_shapes", "profile_memory")
_FIRST = ("skip_first", "wait", "warmup")


@advisor(
    "capture.settings",
    needs=(PROFILE,),
    wants=(KERNELS, rank_summary),
    columns=(
        Column("level", "text", "", "level of the profiler, as recorded", zh="级别"),
        Column("kernels", "int", "count", "kernels in kernel_details.csv", zh="kernel 数"),
        Column(
            "untyped_share", "float", "ratio", "of the kernels that compute: recorded without a type", zh="无类型占比"
        ),
        Column(
            "unmeasured_share",
            "float",
            "ratio",
            "of the kernels that compute: recorded without pipe times",
            zh="未测占比",
        ),
        Column("inflating", "int", "count", "options that make the host slower while profiling", zh="拖慢 host"),
        Column("inflating_options", "text", "", "which options these are", zh="拖慢 host 的选项"),
        PROFILED_STEPS,
        Column(
            "warm_up_steps",
            "float",
            "count",
            "steps before the first profiled one, unknown if not recorded",
            zh="预热步数",
        ),
    ),
)
def settings(facts: Facts, params: Params) -> Observations:
    """How the profile was collected."""
    profile = facts[PROFILE]
    kernels = facts.get(KERNELS)
    computing = kernels[kernels["core"] != "COMMUNICATION"] if kernels is not None else None
    known = computing is not None and len(computing) > 0
    untimed = computing["aic_ns"].isna() & computing["aiv_ns"].isna() if computing is not None else None
    options = [name for name in _INFLATING if profile.profiler.get(name) is True]
    frame = row(
        level=profile.level,
        kernels=len(kernels) if kernels is not None else 0,
        untyped_share=float((computing["type"] == "").mean()) if known and computing is not None else np.nan,
        unmeasured_share=float(untimed.mean()) if known and untimed is not None else np.nan,
        inflating=len(options),
        inflating_options=", ".join(options),
        steps=len(facts[rank_summary]) if rank_summary in facts else 0,
        warm_up_steps=_steps_before(profile),
    )

    def evidence(number: int) -> Sequence[Reference]:
        file = profile.setting_files.get("profiler", "")
        recorded = (*options, *(f"schedule.{name}" for name in (*_FIRST, "active")))
        found: list[Reference] = [
            Setting(message("capture.setting"), name, profile.profiler[name], file)
            for name in recorded
            if name in profile.profiler
        ]
        found.insert(0, Setting(message("capture.setting"), "level", profile.level, file))
        if computing is not None and frame["untyped_share"].iloc[0] > 0:
            missing = computing.index[computing["type"] == ""].to_numpy()
            found.append(Rows(message("capture.kernels"), KERNELS, missing, ("name", "type", "core", "duration_ns")))
        return found

    return Observations(frame, evidence)


def _steps_before(profile: Profile) -> float:
    """Steps that ran before the first profiled one by the recorded schedule; NaN if none is recorded."""
    schedule = [profile.profiler.get(f"schedule.{name}") for name in _FIRST]
    before = [count for count in schedule if isinstance(count, int)]
    return float(sum(before)) if before else np.nan


def _schedule(profile: Profile) -> list[Reference]:
    """Evidence: the recorded settings of the profiler's schedule."""
    file = profile.setting_files.get("profiler", "")
    names = [f"schedule.{name}" for name in (*_FIRST, "active")]
    recorded = profile.profiler
    return [Setting(message("capture.setting"), name, recorded[name], file) for name in names if name in recorded]


@advisor(
    "capture.activities",
    needs=(PROFILE,),
    wants=(HOST_EVENTS, work),
    columns=(
        Column(
            "framework_recorded", "bool", "", "calls of the framework were recorded", nullable=True, zh="已记录框架调用"
        ),
        Column(
            "device_recorded", "bool", "", "tasks of the device were recorded", nullable=True, zh="已记录 device 任务"
        ),
        Column("framework_calls", "int", "count", "recorded calls of operators of the framework", zh="框架调用数"),
        Column("device_tasks", "int", "count", "recorded kernels and collectives", zh="device 任务数"),
    ),
)
def activities(facts: Facts, params: Params) -> Observations:
    """Which of host and device was recorded."""
    profile = facts[PROFILE]
    chosen = profile.profiler.get("activities")
    events, device = facts.get(HOST_EVENTS), facts.get(work)
    calls = int((events["category"] == "cpu_op").sum()) if events is not None else 0
    tasks = len(device) if device is not None else 0
    framework, npu = _requested(chosen, "CPU"), _requested(chosen, "NPU")
    if framework is None and events is not None:
        framework = calls > 0
    frame = row(
        framework_recorded=True if calls else framework,
        device_recorded=True if tasks else npu,
        framework_calls=calls,
        device_tasks=tasks,
    )

    def evidence(number: int) -> Sequence[Reference]:
        found: list[Scalar] = [calls, tasks]
        rows = [dict(zip(("framework_calls", "device_tasks"), found, strict=True))]
        units = {"framework_calls": "count", "device_tasks": "count"}
        setting = Setting(message("capture.setting"), "activities", chosen, profile.setting_files.get("profiler", ""))
        return [*([setting] if chosen is not None else []), Metric(message("capture.recorded"), rows, units)]

    return Observations(frame, evidence)


def _requested(activities: Scalar, name: str) -> bool | None:
    """Whether the profiler was told to record an activity; ``None`` if that is not recorded."""
    if not isinstance(activities, str) or not activities:
        return None
    return name in [activity.strip().rpartition(".")[2] for activity in activities.split(",")]


@advisor(
    "capture.steps",
    needs=(steps, work),
    wants=(kernel_list,),
    columns=(
        PROFILED_STEPS,
        Column(
            "first_over_rest",
            "float",
            "ratio",
            "wall time of the first step over the median of the others",
            zh="首个 step 与其余之比",
        ),
        Column(
            "last_task_share",
            "float",
            "ratio",
            "tasks of the last step over those of the step with fewest before it",
            zh="末个 step 任务占比",
        ),
    ),
)
def odd_steps(facts: Facts, params: Params) -> Observations:
    """How the first and the last profiled step compare with the others."""
    if kernel_list in facts:
        raise NotApplicable(message("capture_start.no_loop"))
    windows = facts[steps]
    if len(windows) < _COMPARED:
        raise Unavailable(
            message("capture.few_steps", count=len(windows)), message("capture.few_steps.collect"), ("steps",)
        )
    walls = (windows["end_ns"] - windows["start_ns"]).to_numpy()
    began = facts[work]["start_ns"].to_numpy()
    owner = np.searchsorted(windows["start_ns"].to_numpy(), began, side="right") - 1
    inside = (owner >= 0) & (began < int(windows["end_ns"].iloc[-1]))
    tasks = np.bincount(owner[inside], minlength=len(windows))
    frame = row(
        steps=len(windows),
        first_over_rest=share(float(walls[0]), float(np.median(walls[1:]))),
        last_task_share=share(float(tasks[-1]), float(tasks[:-1].min())),
    )

    def evidence(number: int) -> Sequence[Reference]:
        rows: list[dict[str, Scalar]] = [
            {"step": int(step), "wall": int(wall), "tasks": int(count)}
            for step, wall, count in zip(windows["step"].to_numpy(), walls, tasks, strict=True)
        ]
        return [Metric(message("capture.per_step"), rows[: _LISTED - 1] + rows[_LISTED - 1 :][-1:], {"wall": "ns"})]

    return Observations(frame, evidence)


_COMPARED = 3
"""Two steps cannot tell which of them is the odd one."""
_LISTED = 10


@advisor(
    "capture.shapes",
    needs=(PROFILE, steps, KERNELS),
    columns=(
        Column(
            "varying_share",
            "float",
            "ratio",
            "of the kernels: their type with these shapes is not in every step",
            zh="shape 变化占比",
        ),
        Column(
            "warm_up_steps",
            "float",
            "count",
            "steps before the first profiled one, unknown if not recorded",
            zh="预热步数",
        ),
    ),
)
def shapes(facts: Facts, params: Params) -> Observations:
    """Whether shapes differ from step to step, and how many steps ran before."""
    windows, kernels = facts[steps], facts[KERNELS]
    if len(windows) < 2:
        raise Unavailable(message("capture.one_step"), message("capture.few_steps.collect"), ("steps",))
    computing = kernels[(kernels["core"] != "COMMUNICATION") & kernels["step"].isin(windows["step"])]
    if not (computing["input_shapes"] != "").any():
        raise Unavailable(message("kernels.unshaped"), message("kernels.unshaped.collect"), ("level1",))
    seen_in = computing.groupby([computing[name].cat.codes for name in ("type", "input_shapes")])["step"]
    varying = (seen_in.transform("nunique") < len(windows)).to_numpy()
    frame = row(varying_share=float(varying.mean()), warm_up_steps=_steps_before(facts[PROFILE]))

    def evidence(number: int) -> Sequence[Reference]:
        rows = computing.index.to_numpy()[varying]
        columns = ("step", "type", "input_shapes", "duration_ns")
        return [*_schedule(facts[PROFILE]), Rows(message("capture.varying"), KERNELS, rows, columns)]

    return Observations(frame, evidence)


@advisor(
    "capture.completeness",
    needs=(work, launches, HOST_EVENTS),
    columns=(
        Column("launches", "int", "count", "recorded launches", zh="下发次数"),
        Column("never_run", "int", "count", "of these: no task on the device belongs to them", zh="未见执行"),
        Column("never_run_share", "float", "ratio", "never_run over launches", zh="未见执行占比"),
    ),
    wants=(FLOWS,),
)
def completeness(facts: Facts, params: Params) -> Observations:
    """Whether what was launched was also recorded on the device."""
    events, device, launched = facts[HOST_EVENTS], facts[work], facts[launches]
    calls = events[(events["category"] == "runtime") & events["name"].astype(str).str.startswith(_LAUNCH)]
    flows = facts.get(FLOWS)
    arrows = flows[flows["kind"] == "host_to_device"] if flows is not None else None
    heads, tails = (arrows.loc[arrows["end"] == end, "flow"] if arrows is not None else pd.Series() for end in "sf")
    last = int(device["end_ns"].max())
    late = calls[calls["start_ns"] - launched.skew_ns > last]
    total = max(len(calls), len(heads))
    if not total:
        raise Unavailable(message("capture.no_launches"), message("capture.no_launches.collect"), ("host", "level1"))
    never = max(len(late), int((~heads.isin(tails)).sum()))
    frame = row(launches=total, never_run=never, never_run_share=share(never, total))

    def evidence(number: int) -> Sequence[Reference]:
        ending = Interval(message("capture.last_task"), int(device["start_ns"].iloc[-1]), last, DEVICE_LANE)
        columns = ("name", "item", "thread", "start_ns", "duration_ns")
        rows = late.index.to_numpy()
        return [ending, *([Rows(message("capture.late_launches"), HOST_EVENTS, rows, columns)] if len(rows) else [])]

    return Observations(frame, evidence)


_LAUNCH = "Node@launch"


@advisor(
    "capture.clocks",
    needs=(launches, work),
    columns=(
        Column("skew_ns", "int", "ns", "tasks seem to start this long before their launch at most", zh="差距"),
        Column(
            "early_share",
            "float",
            "ratio",
            "of the tasks with a known launch: seem to start before it",
            zh="早于下发占比",
        ),
        Column("linked", "int", "count", "tasks with a known launch", zh="已关联任务数"),
    ),
)
def clocks(facts: Facts, params: Params) -> Observations:
    """How far the clocks of host and device are apart at least."""
    launched = facts[launches]
    known = launched.known()
    if not known.any():
        raise Unavailable(message("capture.no_launches"), message("capture.no_launches.collect"), ("host", "device"))
    # the launch is in device time already: the skew is taken off every host time
    early = launched.frame.loc[known, "lead_ns"] < launched.skew_ns
    frame = row(skew_ns=launched.skew_ns, early_share=float(early.mean()), linked=int(known.sum()))

    def evidence(number: int) -> Sequence[Reference]:
        first = int(launched.frame.loc[known, "lead_ns"].idxmin())
        start = int(facts[work]["start_ns"].iloc[first])
        return [
            Interval(message("capture.earliest"), start, start + launched.skew_ns, DEVICE_LANE),
            Metric(
                message("capture.clock"),
                [{"skew": launched.skew_ns, "tasks": int(early.sum()), "linked": int(known.sum())}],
                {"skew": "ns", "tasks": "count", "linked": "count"},
            ),
        ]

    return Observations(frame, evidence)


@advisor(
    "capture.damage",
    needs=(PROFILE,),
    columns=(
        Column("errors", "int", "count", "files or tables that could not be read", zh="错误数"),
        Column("warnings", "int", "count", "kinds of rows or values that were left out or repaired", zh="告警数"),
        Column("files", "text", "", "the files", zh="文件"),
    ),
)
def damage(facts: Facts, params: Params) -> Observations:
    """What was wrong with the files of the profile."""
    profile = facts[PROFILE]
    if not profile.files and not profile.diagnostics:
        raise NotApplicable(message("capture.no_files"))
    said = [diagnostic for diagnostic in profile.diagnostics if diagnostic.severity != "info"]
    frame = row(
        errors=sum(diagnostic.severity == "error" for diagnostic in said),
        warnings=sum(diagnostic.severity == "warning" for diagnostic in said),
        files=", ".join(dict.fromkeys(diagnostic.source for diagnostic in said)),
    )

    def evidence(number: int) -> Sequence[Reference]:
        return [
            Metric(diagnostic.message, [{"file": diagnostic.source, "severity": diagnostic.severity}], {})
            for diagnostic in said[:_LISTED]
        ]

    return Observations(frame, evidence)


@advisor(
    "capture.size",
    needs=(PROFILE, steps),
    columns=(
        Column("bytes", "int", "B", "the files that were read", zh="字节数"),
        Column("recorded_ns", "int", "ns", "from the first to the last task of the profiled steps", zh="记录值"),
        PROFILED_STEPS,
    ),
)
def size(facts: Facts, params: Params) -> Observations:
    """How much was recorded."""
    profile, windows = facts[PROFILE], facts[steps]
    recorded = int(windows["end_ns"].max() - windows["start_ns"].min())
    total = sum(file.bytes for file in profile.files)
    frame = row(bytes=total, recorded_ns=recorded, steps=len(windows))

    def evidence(number: int) -> Sequence[Reference]:
        largest = sorted(profile.files, key=lambda file: (-file.bytes, file.name))[:_LISTED]
        files: list[dict[str, Scalar]] = [{"file": file.name, "bytes": file.bytes} for file in largest]
        start, end = int(windows["start_ns"].min()), int(windows["end_ns"].max())
        return [
            Interval(message("capture.span"), start, end, DEVICE_LANE),
            *([Metric(message("capture.files"), files, {"bytes": "B"})] if files else []),
        ]

    return Observations(frame, evidence)


@advisor(
    "capture.outside",
    needs=(PROFILE, steps, work),
    wants=(KERNELS, kernel_list, start_up),
    columns=(
        Column(
            "outside_ns",
            "int",
            "ns",
            "device time with kernels or collectives before the first and after the last",
            zh="step 外",
        ),
        Column("before_ns", "int", "ns", "of this: before the first step", zh="之前"),
        Column("after_ns", "int", "ns", "of this: after the last step", zh="之后"),
        Column(
            "outside_share",
            "float",
            "ratio",
            "outside_ns over all device time with kernels or collectives",
            zh="step 外占比",
        ),
        Column("outside_tasks", "int", "count", "kernels and collectives outside of the steps", zh="step 外任务数"),
    ),
)
def outside(facts: Facts, params: Params) -> Observations:
    """How much the device did before the first and after the last step, where no figure of the report counts it."""
    windows, device = facts[steps], facts[work]
    if kernel_list in facts:
        raise NotApplicable(message("capture_start.no_loop"))
    if not (windows["step"] >= 0).any():
        raise NotApplicable(message("capture.no_steps"))
    if facts[PROFILE].selected_step is not None:
        raise NotApplicable(message("capture.chosen_step"))
    first, last = int(windows["start_ns"].min()), int(windows["end_ns"].max())
    if start_up in facts:  # told by a rule of its own
        first = min(first, facts[start_up].began_ns)
    starts, ends = device["start_ns"].to_numpy(), device["end_ns"].to_numpy()
    before, after = (starts < first), (ends > last)
    parts = {
        "before": union(starts[before], np.minimum(ends[before], first)),
        "after": union(np.maximum(starts[after], last), ends[after]),
    }
    spent = {name: int((layer.ends - layer.starts).sum()) for name, layer in parts.items()}
    all_of_it = union(starts, ends)
    frame = row(
        outside_ns=sum(spent.values()),
        before_ns=spent["before"],
        after_ns=spent["after"],
        outside_share=share(sum(spent.values()), int((all_of_it.ends - all_of_it.starts).sum())),
        outside_tasks=int((before | after).sum()),
    )

    def evidence(number: int) -> Sequence[Reference]:
        found: list[Reference] = [
            Interval(text, int(layer.starts[0]), int(layer.ends[-1]), DEVICE_LANE)
            for text, layer in (
                (message("capture.before"), parts["before"]),
                (message("capture.after"), parts["after"]),
            )
            if len(layer)
        ]
        if KERNELS in facts:
            lengths = np.where(before | after, ends - starts, 0)
            longest = np.argsort(-lengths, kind="stable")[: min(LARGEST, int((before | after).sum()))]
            columns = ("name", "type", "core", "start_ns", "duration_ns")
            rows = device["row"].to_numpy()[longest]
            found.append(Rows(message("capture.longest_outside"), KERNELS, rows, columns))
        return found

    return Observations(frame, evidence)


ADVISORS = (settings, activities, odd_steps, shapes, completeness, clocks, damage, size, outside)
