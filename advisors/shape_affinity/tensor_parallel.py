"""SA010: products that are divided between ranks, at other tensor-parallel sizes."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pandas as pd

from advisor_core.api.advisors import Column, Metric, Observations, Params, Reference, advisor
from advisor_core.api.facts import HOST_EVENTS, Facts, NotApplicable, chip, collective_calls, launches
from advisors.columns import KERNELS_PER_STEP, OPERATOR_TYPE, PER_STEP_NS, shares
from advisors.communication.calls import calls_in_steps, reduces
from advisors.fusion.nodes import kernel_nodes
from advisors.layers.collectives import ended_before
from advisors.messages import message
from advisors.roofline.products import TILED, best_balance, block_cost, matrix_products
from advisors.shape_affinity.tails import loads_badly
from advisors.step_kernels import PIPE_COLUMNS, StepKernels, call_stack, kernel_rows, records, step_kernels

if TYPE_CHECKING:
    import numpy.typing as npt

Ints: TypeAlias = "npt.NDArray[np.int64]"
Bools: TypeAlias = "npt.NDArray[np.bool_]"

FACTORS = tuple(Fraction(1, 8) * 2**power for power in range(7))
"""Sizes that are looked at, over today's: an eighth to eight times."""

BEHIND = 0.5
"""A product whose calls a reduction follows at least this often is divided along the sum: others are followed by one by
chance. Our choice."""


@dataclass(frozen=True)
class Divided:
    """Products of the forward pass that are divided between ranks, rows of `matrix_products` with ``axis``: k, along
    the sum, as a reduction of the results follows them; or n, along the columns, and whether that is ``guessed``.
    ``ranks``: of the group that reduces, 0 unknown."""

    products: pd.DataFrame
    ranks: int


@advisor(
    "shape_affinity.tensor_parallel",
    needs=(step_kernels, matrix_products, chip, collective_calls, kernel_nodes),
    wants=(launches, HOST_EVENTS),
    columns=(
        Column("ranks", "int", "count", "ranks of the group that reduces the results", nullable=True, zh="rank 数"),
        Column("good_ranks", "int", "count", "the size that suits these products", nullable=True, zh="合适的 TP 大小"),
        Column("good_factor", "float", "ratio", "the size that suits these products, over today's", zh="与当前之比"),
        Column(
            "divided_axes", "text", "", "axes that are divided, as a reduction follows the product", zh="已切分的轴"
        ),
        Column("guessed", "text", "", "axes taken to be divided, as they lie before such a product", zh="推测切分的轴"),
        Column("bad", "text", "", "those of them that load badly today", zh="不亲和的轴"),
        Column("sizes", "text", "", "sizes over today's: what the products take on all ranks", zh="各大小的代价"),
        KERNELS_PER_STEP,
        Column("total_ns", "float", "ns", "time of these products per step", zh="合计"),
        Column("efficiency", "float", "ratio", "part of the cores' time that they use, by time", zh="效率"),
        Column("good_efficiency", "float", "ratio", "the same at the size that suits them", zh="调整后利用率"),
        Column(
            "gain_ns",
            "float",
            "ns",
            "what the products take less per step, for the same work per rank: rounds of blocks, and the assumed gain "
            "of axes that load well",
            zh="收益",
        ),
        *shares("gain_ns"),
    ),
    params=("assumed_gain", "close"),
    evidence=(
        OPERATOR_TYPE,
        Column("m", "int", "count", "rows of the result", zh="M"),
        Column("n", "int", "count", "columns of the result", zh="N"),
        Column("k", "int", "count", "length of the sum", zh="K"),
        Column("axis", "text", "", "axis that is divided between ranks", zh="轴"),
        Column("is_guess", "bool", "", "no reduction says so: taken from the place before such a product", zh="推测"),
        PER_STEP_NS,
    ),
)
def tensor_parallel(facts: Facts, params: Params) -> Observations:
    """Products of the forward pass that are divided between ranks, and the tensor-parallel size that suits them."""
    kernels = facts[step_kernels]
    found = divided(facts)
    table, cores = found.products, facts[chip].cube_cores
    total_ns = float(table["total_ns"].sum())
    costs = {
        factor: _cost(table, factor, cores, params["assumed_gain"]) / total_ns
        for factor in FACTORS
        if _possible(table, factor, found.ranks)
    }
    least = min(costs.values())
    close = [factor for factor, cost in costs.items() if cost <= least * (1 + params["close"])]
    good = min(close, key=lambda factor: abs(np.log2(float(factor))))
    sure, guessed = (table[table["is_guess"] == is_guess] for is_guess in (False, True))
    bad = table[_bad(table, Fraction(1))]
    row = {
        "ranks": found.ranks or None,
        "good_ranks": int(found.ranks * good) or None,
        "good_factor": float(good),
        "divided_axes": _axes(sure),
        "guessed": _axes(guessed),
        "bad": _axes(bad),
        "sizes": ", ".join(f"{factor}: {cost - 1:+.1%}" for factor, cost in costs.items() if factor != 1),
        "kernels": float(table["kernels"].sum()),
        "total_ns": total_ns,
        "efficiency": _efficiency(table, Fraction(1), cores),
        "good_efficiency": _efficiency(table, good, cores),
        "gain_ns": max(1 - costs[good], 0.0) * total_ns,
    }
    frame = pd.DataFrame([row])
    frame = frame.assign(**kernels.shares(frame["gain_ns"]))

    def evidence(_: int) -> list[Reference]:
        listed = table.assign(per_step_ns=table["total_ns"])
        rows = kernels.frame[kernels.frame["signature"].isin(table["signature"])]
        names = ["operator", "m", "n", "k", "axis", "is_guess", "kernels", "per_step_ns"]
        return [
            Metric(message("tensor_parallel.products"), records(listed[names])),
            kernel_rows(message("shape_affinity.product_rows"), rows, PIPE_COLUMNS),
            *call_stack(facts, rows),
        ]

    return Observations(frame, evidence)


def divided(facts: Facts) -> Divided:
    """The products of the forward pass that tensor parallelism divides. Raises `NotApplicable` where no reduction
    follows a product.

    Nothing recorded says how a weight is divided. But a product that is divided along the sum gives partial results,
    which the ranks must sum next: a reduction that begins when it has ended. In the forward pass nothing else is
    reduced. What it sums over, the product before it has as columns.
    """
    kernels, products = facts[step_kernels], facts[matrix_products].set_index("signature")
    calls = calls_in_steps(facts)
    calls = calls[reduces(calls["operation"]).to_numpy(dtype=np.bool_)]
    signature = kernels.frame["signature"].to_numpy(dtype=np.int64)
    # Gradients of weights, whose left operand is stored with the rows last, are in the other pass.
    by_rows = products["left_axis"].isin(["k", ""]) & (products["batch"] == 1)
    forward = np.isin(signature, products.index[by_rows])
    forward &= ~facts[kernel_nodes].backward
    before = ended_before(kernels, calls["start_ns"].to_numpy(dtype=np.int64))
    reduced = before[before >= 0]
    reduced = np.unique(reduced[forward[reduced]])
    counts = np.bincount(signature[forward], minlength=int(signature.max()) + 1)
    followed = np.bincount(signature[reduced], minlength=len(counts))
    along_k = np.flatnonzero((followed > 0) & (followed >= BEHIND * counts))
    if not len(along_k):
        raise NotApplicable(message("tensor_parallel.none"))
    along_n = _columns(kernels, products, signature, forward, along_k, facts[kernel_nodes].backward)
    members = calls["members"].to_numpy(dtype=np.int64)[np.isin(before, reduced)]
    return Divided(
        pd.concat(
            [
                products.loc[along_k].assign(axis="k", is_guess=False),
                products.loc[list(along_n)].assign(axis="n", is_guess=list(along_n.values())),
            ]
        ).reset_index(),
        int(np.median(members)) if len(members) and (members > 1).all() else 0,
    )


def _columns(
    kernels: StepKernels, products: pd.DataFrame, signature: Ints, forward: Bools, along_k: Ints, backward: Bools
) -> dict[int, bool]:
    """The products that are divided along their columns, by signature, and whether that is a guess.

    They stand in the same forward pass before a product that is divided along the sum, behind the one before that, sum
    over what it gives (the hidden size), and have as many columns as it sums over, or more. Several times as many
    (queries, keys and values; gate and up) are no guess.
    """
    rows = np.flatnonzero(forward)
    own = signature[rows]
    ends = np.flatnonzero(np.isin(own, along_k))
    if not len(ends):
        return {}
    following = ends[np.minimum(np.searchsorted(ends, np.arange(len(rows))), len(ends) - 1)]
    stretch = np.cumsum(kernels.begins | backward)[rows]
    n, k, m = (products[name].reindex(own).to_numpy(dtype=np.int64) for name in ("n", "k", "m"))
    fits = (following > np.arange(len(rows))) & (stretch == stretch[following]) & ~np.isin(own, along_k)
    fits &= (k == n[following]) & (m == m[following]) & (n >= k[following])
    exact = fits & (n % k[following] == 0)
    known = set(own[exact].tolist())
    return {one: one not in known for one in np.unique(own[fits]).tolist()}


def _divided_axis(table: pd.DataFrame, factor: Fraction) -> Ints:
    """The length of the divided axis at another size, at least 1."""
    axis = np.where(table["axis"] == "k", table["k"], table["n"]).astype(np.int64)
    return np.maximum(axis * factor.denominator // factor.numerator, 1)


def _possible(table: pd.DataFrame, factor: Fraction, ranks: int) -> bool:
    """Whether the axes can be divided so, and the size is a whole number of ranks, where it is known."""
    axis = np.where(table["axis"] == "k", table["k"], table["n"]).astype(np.int64)
    divides = bool((axis * factor.denominator % factor.numerator == 0).all())
    return divides and (not ranks or (ranks * factor.numerator) % factor.denominator == 0)


def _bad(table: pd.DataFrame, factor: Fraction) -> Bools:
    """Whether the divided axis is the last one of an operand and loads badly at a size."""
    length, size = _divided_axis(table, factor), table["element_bytes"].to_numpy(dtype=np.int64)
    axis = table["axis"].to_numpy()
    is_tail = (table["left_axis"].to_numpy() == axis) & (table["left_format"].to_numpy() != TILED)
    is_tail |= (table["right_axis"].to_numpy() == axis) & (table["right_format"].to_numpy() != TILED)
    return np.asarray(is_tail & (size > 0) & loads_badly(length * size), dtype=np.bool_)


def _sizes_at(table: pd.DataFrame, factor: Fraction) -> tuple[Ints, Ints, Ints]:
    """M, N and K of the products of a rank at a size."""
    length, is_k = _divided_axis(table, factor), (table["axis"] == "k").to_numpy()
    m, n, k = (table[name].to_numpy(dtype=np.int64) for name in ("m", "n", "k"))
    return m, np.where(is_k, n, length), np.where(is_k, length, k)


def _cost(table: pd.DataFrame, factor: Fraction, cores: int, gain: float) -> float:
    """ns per step of today's work of a rank at another size: by rounds of blocks, length of the sum, and whether the
    divided axis loads well."""
    ones = np.ones(len(table))
    (m, n, k), (_, n_now, k_now) = _sizes_at(table, factor), _sizes_at(table, Fraction(1))
    rounds = block_cost(m, n, ones, cores)[1] / block_cost(m, n_now, ones, cores)[1]
    loads = (1 - gain) ** (_bad(table, Fraction(1)).astype(np.int64) - _bad(table, factor).astype(np.int64))
    took = table["total_ns"].to_numpy(dtype=np.float64)
    return float((took * rounds * k / k_now * loads).sum()) * float(factor)


def _efficiency(table: pd.DataFrame, factor: Fraction, cores: int) -> float:
    m, n, _ = _sizes_at(table, factor)
    return float(np.average(best_balance(m, n, 1, cores), weights=table["total_ns"]))


def _axes(table: pd.DataFrame) -> str:
    """Axes with their lengths, such as ``K 1536, N 4608``; '' where there is none."""
    lengths = _divided_axis(table, Fraction(1)).tolist()
    named = [f"{axis.upper()} {length}" for axis, length in zip(table["axis"].tolist(), lengths, strict=True)]
    return ", ".join(dict.fromkeys(named))
