"""DQ021: work that was handed over before the recording began, with which the device was busy when it did."""

from __future__ import annotations

from collections.abc import Sequence

from advisor_core.api.advisors import Column, Interval, Observations, Params, Reference, Rows, advisor
from advisor_core.api.facts import Facts, backlog, row_refs, work
from advisors.measuring import DEVICE_LANE, row
from advisors.messages import message


@advisor(
    "capture.backlog",
    needs=(backlog, work),
    columns=(
        Column("first_task", "text", "", "the first recorded task of its stream", zh="首个任务"),
        Column("stream", "int", "", "its stream", zh="流"),
        Column("wait_ns", "int", "ns", "how long it waited, handed over, while nothing recorded ran", zh="等待"),
    ),
)
def earlier_work(facts: Facts, params: Params) -> Observations:
    """A task at the beginning that waited, handed over, for what was not recorded."""
    found = facts[backlog]
    frame = row(first_task=found.name, stream=found.stream, wait_ns=found.wait_ns)

    def evidence(number: int) -> Sequence[Reference]:
        columns = ("name", "start_ns", "duration_ns")
        return [
            Interval(message("capture.backlog"), found.start_ns - found.wait_ns, found.start_ns, DEVICE_LANE),
            *(
                Rows(message("capture.waited"), where.table, where.rows, columns)
                for where in row_refs(facts[work].iloc[[found.task]])
            ),
        ]

    return Observations(frame, evidence)
