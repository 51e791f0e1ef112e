"""A fact and the advisor that measures with it."""

from __future__ import annotations

import numpy as np
import pandas as pd

from advisor_core.api import Text
from advisor_core.api.advisors import Column, Metric, Observations, Params, Reference, Rows, advisor
from advisor_core.api.facts import KERNELS, Facts, fact, steps


@fact(
    "hello.kernel_lengths",
    needs=(KERNELS,),
    columns=(Column("row", "int", "", "row of kernels"), Column("duration_ns", "int", "ns", "duration")),
)
def kernel_lengths(facts: Facts) -> pd.DataFrame:
    """Every kernel that computes."""
    kernels = facts[KERNELS]
    computing = np.flatnonzero((kernels["core"] != "COMMUNICATION").to_numpy())
    return pd.DataFrame({"row": computing, "duration_ns": kernels["duration_ns"].to_numpy()[computing]})


@advisor(
    "hello.short_kernels",
    needs=(kernel_lengths, steps),
    params=("short",),
    columns=(
        Column("kernels", "float", "count", "kernels per step"),
        Column("short_share", "float", "ratio", "of the kernels: shorter than the parameter short"),
        Column("short_ns", "float", "ns", "device time of these per step", zh="短 kernel 耗时"),
    ),
    evidence=(
        Column("length_ns", "int", "ns", "duration of a kernel", zh="时长"),
        Column("count", "int", "count", "short kernels of this duration", zh="数量"),
    ),
)
def short_kernels(facts: Facts, params: Params) -> Observations:
    """How many kernels are too short to be worth a launch."""
    lengths, count = facts[kernel_lengths], len(facts[steps])
    short = lengths[lengths["duration_ns"] < params["short"]]
    frame = pd.DataFrame(
        {
            "kernels": [len(lengths) / count],
            "short_share": [len(short) / len(lengths) if len(lengths) else float("nan")],
            "short_ns": [short["duration_ns"].sum() / count],
        }
    )

    def evidence(row: int) -> list[Reference]:
        counts = short["duration_ns"].value_counts().head(5)
        table = [{"length_ns": length, "count": count} for length, count in counts.items()]
        return [
            Metric(Text(en="Most frequent durations", zh="最常见的时长"), table),
            Rows(Text(en="Short kernels", zh="短 kernel"), KERNELS, short["row"].to_numpy(), ("name", "duration_ns")),
        ]

    return Observations(frame, evidence)
