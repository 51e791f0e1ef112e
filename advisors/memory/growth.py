"""ME003: memory that grows from step to step, and the tensors that are never released."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from advisor_core.api.advisors import Column, Metric, Observations, Params, Reference, Rows, Stack, advisor
from advisor_core.api.facts import (
    HOST_EVENTS,
    MEMORY_RECORD,
    MODULE_MEMORY,
    OPERATOR_MEMORY,
    Facts,
    frames_of,
    memory_capacity,
    of_graph_engine,
)
from advisors.measuring import records, row
from advisors.memory.capacity import CAPACITY, used_of_capacity
from advisors.memory.columns import SIZE, TENSORS
from advisors.memory.trend import PER_STEP, memory_trend, pace, per_step_table, until_full
from advisors.messages import message


@advisor(
    "memory.growth",
    needs=(memory_trend,),
    wants=(OPERATOR_MEMORY, HOST_EVENTS, memory_capacity, MEMORY_RECORD, MODULE_MEMORY),
    params=("capacity",),
    columns=(
        *CAPACITY,
        Column("steps", "int", "count", "steps compared", zh="step 数"),
        Column(
            "rise",
            "float",
            "B",
            "rise per step of the least that was allocated in a step, first to last",
            zh="每 step 增长",
        ),
        Column("median_rise", "float", "B", "the same at the median step", zh="每 step 增长中位数"),
        Column(
            "rising_share",
            "float",
            "ratio",
            "of the steps: the least allocated is above that of the step before",
            zh="增长 step 占比",
        ),
        Column("steps_to_full", "float", "count", "steps until the device is full at this pace", zh="距占满的 step 数"),
        Column(
            "operator",
            "text",
            "",
            "operator with most memory that recurs step by step and is never released",
            zh="算子",
        ),
        Column("unreleased_bytes", "float", "B", "its memory per step", zh="未释放显存"),
        Column("unreleased", "int", "count", "tensors of all such operators", zh="未释放张量数"),
    ),
    evidence=(
        *PER_STEP,
        SIZE,
        TENSORS,
        Column("per_step", "float", "B", "bytes allocated per step and never released", zh="每步"),
    ),
)
def growth(facts: Facts, params: Params) -> Observations:
    """Whether the memory that remains between steps grows, and which tensors are never released."""
    steps = facts[memory_trend]
    least = steps["trough_bytes"].to_numpy()
    rise, median = pace(least)
    usage = used_of_capacity(facts, params)
    unreleased, rows = _unreleased(facts.get(OPERATOR_MEMORY), steps)
    lead = unreleased.iloc[0] if len(unreleased) else None
    frame = row(
        **usage,
        steps=len(steps),
        rise=rise,
        median_rise=median,
        rising_share=float((np.diff(least) > 0).mean()),
        steps_to_full=until_full(float(usage["capacity_bytes"]) - float(usage["used_bytes"]), rise),
        operator=str(lead["name"]) if lead is not None else "",
        unreleased_bytes=float(lead["per_step"]) if lead is not None else np.nan,
        unreleased=len(rows),
    )

    def evidence(number: int) -> Sequence[Reference]:
        references: list[Reference] = [per_step_table(steps)]
        if not len(unreleased):
            return references
        listed = records(
            unreleased, operator="name", size="bytes", tensors="tensors", steps="steps", per_step="per_step"
        )
        columns = ("name", "bytes", "allocation_ns")
        return [
            *references,
            Metric(message("memory.unreleased"), listed),
            Rows(message("memory.unreleased_rows"), OPERATOR_MEMORY, rows, columns),
            *_allocated_by(facts, str(unreleased["name"].iloc[0]), rows),
        ]

    return Observations(frame, evidence)


def _unreleased(operators: pd.DataFrame | None, steps: pd.DataFrame) -> tuple[pd.DataFrame, np.ndarray]:
    """Tensors allocated before the last step and never released, of kinds that recur in at least half of these steps.

    By kind, which is an operator and a size: ``name``, ``bytes``, ``tensors``, ``steps``, ``per_step`` (bytes per
    step), most memory first; and the rows of ``operator_memory``, those of the first kind first.
    """
    nothing = pd.DataFrame(columns=["name", "bytes", "tensors", "steps", "per_step"]), np.empty(0, np.int64)
    if operators is None:
        return nothing
    starts = steps["start_ns"].to_numpy()
    began = operators["allocation_ns"].to_numpy()
    step = np.searchsorted(starts, began, side="right") - 1
    compared = len(steps) - 1  # what the last step allocated may still be released
    stays = (operators["release_ns"] < 0).to_numpy() & (operators["bytes"] > 0).to_numpy()
    unreleased = operators[stays & (step >= 0) & (step < compared) & ~of_graph_engine(operators)]
    if unreleased.empty:
        return nothing
    kinds = unreleased.assign(name=unreleased["name"].astype(str), step=step[unreleased.index.to_numpy()])
    grouped = kinds.groupby(["name", "bytes"], sort=False)
    table = grouped.agg(tensors=("step", "size"), steps=("step", "nunique")).reset_index()
    table["per_step"] = table["bytes"] * table["tensors"] / compared
    table = table[table["steps"] * 2 >= compared].sort_values("per_step", ascending=False, kind="stable")
    table = table.reset_index(drop=True)
    order = kinds.reset_index().merge(table.reset_index(names="kind")[["name", "bytes", "kind"]], on=["name", "bytes"])
    rows = order.sort_values(["kind", "allocation_ns"], kind="stable")["index"].to_numpy()
    return table, rows.astype(np.int64)


def _allocated_by(facts: Facts, name: str, rows: np.ndarray) -> list[Reference]:
    """The call stack of the operator that allocated the first of the rows, as far as it is recorded."""
    events, operators = facts.get(HOST_EVENTS), facts.get(OPERATOR_MEMORY)
    if events is None or operators is None or not len(rows):
        return []
    time = int(operators["allocation_ns"].iloc[rows[0]])
    calls = events[(events["category"] == "cpu_op") & (events["name"] == name) & (events["start_ns"] <= time)]
    inside = calls[calls["start_ns"] + calls["duration_ns"] >= time]
    frames = frames_of(str(inside["call_stack"].iloc[-1])) if len(inside) else ()
    return [Stack(message("common.stack", name=name), frames)] if frames else []
