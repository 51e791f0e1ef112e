"""NS003 to NS006: kernels that only convert between what one operator writes and the next one wants."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd

from advisor_core.api.advisors import Column, Metric, Observations, Params, Reference, advisor
from advisor_core.api.facts import HOST_EVENTS, Facts, Shortening, launches, matching
from advisors.columns import KERNELS_PER_STEP, TOTAL_NS, TYPE, shares
from advisors.fusion.chains import fusion_chains
from advisors.grouping import aggregated
from advisors.messages import message
from advisors.step_kernels import StepKernels, call_stack, kernel_rows, records, step_kernels

CONVERSIONS = ("format_conversion", "cast", "transpose", "concat")
_QUANTISES = re.compile(r"quant", re.I)
_INSIDE = re.compile(r"^aclnn")


@advisor(
    "network_structure.conversions",
    needs=(step_kernels, fusion_chains),
    wants=(launches, HOST_EVENTS),
    about=(Column("conversion", "text", "", "format_conversion, cast, transpose or concat", zh="转换"),),
    columns=(
        KERNELS_PER_STEP,
        TOTAL_NS,
        Column("largest_ns", "float", "ns", "time per step of the shape that takes most", zh="最大"),
        Column("largest_type", "text", "", "operator type of that shape", zh="最大的类型"),
        Column(
            "largest_input", "text", "", "what it reads: shape, dtype and format of its first tensor", zh="最大输入"
        ),
        Column("largest_output", "text", "", "what it writes", zh="最大输出"),
        Column("before", "text", "", "the operator that usually runs before it", zh="之前"),
        Column("after", "text", "", "the operator that usually runs after it", zh="之后"),
        Column(
            "back_and_forth_ns", "float", "ns", "part of total_ns in conversions that a later one undoes", zh="往返转换"
        ),
        Column("in_chain_ns", "float", "ns", "part of total_ns in chains that a fused kernel replaces", zh="链内耗时"),
        Column("loose_ns", "float", "ns", "the rest of total_ns", zh="松散"),
        Column(
            "inside_ns",
            "float",
            "ns",
            "part of total_ns in kernels that an aclnn operator runs inside itself",
            zh="内部",
        ),
        *shares("loose_ns"),
    ),
    params=("reach",),
    evidence=(
        TYPE,
        Column("reads", "text", "", "the tensor that it reads", zh="读取"),
        Column("writes", "text", "", "the tensor that it writes", zh="写入"),
    ),
)
def conversions(facts: Facts, params: Params) -> Observations:
    """Kernels that only convert between what one operator writes and what the next one wants."""
    kernels = facts[step_kernels]
    frame = kernels.frame
    types = frame["type"].astype(str).to_numpy()
    starts_chain, ends_chain = kernels.breaks, np.append(kernels.breaks[1:], True)
    before = np.where(starts_chain, "", np.roll(types, 1))
    after = np.where(ends_chain, "", np.roll(types, -1))
    # Quantising has a class with the casts, but it computes scales and is there on purpose.
    is_conversion = frame["operator_class"].isin(CONVERSIONS).to_numpy() & ~matching(frame["type"], _QUANTISES)
    part = frame[is_conversion].assign(
        conversion=frame["operator_class"][is_conversion].astype(str),
        before=before[is_conversion],
        after=after[is_conversion],
        reads=described(frame[is_conversion], "input"),
        writes=described(frame[is_conversion], "output"),
    )
    part["undone"] = _undone(part, kernels, int(params["reach"]))
    every_conversion = pd.DataFrame({"conversion": list(CONVERSIONS)}).set_index("conversion")
    totals = aggregated(part.groupby("conversion"), kernels=("duration_ns", "size"), total_ns=("duration_ns", "sum"))
    chained = part[part.index.isin(facts[fusion_chains].members)]
    totals["in_chain_ns"] = chained.groupby("conversion")["duration_ns"].sum()
    totals["inside_ns"] = part[matching(part["name"], _INSIDE)].groupby("conversion")["duration_ns"].sum()
    totals["back_and_forth_ns"] = part[part["undone"]].groupby("conversion")["duration_ns"].sum()
    shapes = ["conversion", "type", "reads", "writes"]
    by_shape = part.assign(type=types[is_conversion]).groupby(shapes, sort=False)["duration_ns"].sum()
    ranked = by_shape.sort_values(ascending=False, kind="stable").reset_index().drop_duplicates("conversion")
    neighbours = [
        _main_neighbour(part.merge(ranked, on=["conversion", "reads", "writes"]), side) for side in ("before", "after")
    ]
    ranked = ranked.rename(
        columns={
            "duration_ns": "largest_ns",
            "type": "largest_type",
            "reads": "largest_input",
            "writes": "largest_output",
        }
    ).set_index("conversion")
    result = every_conversion.join(totals).join(ranked).join(neighbours[0]).join(neighbours[1]).reset_index()
    numeric_columns = ["kernels", "total_ns", "largest_ns", "back_and_forth_ns", "in_chain_ns", "inside_ns"]
    result[numeric_columns] = result[numeric_columns].fillna(0.0) / kernels.steps
    result["loose_ns"] = result["total_ns"] - result["in_chain_ns"]
    text_columns = ["largest_type", "largest_input", "largest_output", "before", "after"]
    result[text_columns] = (
        result[text_columns].astype(object).where(result[text_columns].notna() & (result[text_columns] != ""), None)
    )
    result = result.assign(**kernels.shares(result["loose_ns"]))

    def evidence(row: int) -> list[Reference]:
        rows = part[part["conversion"] == result["conversion"][row]].assign(
            type=lambda table: table["type"].astype(str)
        )
        by_shape = rows.groupby(["type", "reads", "writes", "before", "after"], sort=False)["duration_ns"].agg(
            kernels="size", total_ns="sum"
        )
        top = by_shape.sort_values("total_ns", ascending=False, kind="stable").head(10).reset_index()
        columns = ("name", "type", "start_ns", "duration_ns", "input_shapes", "input_formats", "output_formats")
        return [
            Metric(message("network_structure.conversions"), records(top)),
            kernel_rows(message("network_structure.conversion_rows"), rows, columns),
            *call_stack(facts, rows),
        ]

    def cure(row: int) -> Shortening:
        loose = part[~part.index.isin(chained.index)]
        return kernels.shorter(loose[loose["conversion"] == result["conversion"][row]])

    return Observations(result, evidence, cure=cure)


def described(part: pd.DataFrame, side: str) -> pd.Series:
    """Shape, dtype and format of the first tensor: ``4096,4096 BF16 ND``."""
    names = [f"{side}_shapes", f"{side}_dtypes", f"{side}_formats"]
    fields = [part[name].astype(str).str.split(";").str[0] for name in names]
    return fields[0].str.cat(fields[1], sep=" ").str.cat(fields[2], sep=" ").str.strip()


def _main_neighbour(rows: pd.DataFrame, side: str) -> pd.Series:
    """Per conversion the neighbour that most time stands next to."""
    ranked = rows[rows[side] != ""].groupby(["conversion", side])["duration_ns_x"].sum()
    top = ranked.sort_values(ascending=False, kind="stable").reset_index().drop_duplicates("conversion")
    return top.set_index("conversion")[side]


def _undone(part: pd.DataFrame, kernels: StepKernels, reach: int) -> np.ndarray:
    """Conversions followed, with at most ``reach`` kernels between and no border, by one that reads what they wrote
    and writes what they read; and those that undo them."""
    group = np.cumsum(kernels.breaks)[part.index]
    candidates = pd.DataFrame({"group": group, "reads": part["reads"], "writes": part["writes"], "at": part.index})
    inverse = candidates.rename(columns={"reads": "writes", "writes": "reads", "at": "later"})
    # The nearest later conversion in the opposite direction.
    pairs = pd.merge_asof(
        candidates.sort_values("at"),
        inverse.sort_values("later"),
        left_on="at",
        right_on="later",
        by=["group", "reads", "writes"],
        direction="forward",
        allow_exact_matches=False,
    )
    pairs_in_reach = pairs[pairs["later"] - pairs["at"] <= reach + 1]
    paired = set(pairs_in_reach["at"]) | set(pairs_in_reach["later"].astype("int64"))
    return np.asarray(part.index.isin(paired))
