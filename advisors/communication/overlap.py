"""CO001: communication that no computing covers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from advisor_core.api.advisors import Column, Observations, Params, Reference, Rows, advisor
from advisor_core.api.facts import (
    COLLECTIVES,
    KERNELS,
    STEP_TRACE,
    Facts,
    NotApplicable,
    collective_calls,
    kernel_list,
    ledger,
    rank_summary,
)
from advisors.columns import STEP_NS
from advisors.communication.calls import CALL, LEAVES, call_metric, call_rows, calls_in_steps, leaf_metric
from advisors.measuring import leaves, row, share, under
from advisors.messages import message


@advisor(
    "communication.overlap",
    needs=(ledger, rank_summary),
    wants=(collective_calls, kernel_list, KERNELS, COLLECTIVES, STEP_TRACE),
    columns=(
        STEP_NS,
        Column("uncovered_ns", "float", "ns", "communication that no computing covers, per step", zh="未掩盖"),
        Column("uncovered_share", "float", "ratio", "uncovered_ns over wall time", zh="未掩盖占比"),
        Column("communication_ns", "float", "ns", "communication per step, covered or not", zh="通信"),
        Column("overlap_ratio", "float", "ratio", "covered communication over all communication", zh="掩盖率"),
        Column("waiting_share", "float", "ratio", "of the uncovered time: waiting for another rank", zh="等待占比"),
        Column(
            "pipeline_share",
            "float",
            "ratio",
            "waiting for a neighbour in the pipeline over wall time",
            zh="流水线等待占比",
        ),
        Column("moving_share", "float", "ratio", "of the uncovered time: moving data", zh="传输占比"),
        Column("unknown_share", "float", "ratio", "of the uncovered time: not known which", zh="未知占比"),
        Column(
            "calls",
            "float",
            "count",
            "collectives and send/receive operations per step; unknown without them",
            zh="次数",
        ),
    ),
    evidence=(
        *LEAVES,
        *CALL,
    ),
)
def overlap(facts: Facts, params: Params) -> Observations:
    """Communication that is not covered by computing."""
    if kernel_list in facts:
        raise NotApplicable(message("capture.no_loop"))
    if (missing := facts.missing(collective_calls)) is not None and missing.kind == "not_applicable":
        raise missing.error()
    calls = calls_in_steps(facts) if missing is None else None
    totals, per_leaf = facts[rank_summary], leaves(facts)
    steps, wall = len(totals), float(totals["wall_ns"].mean())
    covered = float(totals["overlapped_ns"].sum()) / steps
    open_ns = float(totals["uncovered_ns"].sum()) / steps
    frame = row(
        step_ns=wall,
        uncovered_ns=open_ns,
        uncovered_share=share(open_ns, wall),
        communication_ns=open_ns + covered,
        overlap_ratio=share(covered, open_ns + covered),
        waiting_share=share(under(per_leaf, "communication/wait"), open_ns),
        pipeline_share=share(under(per_leaf, "communication/wait/pipeline"), wall),
        moving_share=share(under(per_leaf, "communication/transmit"), open_ns),
        unknown_share=share(under(per_leaf, "communication/unknown"), open_ns),
        calls=len(calls) / steps if calls is not None else np.nan,
    )

    def evidence(number: int) -> Sequence[Reference]:
        references: list[Reference] = [leaf_metric(per_leaf, wall)]
        if calls is not None:
            largest = calls.sort_values("uncovered_ns", ascending=False, kind="stable")
            references += [call_metric(largest), *call_rows(facts, largest)]
        if STEP_TRACE in facts and len(facts[STEP_TRACE]):
            columns = ("step", "uncovered_communication_ns", "overlapped_ns", "communication_ns")
            rows = np.arange(len(facts[STEP_TRACE]))
            references.append(Rows(message("common.exporter_totals"), STEP_TRACE, rows, columns))
        return references

    return Observations(frame, evidence)
