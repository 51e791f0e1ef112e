"""DQ010: clocks of host and device that are apart."""

from __future__ import annotations

from collections.abc import Sequence

from advisor_core.api.advisors import Column, Interval, Metric, Observations, Params, Reference, advisor
from advisor_core.api.facts import (
    Facts,
    Unavailable,
    launches,
    work,
)
from advisors.columns import TASKS
from advisors.measuring import DEVICE_LANE, row
from advisors.messages import message


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
    evidence=(
        Column("skew", "int", "ns", "how far the clocks are apart at least", zh="差距"),
        TASKS,
    ),
)
def clocks(facts: Facts, params: Params) -> Observations:
    """A lower bound of the offset between the clocks of host and device."""
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
            ),
        ]

    return Observations(frame, evidence)
