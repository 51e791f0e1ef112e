"""The kernels of a pass that divide its rows (samples x tokens) among the cores, and what other rows would cost them.

Matrix products divide rows and columns into blocks, norms and the like give whole rows to a core, attention over a
cache gives a sequence and head to one. All others divide anywhere: their time per row hardly depends on the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pandas as pd

from advisor_core.api.facts import Chip, matching, per_text
from advisors.roofline.products import BASE_M, BASE_N, balance, best_balance, block_cost, tiles
from advisors.shape_affinity.attention import DECODES, decode_shapes
from advisors.shape_affinity.rows import DIVIDED_BY_ROWS, row_count
from advisors.step_kernels import VECTOR_CORES, StepKernels

if TYPE_CHECKING:
    import numpy.typing as npt

Ints: TypeAlias = "npt.NDArray[np.int64]"
Floats: TypeAlias = "npt.NDArray[np.float64]"
Bools: TypeAlias = "npt.NDArray[np.bool_]"


@dataclass(frozen=True)
class RowPart:
    """Kernels that divide ``rows`` among ``cores`` in the same way. ``kind``: product, norm or attention.

    ``columns``: N of a product. ``tasks``: of attention, blocks of a sequence; of a norm, its own rows for one row of
    the model (heads that are normalised apart). ``each``: rows of one sequence, in attention the new tokens.
    ``total_ns``: time per step; ``kernels``: per step; ``frame_rows``: all of them, in the frame of `StepKernels`.
    """

    operator: str
    kind: str
    rows: int
    cores: int
    columns: int
    tasks: int
    each: int
    total_ns: float
    kernels: float
    frame_rows: Ints

    @property
    def named(self) -> str:
        """The operator, with the columns of a product."""
        return f"{self.operator} (N {self.columns})" if self.kind == "product" else self.operator

    @property
    def step(self) -> int:
        """Rows after which these kernels fill a block or a round of cores once more."""
        if self.kind == "product":
            return BASE_M
        return self.each * self.cores // gcd(self.cores, self.tasks)

    def used(self, rows: Ints) -> Floats:
        """The part that so many rows use of what they pay for: of the cores' time, and of a product above its first
        block also of the rows of the blocks. Up to one block a product loads its weights once, for few rows as for
        many: that is not a number that suits badly."""
        if self.kind == "product":
            in_blocks = np.where(rows <= BASE_M, 1.0, rows / (np.ceil(rows / BASE_M) * BASE_M))
            return np.asarray(in_blocks * best_balance(rows, self._columns(rows), 1, self.cores), dtype=np.float64)
        return balance(self._tasks(rows), self.cores)

    def time_ns(self, rows: Ints) -> Floats:
        """The time of these kernels per step with so many rows: by rounds of cores, of a product also by the width of
        its blocks."""
        return self.total_ns * self._cost(rows) / self._cost(np.array([self.rows]))

    def _cost(self, rows: Ints) -> Floats:
        if self.kind == "product":
            return block_cost(rows, self._columns(rows), np.ones(len(rows)), self.cores)[1]
        return np.asarray(np.ceil(self._tasks(rows) / self.cores), dtype=np.float64)

    def _columns(self, rows: Ints) -> Ints:
        return np.full(len(rows), self.columns, dtype=np.int64)

    def _tasks(self, rows: Ints) -> Floats:
        return np.asarray(np.ceil(rows / self.each) * self.tasks, dtype=np.float64)


def row_parts(
    kernels: StepKernels, products: pd.DataFrame, device: Chip, *, product_ns: float, row_ns: float
) -> dict[int, list[RowPart]]:
    """The parts of each number of rows of the model: one that both products have and norms, or sequences and tokens of
    attention over a cache, so that it is neither that of a single expert nor that of a gradient.

    ``products``: as `matrix_products`. Left out are kernels shorter than ``product_ns`` and ``row_ns``, as start and
    end rule them, those that report more blocks than their sizes give, as they divide otherwise, and products whose
    left operand is not stored row by row: gradients of weights sum over the rows.
    """
    frame = kernels.frame
    own_products = _products(frame, products, device, product_ns)
    others = pd.concat([_norms(frame, device, row_ns), _attentions(frame, device, row_ns)])
    of_model = set(own_products["own"].tolist()) & set(others["own"].tolist())
    found = pd.concat([own_products, others]).sort_values("row", kind="stable", ignore_index=True)
    found = _with_rows(found, of_model, np.cumsum(kernels.begins)[found["row"].to_numpy(dtype=np.int64)])
    parts: dict[int, list[RowPart]] = {}
    for _, own in found[found["counted"].to_numpy(dtype=np.bool_)].groupby(_BY, sort=True):
        part = _row_part(own, kernels.steps)
        parts.setdefault(part.rows, []).append(part)
    return parts


def _row_part(own: pd.DataFrame, steps: int) -> RowPart:
    """Kernels that are alike in everything that they are told apart by."""
    first = own.iloc[0]
    return RowPart(
        operator=str(first["operator"]),
        kind=str(first["kind"]),
        rows=int(first["rows"]),
        cores=int(first["cores"]),
        columns=int(first["columns"]),
        tasks=int(first["tasks"]),
        each=int(first["each"]),
        total_ns=float(own["ns"].sum()) / steps,
        kernels=len(own) / steps,
        frame_rows=own["row"].to_numpy(dtype=np.int64),
    )


_BY = ["rows", "kind", "operator", "cores", "columns", "tasks", "each"]


def _products(frame: pd.DataFrame, products: pd.DataFrame, device: Chip, least_ns: float) -> pd.DataFrame:
    """Products of activations by weights."""
    mine = products[(products["left_axis"] == "k") & (products["batch"] == 1)].set_index("signature")
    place = np.flatnonzero(frame["signature"].isin(mine.index).to_numpy())
    sizes = mine.loc[frame["signature"].to_numpy()[place], ["m", "n"]].to_numpy(dtype=np.int64)
    m, n = sizes[:, 0], sizes[:, 1]
    return _part(frame, place, "product", m, tiles(m, n, min(BASE_N)), least_ns, cores=device.cube_cores, columns=n)


def _norms(frame: pd.DataFrame, device: Chip, least_ns: float) -> pd.DataFrame:
    """Kernels that give whole rows to a core."""
    place = np.flatnonzero(matching(frame["type"], DIVIDED_BY_ROWS))
    rows = per_text(frame["input_shapes"], row_count).to_numpy(dtype=np.int64)[place]
    return _part(frame, place, "norm", rows, rows, least_ns, cores=device.vector_cores)


def _attentions(frame: pd.DataFrame, device: Chip, least_ns: float) -> pd.DataFrame:
    """Attention over a cache whose layout tells its heads."""
    decodes = np.flatnonzero(matching(frame["type"], DECODES))
    shapes = decode_shapes(frame.iloc[decodes])
    told = np.array([shape is not None and shape.kv_heads > 0 for shape in shapes], dtype=np.bool_)
    numbers = [
        (shape.sequences, shape.tokens, shape.kv_heads * shape.folds) for shape in shapes if shape and shape.kv_heads
    ]
    sequences, tokens, tasks = np.array(numbers, dtype=np.int64).reshape(-1, 3).T
    place = decodes[told]
    cores = np.where(frame["core"].isin(VECTOR_CORES).to_numpy()[place], device.vector_cores, device.cube_cores)
    own, blocks = sequences * tokens, sequences * tasks
    return _part(frame, place, "attention", own, blocks, least_ns, cores=cores, tasks=tasks, each=tokens)


def _part(
    frame: pd.DataFrame,
    place: Ints,
    kind: str,
    own: Ints,
    blocks: npt.ArrayLike,
    least_ns: float,
    **about: npt.ArrayLike,
) -> pd.DataFrame:
    """A row per kernel at ``place``, with its ``own`` rows. ``blocks``: more than these and it divides otherwise."""
    ns = frame["duration_ns"].to_numpy(dtype=np.float64)[place]
    divides_so = ~(frame["block_dim"].to_numpy(dtype=np.float64)[place] > np.asarray(blocks))
    defaults = {"columns": 0, "tasks": 1, "each": 1}
    return pd.DataFrame(
        {
            "row": place,
            "kind": kind,
            "operator": frame["type"].astype(str).to_numpy()[place],
            "own": own,
            "ns": ns,
            "counted": (ns >= least_ns) & divides_so,
            **{name: np.broadcast_to(value, len(place)) for name, value in {**defaults, **about}.items()},
        }
    )


def _with_rows(found: pd.DataFrame, of_model: set[int], stretch: Ints) -> pd.DataFrame:
    """``found``, in order, with the ``rows`` of the model that each kernel works on: its own, or those of the last
    kernel of the same stream and step before it that has its own, which a norm divides among heads."""
    own = found["own"].to_numpy(dtype=np.int64)
    is_own = np.isin(own, list(of_model))
    before = pd.Series(np.where(is_own, own, np.nan)).groupby(stretch).ffill().fillna(0).to_numpy(dtype=np.int64)
    divides = (found["kind"] == "norm").to_numpy() & (before > 0) & (own % np.maximum(before, 1) == 0) & (own > 0)
    rows = np.where(is_own, own, np.where(divides, before, 0))
    tasks = np.where(divides & ~is_own, own // np.maximum(before, 1), found["tasks"].to_numpy(dtype=np.int64))
    return found.assign(rows=rows, tasks=tasks)[rows > 0]
