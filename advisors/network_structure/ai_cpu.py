"""NS021: operators that run on the AI CPU instead of the AI Core."""

from __future__ import annotations

import pandas as pd

from advisor_core.api.advisors import Column, Observations, Params, Reference, advisor
from advisor_core.api.facts import HOST_EVENTS, Facts, NotApplicable, aggregated, launches
from advisors.columns import KERNELS_PER_STEP, OPERATOR_TYPE, TOTAL_NS, shares
from advisors.layers.layers import layers
from advisors.layers.places import PLACES, origin
from advisors.messages import message
from advisors.step_kernels import kernel_rows, step_kernels

_AI_CORES = ("AI_CORE", "AI_VECTOR_CORE", "MIX_AIC", "MIX_AIV")
_NAMED = 3
"""So many combinations of dtypes are named."""


@advisor(
    "network_structure.ai_cpu",
    needs=(step_kernels,),
    wants=(launches, HOST_EVENTS, layers),
    about=(
        OPERATOR_TYPE,
        Column("dtypes", "text", "", "dtypes of its inputs", zh="数据类型"),
    ),
    columns=(
        KERNELS_PER_STEP,
        TOTAL_NS,
        Column("longest_ns", "float", "ns", "the longest of them", zh="最长"),
        Column("double", "bool", "", "it reads or writes DOUBLE", zh="双精度"),
        Column("narrow_integer", "bool", "", "it reads INT16, INT8 or UINT8", zh="窄整型"),
        Column("long_integer", "bool", "", "it reads INT64 or UINT64", zh="64 位整型"),
        Column(
            "on_ai_core",
            "text",
            "",
            "dtypes of the inputs with which the same operator runs on the AI Core in this recording, '' none",
            zh="AI Core 上的数据类型",
        ),
        *shares("total_ns"),
    ),
    evidence=PLACES,
)
def ai_cpu(facts: Facts, params: Params) -> Observations:
    """Operators that run on the AI CPU instead of the AI Core."""
    kernels = facts[step_kernels]
    on_ai_cpu = kernels.frame[kernels.frame["core"] == "AI_CPU"]
    if on_ai_cpu.empty:
        raise NotApplicable(message("network_structure.no_ai_cpu"))
    on_ai_cpu = on_ai_cpu.assign(
        operator=on_ai_cpu["type"].astype(str),
        dtypes=on_ai_cpu["input_dtypes"].astype(str),
        out=on_ai_cpu["output_dtypes"].astype(str),
    )
    grouped = aggregated(
        on_ai_cpu,
        ["operator", "dtypes"],
        kernels=("duration_ns", "size"),
        total_ns=("duration_ns", "sum"),
        longest_ns=("duration_ns", "max"),
        out=("out", "first"),
    )
    result = grouped.sort_values("total_ns", ascending=False, kind="stable", ignore_index=True)
    all_dtypes = result["dtypes"].astype(str) + ";" + result["out"].astype(str)
    result["double"] = all_dtypes.str.contains("DOUBLE|COMPLEX128").astype(bool)
    result["narrow_integer"] = result["dtypes"].astype(str).str.contains("INT16|INT8").astype(bool)
    result["long_integer"] = result["dtypes"].astype(str).str.contains("INT64").astype(bool)
    result["on_ai_core"] = result["operator"].map(_on_ai_core(kernels.frame)).fillna("")
    result["longest_ns"] = result["longest_ns"].astype("float64")
    for column in ("kernels", "total_ns"):
        result[column] = result[column] / kernels.steps
    result = result.drop(columns="out").assign(**kernels.shares(result["total_ns"]))

    def rows_of(row: int) -> pd.DataFrame:
        rows: pd.DataFrame = on_ai_cpu[
            (on_ai_cpu["operator"] == result["operator"][row]) & (on_ai_cpu["dtypes"] == result["dtypes"][row])
        ]
        return rows

    def evidence(row: int) -> list[Reference]:
        rows = rows_of(row)
        return [
            kernel_rows(message("network_structure.ai_cpu_rows"), rows),
            *origin(facts, rows),
        ]

    return Observations(result, evidence, cure=lambda row: kernels.shorter(rows_of(row)))


def _on_ai_core(kernels: pd.DataFrame) -> dict[str, str]:
    """Operator type to the dtypes with which it runs on the AI Core."""
    on_ai_core = kernels[kernels["core"].isin(_AI_CORES)]
    dtypes = on_ai_core["input_dtypes"].astype(str).where(on_ai_core["input_dtypes"] != "", None)
    texts = (
        dtypes.dropna()
        .groupby(on_ai_core["type"].astype(str))
        .agg(lambda group: ", ".join(sorted(set(group))[:_NAMED]))
    )
    return {str(operator): str(text) for operator, text in texts.items()}
