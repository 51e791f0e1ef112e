"""CO009: collectives that have begun and whose next task has not."""

from __future__ import annotations

from collections.abc import Sequence

from advisor_core.api.advisors import Column, Observations, Params, Reference, advisor
from advisor_core.api.facts import COLLECTIVES, KERNELS, Facts, collective_calls, collective_state, ledger, steps
from advisors.columns import STEP_NS
from advisors.communication.calls import CALL, LEAVES, call_metric, call_rows, calls_in_steps, leaf_metric, shorter
from advisors.measuring import leaves, row, share, step_count, step_ns, under


@advisor(
    "communication.launch_gaps",
    needs=(steps, ledger, collective_calls, collective_state),
    wants=(KERNELS, COLLECTIVES),
    columns=(
        STEP_NS,
        Column(
            "time_ns",
            "float",
            "ns",
            "uncovered time in which a collective had begun and did nothing, per step",
            zh="时间",
        ),
        Column("time_share", "float", "ratio", "time_ns over wall time", zh="时间占比"),
        Column("share_of_uncovered", "float", "ratio", "time_ns over uncovered communication", zh="占未掩盖通信"),
        Column("calls", "float", "count", "operations per step", zh="次数"),
    ),
    evidence=(
        *LEAVES,
        *CALL,
    ),
)
def launch_gaps(facts: Facts, params: Params) -> Observations:
    """Collectives that have begun and whose next task has not."""
    calls, steps, wall, per_leaf = calls_in_steps(facts), step_count(facts), step_ns(facts), leaves(facts)
    time = under(per_leaf, "communication/launch")
    frame = row(
        step_ns=wall,
        time_ns=time,
        time_share=share(time, wall),
        share_of_uncovered=share(time, under(per_leaf, "communication")),
        calls=len(calls) / steps,
    )

    def evidence(number: int) -> Sequence[Reference]:
        largest = calls.sort_values("launch_gap_ns", ascending=False, kind="stable")
        return [leaf_metric(per_leaf, wall), call_metric(largest), *call_rows(facts, largest)]

    return Observations(frame, evidence, cure=lambda _: shorter(calls, calls["launch_gap_ns"]))
