"""CO020: transfers over RDMA that take as long as lost packets do."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from advisor_core.api.advisors import Column, Observations, Params, Reference, Rows, advisor
from advisor_core.api.facts import COLLECTIVE_BANDWIDTH, Facts, NotApplicable, steps
from advisors.columns import STEP_NS
from advisors.measuring import row, step_count, step_ns
from advisors.messages import message


@advisor(
    "communication.retransmission",
    needs=(steps, COLLECTIVE_BANDWIDTH),
    params=("timeout", "usual_rdma"),
    columns=(
        STEP_NS,
        Column("operations", "int", "count", "operations that moved data over RDMA", zh="操作数"),
        Column(
            "stalled_operations",
            "int",
            "count",
            "of these: longer than their bytes need by a lost packet",
            zh="停顿次数",
        ),
        Column("longest_ns", "float", "ns", "longest time in which one of them moved its data", zh="最长"),
        Column(
            "lost_ns", "float", "ns", "what the stalled ones take beyond what their bytes need, per step", zh="损失"
        ),
    ),
)
def retransmission(facts: Facts, params: Params) -> Observations:
    """Transfers over RDMA that take seconds longer than their bytes need."""
    table = facts[COLLECTIVE_BANDWIDTH]
    rows = np.flatnonzero(((table["transport"] == "RDMA") & (table["transit_ns"] > 0)).to_numpy())
    if not len(rows):
        raise NotApplicable(message("communication.no_rdma"))
    took = table["transit_ns"].to_numpy(dtype=np.float64)[rows]
    needed = table["bytes"].to_numpy(dtype=np.float64)[rows].clip(min=0) / float(params["usual_rdma"]) * 1e9
    stalled = took - needed >= params["timeout"]
    frame = row(
        step_ns=step_ns(facts),
        operations=len(rows),
        stalled_operations=int(stalled.sum()),
        longest_ns=float(took.max()),
        lost_ns=float((took - needed)[stalled].sum()) / step_count(facts),
    )

    def evidence(number: int) -> Sequence[Reference]:
        longest = rows[np.argsort(-took, kind="stable")]
        columns = ("step", "name", "transport", "bytes", "transit_ns", "bandwidth", "packets")
        return [Rows(message("communication.rdma_rows"), COLLECTIVE_BANDWIDTH, longest, columns)]

    return Observations(frame, evidence)
