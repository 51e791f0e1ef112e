"""DQ017: a wait for the start of other ranks, with which the recording begins."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from advisor_core.api.advisors import Column, Interval, Observations, Params, Reference, Rows, advisor
from advisor_core.api.facts import KERNELS, Facts, row_refs, start_up, work
from advisors.measuring import DEVICE_LANE, row, share
from advisors.messages import message


@advisor(
    "capture.start_up",
    needs=(start_up, work),
    wants=(KERNELS,),
    columns=(
        Column("collective", "text", "", "the first collective of the recording", zh="集合通信"),
        Column("wait_ns", "int", "ns", "how long it took", zh="等待"),
        Column("times_longer", "float", "ratio", "wait_ns over the longest other collective", zh="相对其余最长者"),
        Column(
            "usual_ns", "float", "ns", "median of the others of its kind, unknown where there are none", zh="常规耗时"
        ),
        Column("longest_other_ns", "int", "ns", "the longest other collective", zh="其余最长者"),
        Column(
            "seen_again",
            "bool",
            "",
            "later steps were recorded, in which no collective takes as long",
            zh="有后续 step",
        ),
    ),
)
def waiting_to_start(facts: Facts, params: Params) -> Observations:
    """A wait for other ranks to start, with which the recording begins."""
    found = facts[start_up]
    frame = row(
        collective=found.name,
        wait_ns=found.wait_ns,
        times_longer=share(found.wait_ns, found.longest_other_ns),
        usual_ns=float(found.usual_ns) if found.usual_ns >= 0 else np.nan,
        longest_other_ns=found.longest_other_ns,
        seen_again=found.seen_again,
    )

    def evidence(number: int) -> Sequence[Reference]:
        columns = ("name", "start_ns", "duration_ns")
        return [
            Interval(message("capture.wait"), found.start_ns, found.end_ns, DEVICE_LANE),
            *(
                Rows(message("capture.collective"), where.table, where.rows, columns)
                for where in row_refs(facts[work].iloc[[found.collective]])
            ),
        ]

    return Observations(frame, evidence)
