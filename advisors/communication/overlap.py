"""CO001: communication that no computing covers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from advisor_core.api.advisors import Column, Observations, Params, Reference, Rows, advisor
from advisor_core.api.facts import (
    COLLECTIVES,
    KERNELS,
    PART,
    STEP_TRACE,
    Facts,
    JudgedPart,
    NotApplicable,
    collective_calls,
    judged_parts,
    kernel_list,
    ledger,
    rank_summary,
)
from advisors.columns import STEP_NS
from advisors.communication.calls import CALL, LEAVES, call_metric, call_rows, calls_in_steps, leaf_metric
from advisors.measuring import leaves, share, under
from advisors.messages import message
from advisors.phases import worth_judging


@advisor(
    "communication.overlap",
    needs=(ledger, rank_summary),
    wants=(collective_calls, kernel_list, KERNELS, COLLECTIVES, STEP_TRACE, judged_parts),
    about=(PART,),
    columns=(
        STEP_NS,
        Column("uncovered_ns", "float", "ns", "communication that no computing covers, per step", zh="未掩盖"),
        Column(
            "uncovered_share",
            "float",
            "ratio",
            "uncovered_ns over wall time, or that of the part",
            zh="未掩盖占比",
        ),
        Column("communication_ns", "float", "ns", "communication per step, covered or not", zh="通信"),
        Column("overlap_ratio", "float", "ratio", "covered communication over all communication", zh="掩盖率"),
        Column("waiting_share", "float", "ratio", "of the uncovered time: waiting for another rank", zh="等待占比"),
        Column(
            "pipeline_share",
            "float",
            "ratio",
            "waiting for a neighbour in the pipeline over wall time, likewise",
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
    """Communication that is not covered by computing. Where the recording has several parts each of them is judged by
    itself: what prefill sends is large, what decode sends is small, and a rollout and an update have other groups.
    """
    if kernel_list in facts:
        raise NotApplicable(message("capture.no_loop"))
    if (missing := facts.missing(collective_calls)) is not None and missing.kind == "not_applicable":
        raise missing.error()
    calls = calls_in_steps(facts) if missing is None else None
    totals, per_leaf = facts[rank_summary], leaves(facts)
    steps, step_wall = len(totals), float(totals["wall_ns"].mean())
    covered = float(totals["overlapped_ns"].sum()) / steps
    whole = _Open(None, per_leaf, step_wall, float(totals["uncovered_ns"].sum()) / steps, covered, calls)
    found = [_of_part(part, calls) for part in facts.get(judged_parts) or ()]
    judged = worth_judging(found, lambda one: one.open_ns, step_wall) or [whole]
    frame = pd.DataFrame([one.observed(step_wall, steps) for one in judged])

    def evidence(number: int) -> Sequence[Reference]:
        own = judged[number]
        references: list[Reference] = [leaf_metric(own.per_leaf, step_wall)]
        if own.calls is not None:
            largest = own.calls.sort_values("uncovered_ns", ascending=False, kind="stable")
            references += [call_metric(largest), *call_rows(facts, largest)]
        if own.part is None and STEP_TRACE in facts and len(facts[STEP_TRACE]):
            columns = ("step", "uncovered_communication_ns", "overlapped_ns", "communication_ns")
            rows = np.arange(len(facts[STEP_TRACE]))
            references.append(Rows(message("common.exporter_totals"), STEP_TRACE, rows, columns))
        return references

    return Observations(frame, evidence)


@dataclass(frozen=True)
class _Open:
    """The communication of a part of the steps, ``None`` of all, per step: ``open_ns``, what no computing covers, and
    what is ``covered``. ``wall_ns``: time of the part per step. ``calls``: those that start in it."""

    part: str | None
    per_leaf: pd.Series
    wall_ns: float
    open_ns: float
    covered_ns: float
    calls: pd.DataFrame | None

    def observed(self, step_wall: float, steps: int) -> dict[str, Any]:
        per_leaf, open_ns, both = self.per_leaf, self.open_ns, self.open_ns + self.covered_ns
        return {
            PART.name: self.part,
            "step_ns": step_wall,
            "uncovered_ns": open_ns,
            "uncovered_share": share(open_ns, self.wall_ns),
            "communication_ns": both,
            "overlap_ratio": share(self.covered_ns, both),
            "waiting_share": share(under(per_leaf, "communication/wait"), open_ns),
            "pipeline_share": share(under(per_leaf, "communication/wait/pipeline"), self.wall_ns),
            "moving_share": share(under(per_leaf, "communication/transmit"), open_ns),
            "unknown_share": share(under(per_leaf, "communication/unknown"), open_ns),
            "calls": len(self.calls) / steps if self.calls is not None else np.nan,
        }


def _of_part(part: JudgedPart, calls: pd.DataFrame | None) -> _Open:
    own = None if calls is None else calls[part.inside.at(calls["start_ns"].to_numpy()) >= 0]
    open_ns = under(part.per_leaf, "communication")
    return _Open(part.name, part.per_leaf, part.wall_ns, open_ns, part.overlapped_ns, own)
