"""CO008: waiting for the neighbour in the pipeline."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from advisor_core.api.advisors import Column, Observations, Params, Reference, Rows, advisor
from advisor_core.api.facts import (
    COLLECTIVES,
    KERNELS,
    POINT_TO_POINT,
    PROFILE,
    STEP_TRACE,
    Facts,
    NotApplicable,
    collective_calls,
    ledger,
    rank_summary,
)
from advisors.columns import STEP_NS
from advisors.communication.calls import CALL, LEAVES, call_metric, call_rows, calls_in_steps, leaf_metric
from advisors.measuring import leaves, row, share, under
from advisors.messages import message


@advisor(
    "communication.pipeline",
    needs=(ledger, rank_summary, PROFILE),
    wants=(collective_calls, KERNELS, COLLECTIVES, STEP_TRACE),
    columns=(
        STEP_NS,
        Column("wait_ns", "float", "ns", "uncovered waiting in send and receive operations, per step", zh="等待"),
        Column("wait_share", "float", "ratio", "wait_ns over wall time", zh="等待占比"),
        Column(
            "calls", "float", "count", "send and receive operations per step; unknown where only sums are", zh="次数"
        ),
        Column(
            "data_included",
            "bool",
            "",
            "waiting and moving data could not be told apart: wait_ns is both",
            zh="含数据等待",
        ),
        Column(
            "bubble_ns",
            "float",
            "ns",
            "the exporter's Bubble, which knows hcom_receive only, per step",
            zh="流水线空泡",
        ),
        Column("stages", "float", "count", "pipeline stages, where they are recorded", zh="级数"),
    ),
    evidence=(
        *LEAVES,
        *CALL,
    ),
)
def pipeline(facts: Facts, params: Params) -> Observations:
    """Waiting for the neighbour in the pipeline.

    Where nothing but sums is known of the rank, the exporter's Bubble tells the time in receives.
    """
    totals, per_leaf = facts[rank_summary], leaves(facts)
    steps, wall = len(totals), float(totals["wall_ns"].mean())
    waited, untold, calls = under(per_leaf, "communication/wait/pipeline"), True, None
    if (missing := facts.missing(collective_calls)) is None:
        every = calls_in_steps(facts)
        calls = every[every["operation"].str.contains(POINT_TO_POINT.pattern, case=False, regex=True)]
        if calls.empty:
            raise NotApplicable(message("communication.no_p2p"))
        untold = bool((calls["source"] == "").any())
        waited += float(calls["unknown_ns"].sum()) / steps if untold else 0.0
    elif not totals["receiving_ns"].any():
        raise missing.error()
    reported = facts.get(STEP_TRACE)
    frame = row(
        step_ns=wall,
        wait_ns=waited,
        wait_share=share(waited, wall),
        calls=len(calls) / steps if calls is not None else np.nan,
        data_included=untold,
        bubble_ns=float(reported["bubble_ns"].mean()) if reported is not None and len(reported) else np.nan,
        stages=float(facts[PROFILE].parallel.get("pp", np.nan)),
    )

    def evidence(number: int) -> Sequence[Reference]:
        references: list[Reference] = [leaf_metric(per_leaf, wall)]
        if calls is not None:
            largest = calls.sort_values("uncovered_ns", ascending=False, kind="stable")
            references += [call_metric(largest), *call_rows(facts, largest)]
        elif reported is not None:
            columns = ("step", "uncovered_communication_ns", "bubble_ns")
            references.append(Rows(message("common.exporter_totals"), STEP_TRACE, np.arange(len(reported)), columns))
        return references

    return Observations(frame, evidence)
