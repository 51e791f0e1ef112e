"""DQ005: host or device that was not recorded."""

from __future__ import annotations

from collections.abc import Sequence

from advisor_core.api import Scalar
from advisor_core.api.advisors import Column, Metric, Observations, Params, Reference, Setting, advisor
from advisor_core.api.facts import (
    HOST_EVENTS,
    OPERATORS,
    PROFILE,
    Facts,
    Unavailable,
    host_steps,
    work,
)
from advisors.host_times import SHOWN, time_on_host
from advisors.measuring import row
from advisors.messages import message


@advisor(
    "capture.activities",
    needs=(PROFILE,),
    wants=(HOST_EVENTS, work, host_steps, OPERATORS),
    evidence=SHOWN,
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
    """The recorded activities, of host and device."""
    profile = facts[PROFILE]
    chosen = profile.profiler.get("activities")
    events, device = facts.get(HOST_EVENTS), facts.get(work)
    calls = int((events["category"] == "cpu_op").sum()) if events is not None else 0
    tasks = len(device) if device is not None else 0
    framework, npu = _requested(chosen, "CPU"), _requested(chosen, "NPU")
    if framework is None and events is not None:
        framework = calls > 0
    if npu is None and calls:
        npu = tasks > 0
    if chosen is None and not calls and not tasks:
        raise Unavailable(message("capture.neither"), message("capture.neither.collect"), ("host", "device"))
    frame = row(
        framework_recorded=True if calls else framework,
        device_recorded=True if tasks else npu,
        framework_calls=calls,
        device_tasks=tasks,
    )

    def evidence(number: int) -> Sequence[Reference]:
        found: list[Scalar] = [calls, tasks]
        rows = [dict(zip(("framework_calls", "device_tasks"), found, strict=True))]
        setting = Setting(message("capture.setting"), "activities", chosen, profile.setting_files.get("profiler", ""))
        recorded = Metric(message("capture.recorded"), rows)
        return [*([setting] if chosen is not None else []), recorded, *time_on_host(facts)]

    return Observations(frame, evidence)


def _requested(activities: Scalar, name: str) -> bool | None:
    """Whether the profiler was told to record an activity; ``None`` if that is not recorded."""
    if not isinstance(activities, str) or not activities:
        return None
    return name in [activity.strip().rpartition(".")[2] for activity in activities.split(",")]
