"""Evidence of where time on the host went, for recordings without a device."""

from __future__ import annotations

from advisor_core.api.advisors import Column, Metric, Reference
from advisor_core.api.facts import OPERATORS, PROFILE, Facts, host_steps, matching
from advisors.measuring import records
from advisors.messages import message

_LISTED = 10

SHOWN = (
    Column("step", "int", "", "number of the step", zh="step"),
    Column("wall", "int", "ns", "wall time of the step on the host", zh="墙钟时间"),
    Column("loader", "int", "ns", "wait for the data loader", zh="等待取数"),
    Column("in_operators", "int", "ns", "operators of the framework on any thread", zh="算子耗时"),
    Column("rest", "int", "ns", "neither", zh="其余"),
    Column("operator", "text", "", "operator of the framework", zh="算子"),
    Column("calls", "int", "count", "its calls in the recording", zh="次数"),
    Column("self", "int", "ns", "its own time on the host in the recording", zh="自身耗时"),
)
"""The columns of its tables."""


def time_on_host(facts: Facts) -> list[Reference]:
    """The parts of each step on the host, and the operators with most time of their own; nothing where a device was
    recorded."""
    if host_steps not in facts:
        return []
    spans = facts[host_steps]
    spans = spans.assign(step_ns=spans["end_ns"] - spans["start_ns"])
    rows = records(
        spans, _LISTED, step="step", wall="step_ns", loader="loader_ns", in_operators="operator_ns", rest="rest_ns"
    )
    found: list[Reference] = [Metric(message("host_times.parts"), rows)]
    calls = facts.get(OPERATORS)
    if calls is not None and len(calls):
        words = facts[PROFILE].vocabulary  # traces of 2021 record marks and the data loader like operators
        calls = calls[~matching(calls["name"], words.annotation) & ~matching(calls["name"], words.data_loader)]
        sums = calls.groupby("name", observed=True)["host_self_ns"].agg(["size", "sum"])
        sums = sums.sort_values("sum", ascending=False, kind="stable").reset_index()
        listed = records(sums.astype({"name": str}), _LISTED, operator="name", calls="size", self="sum")
        found.append(Metric(message("host_times.operators"), listed))
    return found
