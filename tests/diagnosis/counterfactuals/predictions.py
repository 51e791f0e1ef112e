"""The side that is judged: what a report says the step would be without some causes. It sees ``report.json`` alone.

Today that is the step less what the findings that name the causes promise, each by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from advisor_core.result.run import RunResult
from advisor_core.sample.causes import Cause
from tests.diagnosis.diagnosis import promise_of

Report = Mapping[str, Any]
"""What `report.json` holds."""
Range = tuple[float, float]


def recorded_step_ns(report: Report) -> float:
    """The step as recorded: from the first start to the last end of a rank, by the number of steps; of the rank for
    which that is longest."""
    spans: dict[int, list[tuple[int, int]]] = {}
    for step in report["profile"]["steps"]:
        spans.setdefault(step["rank"], []).append((step["start_ns"], step["end_ns"]))
    return max(
        (max(end for _, end in steps) - min(start for start, _ in steps)) / len(steps) for steps in spans.values()
    )


def predicted_step_ns(report: Report, without: Sequence[Cause]) -> int | None:
    """The step without these causes; ``None`` where the report does not name one of them."""
    promises = [promise_of(RunResult.model_validate(report).findings, cause) for cause in without]
    if any(promise is None for promise in promises):
        return None
    return round(recorded_step_ns(report) - sum(promise.measured_ns for promise in promises if promise is not None))


def predicted_range_ns(report: Report, without: Sequence[Cause]) -> Range | None:
    """The range that is promised for the same step: an estimate is meant to be within 20 % of what is saved, and an
    upper bound not below it."""
    promises = [promise_of(RunResult.model_validate(report).findings, cause) for cause in without]
    low = high = recorded_step_ns(report)
    for promise in promises:
        if promise is None:
            return None
        bound = promise.basis == "upper_bound"
        low -= promise.measured_ns * (1.0 if bound else 1.2)
        high -= promise.measured_ns * (0.0 if bound else 0.8)
    return low, high
