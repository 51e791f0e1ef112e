"""PB018: kernels that take far longer than their cores work: they wait inside their own duration."""

from __future__ import annotations

import numpy as np

from advisor_core.api.advisors import Column, Observations, Params, Reference, advisor
from advisor_core.api.facts import HOST_EVENTS, Facts, Groups, NotApplicable, launches, picked
from advisors.columns import KERNELS_PER_STEP, MEAN_NS, OPERATOR_TYPE, TOTAL_NS
from advisors.layers.layers import layers
from advisors.layers.places import PLACES, origin
from advisors.measuring import share
from advisors.messages import message
from advisors.step_kernels import PIPE_COLUMNS, kernel_rows, step_kernels


@advisor(
    "pipeline_bound.waiting",
    needs=(step_kernels,),
    wants=(launches, HOST_EVENTS, layers),
    about=(OPERATOR_TYPE, Column("input_shapes", "text", "", "shapes of its inputs", zh="输入 shape")),
    columns=(
        Column("operator_class", "text", "", "its class in the ledger", zh="算子类别"),
        KERNELS_PER_STEP,
        MEAN_NS,
        TOTAL_NS,
        Column("core_work_ns", "float", "ns", "how long the busier kind of its cores works, mean", zh="核工作耗时"),
        Column("core_work_share", "float", "ratio", "core_work_ns over mean_ns", zh="核工作占比"),
        Column("beyond_ns", "float", "ns", "mean_ns without core_work_ns", zh="超出核工作"),
        Column("stalled_ns", "float", "ns", "total_ns without the time of the cores, per step", zh="核外等待"),
        Column("stalled_share", "float", "ratio", "stalled_ns over the step", zh="核外等待占比"),
    ),
    evidence=PLACES,
)
def waiting(facts: Facts, params: Params) -> Observations:
    """Kernels of equal type, shapes and dtypes: how much of their duration their cores work.

    The exporters give the time of the cores as the mean over those that the kernel uses. Kernels without it (AI CPU,
    copies, levels without counters) are left out.
    """
    kernels = facts[step_kernels]
    frame = kernels.frame
    core_work_ns = np.fmax(frame["aic_ns"].to_numpy(), frame["aiv_ns"].to_numpy())
    works = core_work_ns > 0
    if not works.any():
        raise NotApplicable(message("pipeline_bound.nothing"))
    names = ["signature", "duration_ns", "row", "work", "type", "input_shapes", "operator_class"]
    core_kernels = frame[names][works]
    core_kernels["core_work_ns"] = np.minimum(core_work_ns[works], core_kernels["duration_ns"])
    groups = Groups(core_kernels, "signature")
    table = groups.table(
        kernels=("duration_ns", "size"), total_ns=("duration_ns", "sum"), core_total=("core_work_ns", "sum")
    )
    table["mean_ns"] = table["total_ns"] / table["kernels"]
    table["core_work_ns"] = table["core_total"] / table["kernels"]
    table["core_work_share"] = table["core_work_ns"] / table["mean_ns"]
    table["beyond_ns"] = table["mean_ns"] - table["core_work_ns"]
    table["stalled_ns"] = (table["total_ns"] - table["core_total"]) / kernels.steps
    table["stalled_share"] = table["stalled_ns"].map(lambda ns: share(ns, kernels.wall_ns))
    for column in ("kernels", "total_ns"):
        table[column] = table[column] / kernels.steps
    texts = picked(core_kernels, groups.firsts, ("type", "input_shapes", "operator_class"))
    for name, shown in (("type", "operator"), ("input_shapes", "input_shapes"), ("operator_class", "operator_class")):
        table[shown] = texts[name].astype(str).to_numpy()
    table = table.sort_values("stalled_ns", ascending=False, kind="stable", ignore_index=True)

    def evidence(row: int) -> list[Reference]:
        rows = core_kernels[core_kernels["signature"] == table["signature"][row]]
        columns = (*PIPE_COLUMNS[:5], "aic_ns", "aiv_ns", "stream")
        return [
            kernel_rows(message("pipeline_bound.rows"), rows, columns),
            *origin(facts, rows),
        ]

    return Observations(table, evidence)
