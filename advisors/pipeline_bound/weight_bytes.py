"""Products of decoding that wait for weights of 16 bits, as a table, and what weights of 8 bits would save at most.

It is no finding: a job whose weights have 16 bits lacks nothing, and quantised weights change its results.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from advisor_core.api.advisors import Drawing, drawing
from advisor_core.api.facts import PROFILE, Facts, narrowed, parts
from advisor_core.api.renderers import Cell, View, format_quantity
from advisors.measuring import share
from advisors.messages import message
from advisors.rank_tables import known, rank_table
from advisors.roofline.bounds import Roofline, roofline
from advisors.roofline.products import matrix_products
from advisors.step_kernels import StepKernels, step_kernels

Bools = npt.NDArray[np.bool_]

DECODES = ("decode", "mixed")
"""Parts of a recording that compute next tokens; `mixed` passes have new sequences beside them."""

SIXTEEN_BITS = 2
"""Bytes of an element of the weights that are looked at."""

WORTH_A_LOOK = 0.01
"""Of the step: what is saved at most, below which there is no table. Our choice."""

SHOWN = 12
"""Rows of the table, those with most time; the title says of how many."""

_COLUMNS = (
    ("counters.column.operator", ""),
    ("pipeline_bound.weight_rows", ""),
    ("pipeline_bound.weight_shape", ""),
    ("pipeline_bound.stream_kernels", ""),
    ("counters.column.total", "ns"),
    ("pipeline_bound.weight_bytes", "B"),
    ("pipeline_bound.weight_reached", "ratio"),
    ("pipeline_bound.weight_saved", "ns"),
)


@dataclass(frozen=True)
class WaitedWeights:
    """``weights``: the products, by signature. ``rows``: their kernels, with ``read``, the bytes of the weight,
    ``needs``, what all bytes take at the bandwidth of the memory, and ``saved``, in which half of the weight is read,
    ns."""

    weights: pd.DataFrame
    rows: pd.DataFrame


def waited_weights(own: StepKernels, table: pd.DataFrame, bounds: Roofline, spans: pd.DataFrame) -> WaitedWeights:
    """Products in passes that compute next tokens, bound by their bytes, most of which are a weight of 16 bits.

    A recording does not tell a weight from an activation: an operand with a batch of its own is left out, since weights
    have none, and so is one that is not the larger. ``table``: the fact ``matrix_products``; ``spans``: the fact
    ``parts``.
    """
    weights = table[
        (table["batch"] == 1)
        & (table["element_bytes"] == SIXTEEN_BITS)
        & (table["right_bytes"] == SIXTEEN_BITS * table["n"] * table["k"])
        & (table["right_bytes"] > table["left_bytes"])
    ].set_index("signature")
    signature = own.frame["signature"].to_numpy()
    chosen = _decoding(own, spans) & bounds.moves & np.isin(signature, weights.index.to_numpy())
    rows = narrowed(own.frame, ("signature", "duration_ns", "bytes"))[chosen]
    read = weights["right_bytes"].reindex(rows["signature"]).to_numpy(dtype=np.float64)
    moved = np.maximum(rows["bytes"].to_numpy(dtype=np.float64), read)
    saved = rows["duration_ns"].to_numpy() * read / 2 / moved
    rows = rows.assign(read=read, needs=bounds.memory_ns[chosen], saved=saved)
    return WaitedWeights(weights[weights.index.isin(rows["signature"])], rows)


def _decoding(own: StepKernels, spans: pd.DataFrame) -> Bools:
    """Mask of the kernels in a part that computes next tokens."""
    starts = own.frame["start_ns"].to_numpy()
    at = np.searchsorted(spans["start_ns"].to_numpy(), starts, side="right") - 1
    inside = (at >= 0) & (starts < spans["end_ns"].to_numpy()[np.maximum(at, 0)])
    return np.asarray(inside & spans["part"].isin(DECODES).to_numpy()[np.maximum(at, 0)], dtype=np.bool_)


@drawing("pipeline_bound.weights", needs=(step_kernels, matrix_products, roofline, parts, PROFILE))
def weight_table(facts: Facts) -> list[View]:
    """Products of decoding by their weights of 16 bits, and what 8 bits would save at most."""
    own, rank = facts[step_kernels], facts[PROFILE].rank
    found = waited_weights(own, facts[matrix_products], facts[roofline], facts[parts])
    saved = float(found.rows["saved"].sum()) / own.steps
    if saved < WORTH_A_LOOK * own.wall_ns:
        return []
    sums = found.rows.assign(kernels=1).groupby("signature").sum()
    sums = sums.join(found.weights[["operator", "m", "right_shape"]])
    sums = sums.sort_values("duration_ns", ascending=False, kind="stable")
    shown = sums.head(SHOWN)
    counts, took, read, needs, less = (
        (shown[name].to_numpy(dtype=np.float64) / own.steps).tolist()
        for name in ("kernels", "duration_ns", "read", "needs", "saved")
    )
    rows: list[list[Cell]] = [
        [operator, m, shape, n, ns, size, known(round(share(least, ns), 4)), x]
        for operator, m, shape, n, ns, size, least, x in zip(
            shown["operator"].astype(str).tolist(),
            shown["m"].astype(int).tolist(),
            shown["right_shape"].astype(str).tolist(),
            counts,
            took,
            read,
            needs,
            less,
            strict=True,
        )
    ]
    title = message(
        "pipeline_bound.view.weights",
        rank=rank,
        shown=len(rows),
        count=len(sums),
        saved=format_quantity(saved, "ns"),
        share=f"{100 * saved / own.wall_ns:.0f} %",
    )
    return [rank_table("weights", title, rank, _COLUMNS, rows)]


DRAWINGS: tuple[Drawing, ...] = (weight_table,)
