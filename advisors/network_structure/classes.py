"""GNS006: kernel time by class of operator."""

from __future__ import annotations

import numpy as np

from advisor_core.api.advisors import Column, Observations, Params, Reference, advisor
from advisor_core.api.facts import HOST_EVENTS, Facts, launches
from advisors.columns import KERNELS_PER_STEP, MEAN_NS, TOTAL_NS, shares
from advisors.layers.layers import layers
from advisors.layers.places import PLACES, origin
from advisors.messages import message
from advisors.step_kernels import kernel_rows, step_kernels


@advisor(
    "network_structure.classes",
    needs=(step_kernels,),
    wants=(launches, HOST_EVENTS, layers),
    columns=(
        KERNELS_PER_STEP,
        TOTAL_NS,
        MEAN_NS,
        Column("largest_type", "text", "", "operator type that takes most of it", zh="最大的类型"),
        *shares("total_ns"),
    ),
    about=(Column("operator_class", "text", "", "class of operator, as in the ledger", zh="算子类别"),),
    evidence=PLACES,
)
def classes(facts: Facts, params: Params) -> Observations:
    """Kernel time per step by class of operator."""
    kernels = facts[step_kernels]
    frame = kernels.frame
    grouped = frame.groupby(frame["operator_class"].astype(str), sort=True)["duration_ns"]
    table = grouped.agg(["count", "sum", "mean"]).rename(columns={"count": "kernels", "sum": "total_ns"})
    by_type = frame.groupby([frame["operator_class"].astype(str), frame["type"].astype(str)])["duration_ns"].sum()
    table["largest_type"] = by_type.groupby(level=0).idxmax().map(lambda key: key[1])
    table[["kernels", "total_ns"]] /= kernels.steps
    table = table.rename(columns={"mean": "mean_ns"}).assign(**kernels.shares(table["total_ns"]))
    table = table.rename_axis("operator_class").reset_index()

    def evidence(row: int) -> list[Reference]:
        rows = frame[np.asarray(frame["operator_class"] == table["operator_class"].iloc[row])]
        return [kernel_rows(message("classes.rows"), rows), *origin(facts, rows)]

    return Observations(table, evidence)
