"""CO018: products that are slower while data moves over links than without."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from advisor_core.api.advisors import Column, Metric, Observations, Params, Reference, advisor
from advisor_core.api.facts import (
    Facts,
    NotApplicable,
    Shortening,
    aggregated,
    collective_calls,
    collective_state,
    rank_summary,
    steps,
)
from advisors.columns import STEP_NS
from advisors.measuring import LARGEST, records, row, share, step_ns
from advisors.messages import message
from advisors.step_kernels import kernel_rows, step_kernels

_HEAVY = ("matmul", "convolution", "attention")
"""Classes of kernels that work for long enough to lie beside a transfer as a whole."""


@advisor(
    "communication.contention",
    needs=(steps, step_kernels, collective_state, collective_calls, rank_summary),
    params=("samples", "beside"),
    columns=(
        STEP_NS,
        Column(
            "kernels",
            "float",
            "count",
            "products beside a transfer, with others alike without, per step",
            zh="kernel 数",
        ),
        Column(
            "slowdown",
            "float",
            "ratio",
            "how much longer these take beside a transfer, of their time without",
            zh="变慢",
        ),
        Column("excess_ns", "float", "ns", "what they take longer, per step", zh="多出"),
        Column("excess_share", "float", "ratio", "excess_ns over wall time", zh="多出占比"),
        Column("covered_ns", "float", "ns", "communication that computing covers, per step", zh="已掩盖"),
        Column("example", "text", "", "shapes of the product with most of that time", zh="示例"),
    ),
    evidence=(
        Column("operator", "text", "", "type of the kernels", zh="算子"),
        Column("input_shapes", "text", "", "shapes of its inputs", zh="输入 shape"),
        Column("beside_transfers", "int", "count", "kernels beside a transfer", zh="传输时 kernel 数"),
        Column("without_transfers", "int", "count", "kernels without one", zh="无传输 kernel 数"),
        Column("beside_ns", "float", "ns", "median beside a transfer", zh="并行时中位数"),
        Column("alone_ns", "float", "ns", "median without one", zh="单独执行中位数"),
        Column("excess", "float", "ns", "what all of them take longer", zh="多出"),
    ),
)
def contention(facts: Facts, params: Params) -> Observations:
    """The same products with and without a transfer beside them: what the transfers cost these."""
    kernels, moving = facts[step_kernels], facts[collective_state].moving
    frame = kernels.frame[kernels.frame["operator_class"].isin(_HEAVY)]
    starts, ends = frame["start_ns"].to_numpy(), frame["end_ns"].to_numpy()
    length = np.maximum(ends - starts, 1)
    beside_share = (moving.measure(ends) - moving.measure(starts)) / length
    frame = frame.assign(beside=beside_share >= params["beside"], alone=beside_share == 0)
    compared = _compared(frame, float(params["samples"]))
    if compared.empty:
        raise NotApplicable(message("communication.no_pairs", samples=params["samples"]))
    slower = frame[frame["beside"] & frame["signature"].isin(compared.index)]
    longer = slower["duration_ns"] - slower["signature"].map(compared["alone_ns"])
    compared["excess"] = longer.groupby(slower["signature"]).sum().reindex(compared.index)
    compared = compared.sort_values("excess", ascending=False, kind="stable")
    alone_ns = float(slower["signature"].map(compared["alone_ns"]).sum())
    excess = max(float(longer.sum()), 0.0)
    totals, wall = facts[rank_summary], step_ns(facts)
    table = row(
        step_ns=wall,
        kernels=len(slower) / kernels.steps,
        slowdown=share(excess, alone_ns),
        excess_ns=excess / kernels.steps,
        excess_share=excess / kernels.steps / wall,
        covered_ns=float(totals["overlapped_ns"].sum()) / len(totals),
        example=str(compared["input_shapes"].iloc[0]),
    )

    def evidence(number: int) -> Sequence[Reference]:
        names = ("operator", "input_shapes", "beside_transfers", "without_transfers", "beside_ns", "alone_ns", "excess")
        return [
            Metric(message("communication.pairs"), records(compared, LARGEST, **{name: name for name in names})),
            kernel_rows(message("communication.slower"), slower.loc[longer.sort_values(ascending=False).index]),
        ]

    def cure(number: int) -> Shortening:
        return kernels.shorter(slower)

    return Observations(table, evidence, cure=cure)


def _compared(frame: pd.DataFrame, samples: float) -> pd.DataFrame:
    """The products of which enough ran beside a transfer, and enough without any: a row for each signature."""
    columns = ["signature", "type", "input_shapes", "beside", "alone"]
    lengths = {f"{name}_ns": frame["duration_ns"].where(frame[name]) for name in ("beside", "alone")}
    found: pd.DataFrame = aggregated(
        frame[columns].assign(**lengths),
        "signature",
        operator=("type", "first"),
        input_shapes=("input_shapes", "first"),
        beside_transfers=("beside", "sum"),
        without_transfers=("alone", "sum"),
        beside_ns=("beside_ns", "median"),
        alone_ns=("alone_ns", "median"),
    ).set_index("signature")
    found["operator"], found["input_shapes"] = found["operator"].astype(str), found["input_shapes"].astype(str)
    return found[(found["beside_transfers"] >= samples) & (found["without_transfers"] >= samples)].copy()
