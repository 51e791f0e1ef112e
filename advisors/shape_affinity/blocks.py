"""SA004, SA007: matrix products whose blocks do not divide among the cube cores."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pandas as pd

from advisor_core.api.advisors import Column, Observations, Params, Reference, advisor
from advisor_core.api.facts import (
    HOST_EVENTS,
    Facts,
    NotApplicable,
    Shortening,
    aggregated,
    chip,
    context,
    launches,
    part_of,
    parts,
)
from advisors.columns import KERNELS_PER_STEP, MEAN_NS, OPERATOR_TYPE, TOTAL_NS, shares
from advisors.messages import message
from advisors.roofline.products import BASE_N, balance, best_balance, matrix_products, tiles
from advisors.step_kernels import PIPE_COLUMNS, call_stack, kernel_rows, step_kernels

if TYPE_CHECKING:
    import numpy.typing as npt

Ints: TypeAlias = "npt.NDArray[np.int64]"


@advisor(
    "shape_affinity.blocks",
    needs=(step_kernels, matrix_products, chip),
    wants=(launches, HOST_EVENTS, context, parts),
    about=(
        Column("m", "int", "count", "rows of the result", zh="M"),
        Column("n", "int", "count", "columns of the result", zh="N"),
        Column("k", "int", "count", "length of the sum", zh="K"),
        Column("dtype", "text", "", "dtype of the operands", zh="数据类型"),
    ),
    columns=(
        OPERATOR_TYPE,
        Column("batch", "int", "count", "products in one kernel", zh="batch"),
        Column("cores", "int", "count", "cube cores of the chip", zh="核数"),
        Column("blocks", "int", "count", "blocks of 128 x 256 or 128 x 128, whichever divides better", zh="分块数"),
        Column("rounds", "int", "count", "how often the cores go round", zh="轮数"),
        Column(
            "efficiency",
            "float",
            "ratio",
            "part of the cores' time that is used: blocks over rounds x cores",
            zh="效率",
        ),
        Column("good_m", "int", "count", "nearest larger M, by 128, with which enough of it is used", zh="合适的 M"),
        Column("good_n", "int", "count", "nearest larger N, by 128, with which enough of it is used", zh="合适的 N"),
        Column("recorded_blocks", "float", "count", "blocks that the kernel says it used", zh="记录的分块数"),
        Column("row_efficiency", "float", "ratio", "M over M rounded up to 128", zh="行效率"),
        Column("tier", "int", "count", "M rounded up to 128: the rows that cost the same", zh="档位"),
        Column("tier_below", "int", "count", "the next cheaper number of rows", zh="下一档"),
        KERNELS_PER_STEP,
        MEAN_NS,
        TOTAL_NS,
        Column(
            "gain_ns",
            "float",
            "ns",
            "time of the idle cores: what the same work would take less in full rounds",
            zh="收益",
        ),
        Column("share_of_total", "float", "ratio", "total_ns over the step", zh="占总量"),
        *shares("gain_ns"),
    ),
    params=("enough",),
)
def blocks(facts: Facts, params: Params) -> Observations:
    """Matrix products: how their blocks divide among the cube cores."""
    kernels = facts[step_kernels]
    cores = facts[chip].cube_cores
    distinct = facts[matrix_products]
    if distinct.empty:
        raise NotApplicable(message("shape_affinity.no_products"))
    table = aggregated(
        distinct,
        ["m", "n", "k", "batch", "dtype"],
        operator=("operator", "first"),
        kernels=("kernels", "sum"),
        total_ns=("total_ns", "sum"),
        recorded_blocks=("block_dim", "median"),
    )
    table["mean_ns"] = table["total_ns"] / table["kernels"]
    m, n, batch = (table[name].to_numpy() for name in ("m", "n", "batch"))
    counts = np.stack([tiles(m, n, base, batch) for base in BASE_N])
    used = np.stack([balance(count, cores) for count in counts])
    best = used.argmax(axis=0)
    table["cores"] = cores
    table["blocks"] = np.take_along_axis(counts, best[None, :], axis=0)[0].astype(np.int64)
    table["rounds"] = -(-table["blocks"] // cores)
    table["efficiency"] = used.max(axis=0)
    table["good_m"] = _grown(m, n, batch, cores, params["enough"], rows=True)
    table["good_n"] = _grown(m, n, batch, cores, params["enough"], rows=False)
    table["tier"] = -(-table["m"] // 128) * 128
    table["tier_below"] = table["tier"] - 128
    table["row_efficiency"] = table["m"] / table["tier"]
    table["gain_ns"] = table["total_ns"] * (1 - table["efficiency"])
    table["share_of_total"] = table["total_ns"] / kernels.wall_ns
    table = table.sort_values("gain_ns", ascending=False, kind="stable").reset_index(drop=True)
    table = table.assign(**kernels.shares(table["gain_ns"]))

    def rows_of(row: int) -> pd.DataFrame:
        alike = distinct
        for name in ("m", "n", "k", "batch", "dtype"):
            alike = alike[alike[name] == table[name][row]]
        return kernels.frame[kernels.frame["signature"].isin(alike["signature"])]

    def evidence(row: int) -> list[Reference]:
        listed = rows_of(row)
        return [
            kernel_rows(message("shape_affinity.product_rows"), listed, PIPE_COLUMNS),
            *call_stack(facts, listed),
        ]

    spans = facts.get(parts)

    def cure(row: int) -> Shortening | None:
        # Where requests are served, more of them fill the cores: a step then does more, and takes no less.
        rows = rows_of(row)
        if spans is not None:
            part = part_of(spans, rows["start_ns"].to_numpy())
            rows = rows[np.isin(part, ("training", "log_probs"))]
        elif context not in facts or facts[context]["phase"] != "training":
            return None
        return kernels.shorter(rows) if len(rows) else None

    return Observations(table, evidence, cure=cure)


GROWTH = 64
"""How many blocks of 128 an axis may grow in the search for a good size."""


def _grown(m: Ints, n: Ints, batch: Ints, cores: int, enough: float, *, rows: bool) -> npt.NDArray[np.int64]:
    """The next size of an axis, in steps of 128, with which at least ``enough`` of the cores' time is used; the size
    itself where none is found."""
    axis = m if rows else n
    steps = np.arange(1, GROWTH + 1)[:, None] * 128
    sizes = np.concatenate([axis[None, :], (axis // 128)[None, :] * 128 + steps])
    other = np.broadcast_to(n if rows else m, sizes.shape)
    used = best_balance(sizes, other, batch, cores) if rows else best_balance(other, sizes, batch, cores)
    fits = used >= enough
    first = fits.argmax(axis=0)
    return np.asarray(np.take_along_axis(sizes, first[None, :], axis=0)[0], dtype=np.int64)
