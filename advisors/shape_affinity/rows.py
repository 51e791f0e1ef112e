"""SA003: kernels that divide rows among vector cores."""

from __future__ import annotations

import re

from advisor_core.api.advisors import Column, Observations, Params, Reference, advisor
from advisor_core.api.facts import (
    HOST_EVENTS,
    Facts,
    NotApplicable,
    aggregated,
    chip,
    elements,
    launches,
    matching,
    per_text,
    shapes_of,
)
from advisors.columns import KERNELS_PER_STEP, MEAN_NS, OPERATOR_TYPE, TOTAL_NS, shares
from advisors.messages import message
from advisors.roofline.products import balance
from advisors.step_kernels import call_stack, kernel_rows, step_kernels

BY_ROWS = re.compile(r"RmsNorm|LayerNorm|AddNorm|Softmax(V2)?$|DynamicQuant", re.I)
"""Operators that reduce along the last axis and so give whole rows to a core (docs/sources.md#rows-per-core). Not
quantisation with fixed scales, which divides anywhere, nor GroupNorm, whose shapes do not tell the groups."""


@advisor(
    "shape_affinity.rows",
    needs=(step_kernels, chip),
    wants=(launches, HOST_EVENTS),
    about=(
        OPERATOR_TYPE,
        Column("rows", "int", "count", "rows that the kernel divides among cores", zh="行数"),
    ),
    columns=(
        Column("cores", "int", "count", "vector cores of the chip", zh="核数"),
        Column("rounds", "int", "count", "how often the cores go round", zh="轮数"),
        Column(
            "efficiency", "float", "ratio", "part of the cores' time that is used: rows over rounds x cores", zh="效率"
        ),
        Column(
            "fewer",
            "int",
            "count",
            "the next smaller number of rows that fills all rounds; 0 if there is none",
            zh="减少",
        ),
        Column("more", "int", "count", "the next larger one", zh="增加"),
        Column(
            "blocks",
            "float",
            "count",
            "blocks that the kernel says it used; more than rows: it divides them too",
            zh="分块数",
        ),
        KERNELS_PER_STEP,
        MEAN_NS,
        TOTAL_NS,
        Column(
            "gain_ns",
            "float",
            "ns",
            "time of the idle cores: what the same rows would take less in full rounds",
            zh="收益",
        ),
        *shares("gain_ns"),
    ),
)
def rows_per_core(facts: Facts, params: Params) -> Observations:
    """Kernels that divide rows among vector cores (normalisation, dynamic quantisation): rows against cores."""
    kernels = facts[step_kernels]
    cores = facts[chip].vector_cores
    frame = kernels.frame
    names = ["type", "input_shapes", "duration_ns", "block_dim", "row", "work"]
    row_kernels = frame[names][matching(frame["type"], BY_ROWS)]
    if row_kernels.empty:
        raise NotApplicable(message("shape_affinity.no_norms"))
    kernels.require_shapes()
    counts = per_text(row_kernels["input_shapes"], _row_count).astype("int64")
    row_kernels = row_kernels.assign(operator=row_kernels["type"].astype(str), rows=counts)
    table = aggregated(
        row_kernels[row_kernels["rows"] > 0],
        ["operator", "rows"],
        kernels=("duration_ns", "size"),
        mean_ns=("duration_ns", "mean"),
        total_ns=("duration_ns", "sum"),
        blocks=("block_dim", "median"),
    )
    table["cores"] = cores
    table["rounds"] = -(-table["rows"] // cores)
    table["efficiency"] = balance(table["rows"], cores)
    table["fewer"] = table["rows"] // cores * cores
    table["more"] = table["rounds"] * cores
    for name in ("kernels", "total_ns"):
        table[name] = table[name] / kernels.steps
    table["gain_ns"] = table["total_ns"] * (1 - table["efficiency"])
    table = table.sort_values("gain_ns", ascending=False, kind="stable").reset_index(drop=True)
    table = table.assign(**kernels.shares(table["gain_ns"]))

    def evidence(row: int) -> list[Reference]:
        listed = row_kernels[
            (row_kernels["operator"] == table["operator"][row]) & (row_kernels["rows"] == table["rows"][row])
        ]
        columns = ("type", "start_ns", "duration_ns", "input_shapes", "block_dim", "aiv_ns")
        return [kernel_rows(message("shape_affinity.row_kernels"), listed, columns), *call_stack(facts, listed)]

    return Observations(table, evidence)


def _row_count(text: str) -> int:
    shapes = shapes_of(text)
    return elements(shapes[0]) // max(shapes[0][-1], 1) if shapes and len(shapes[0]) > 1 else 0
