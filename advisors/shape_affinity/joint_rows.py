"""SA009: one number of rows (samples x tokens) for all kernels of a pass that want different ones."""

from __future__ import annotations

from collections.abc import Sequence
from math import lcm
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pandas as pd

from advisor_core.api.advisors import Column, Metric, Observations, Params, Reference, advisor
from advisor_core.api.facts import (
    HOST_EVENTS,
    MEMORY_RECORD,
    MODULE_MEMORY,
    Facts,
    NotApplicable,
    chip,
    launches,
    matching,
    memory_capacity,
    memory_steps,
    shapes_of,
)
from advisors.columns import KERNELS_PER_STEP, OPERATOR_TYPE, PER_STEP_NS, shares
from advisors.memory.capacity import used_of_capacity
from advisors.messages import message
from advisors.roofline.products import matrix_products
from advisors.shape_affinity.row_parts import RowPart, row_parts
from advisors.shape_affinity.rows import DIVIDED_BY_ROWS
from advisors.step_kernels import PIPE_COLUMNS, StepKernels, call_stack, kernel_rows, records, step_kernels

if TYPE_CHECKING:
    import numpy.typing as npt

Ints: TypeAlias = "npt.NDArray[np.int64]"

SHOWN = 4
"""So many of the kernels that want other sizes are named, those that take longest first."""

_USED = Column("efficiency", "float", "ratio", "part of the cores' time that they use, by time", zh="效率")
_PROPOSED = Column("proposed", "int", "count", "the next rows that suit this kernel alone; 0: none near", zh="单独建议")


@advisor(
    "shape_affinity.joint_rows",
    needs=(step_kernels, matrix_products, chip),
    wants=(memory_steps, memory_capacity, MEMORY_RECORD, MODULE_MEMORY, launches, HOST_EVENTS),
    about=(
        Column("rows", "int", "count", "rows of a pass: samples x tokens, in decode sequences x tokens", zh="行数"),
    ),
    columns=(
        Column("good_rows", "int", "count", "rows that suit these kernels together", zh="合适的行数"),
        Column(
            "multiple", "int", "count", "rows of one sample or sequence: what the rows are a multiple of", zh="倍数"
        ),
        Column("proposals", "text", "", "what suits each of the kernels alone, those with most time", zh="各自建议"),
        Column("differ", "bool", "", "what suits one of them alone is not what suits all", zh="不一致"),
        KERNELS_PER_STEP,
        Column("total_ns", "float", "ns", "time per step of the kernels that divide these rows", zh="合计"),
        _USED,
        Column(
            "good_efficiency", "float", "ratio", "the same with the rows that suit them together", zh="调整后利用率"
        ),
        Column(
            "fitting_rows",
            "int",
            "count",
            "rows for which the memory suffices if all that a step adds to it grows with them; 0: not known",
            zh="显存可容纳行数",
        ),
        Column(
            "gain_ns",
            "float",
            "ns",
            "time of cores that are idle today and would not be: by how much more of the time is used",
            zh="收益",
        ),
        *shares("gain_ns"),
    ),
    params=("low", "enough", "close", "most_growth", "product_duration", "row_duration", "capacity"),
    evidence=(OPERATOR_TYPE, _PROPOSED, PER_STEP_NS),
)
def joint_rows(facts: Facts, params: Params) -> Observations:
    """The rows of a pass against all kernels that divide them among cores, and the number that suits these together."""
    kernels = facts[step_kernels]
    found = row_parts(
        kernels,
        facts[matrix_products],
        facts[chip],
        product_ns=params["product_duration"],
        row_ns=params["row_duration"],
    )
    if not found:
        raise NotApplicable(message("joint_rows.none"))
    fitting = _fitting_rows(facts, params, max(found))
    multiples = _rows_of_a_sample(kernels, found)
    observed = [_observed(parts, multiples[rows], fitting, params) for rows, parts in found.items()]
    table = pd.DataFrame(observed).sort_values("gain_ns", ascending=False, kind="stable", ignore_index=True)
    table = table.assign(**kernels.shares(table["gain_ns"]))

    def evidence(row: int) -> list[Reference]:
        parts = found[int(table["rows"][row])]
        wanted = [_proposed(part, int(table["multiple"][row]), params) for part in parts]
        listed = pd.DataFrame(
            {
                "operator": [part.named for part in parts],
                "efficiency": [float(part.used(np.array([part.rows]))[0]) for part in parts],
                "proposed": wanted,
                "kernels": [part.kernels for part in parts],
                "per_step_ns": [part.total_ns for part in parts],
            }
        ).sort_values("per_step_ns", ascending=False, kind="stable")
        rows = kernels.frame.iloc[np.concatenate([part.frame_rows for part in parts])]
        return [
            Metric(message("joint_rows.parts"), records(listed)),
            kernel_rows(message("joint_rows.rows"), rows, PIPE_COLUMNS),
            *call_stack(facts, rows),
        ]

    return Observations(table, evidence)


def _observed(parts: Sequence[RowPart], multiple: int, fitting: float, params: Params) -> dict[str, object]:
    """The observation of the kernels that divide the same number of rows."""
    rows = parts[0].rows
    wanted = [_proposed(part, multiple, params) for part in parts]
    sizes = {size for size in wanted if size}
    good = _joint(parts, multiple, max(sizes), fitting, params) if len(sizes) > 1 else rows
    total_ns = sum(part.total_ns for part in parts)
    used = np.array([part.used(np.array([rows, good])) for part in parts])
    now, then = np.average(used, axis=0, weights=[part.total_ns for part in parts]).tolist()
    return {
        "rows": rows,
        "good_rows": good,
        "multiple": multiple,
        "proposals": _named(parts, wanted),
        "differ": good != rows and bool(sizes - {rows, good}),
        "kernels": sum(part.kernels for part in parts),
        "total_ns": total_ns,
        "efficiency": now,
        "good_efficiency": then,
        "fitting_rows": int(fitting) if np.isfinite(fitting) else 0,
        "gain_ns": max(then - now, 0.0) * total_ns,
    }


def _named(parts: Sequence[RowPart], wanted: Sequence[int]) -> str:
    """The number that suits each of the kernels alone, as ``RmsNorm: 80``: first those that want other rows than
    today's, the longest first."""
    named: dict[str, int] = {}
    pairs = zip(parts, wanted, strict=True)
    for part, size in sorted(pairs, key=lambda pair: (pair[0].rows == pair[1], -pair[0].total_ns)):
        if size:
            named.setdefault(part.named, size)
    return ", ".join(f"{name}: {size}" for name, size in list(named.items())[:SHOWN])


def _proposed(part: RowPart, multiple: int, params: Params) -> int:
    """Today's rows, where a kernel does not use little of what it pays for; else the next larger number with which it
    uses enough, 0 where none is found before the rows have grown too far."""
    if part.used(np.array([part.rows]))[0] >= params["low"]:
        return part.rows
    most = int(part.rows * params["most_growth"])
    sizes = _sizes(part.step, part.rows + 1, most, multiple)
    enough = part.used(sizes) >= params["enough"]
    return int(sizes[enough.argmax()]) if enough.any() else 0


def _sizes(step: int, first: int, last: int, multiple: int) -> Ints:
    """Of the multiples of ``multiple`` in a range those next below the multiples of ``step``."""
    filled = np.arange(step, last + step, step, dtype=np.int64) // multiple * multiple
    return np.unique(filled[(filled >= first) & (filled <= last)])


def _joint(parts: Sequence[RowPart], multiple: int, most: int, fitting: float, params: Params) -> int:
    """Of the rows that cost least per row, or hardly more, those nearest to today's.

    Looked at are, up to the largest number that suits one kernel alone, those that fill the blocks or rounds of one of
    them, and for which the memory suffices. Fewer than half of today's are another job.
    """
    rows = parts[0].rows
    filled = [_sizes(step, -(-rows // 2), most, multiple) for step in sorted({part.step for part in parts})]
    sizes = np.unique(np.concatenate([*filled, np.array([rows])]))
    sizes = sizes[(sizes <= rows) | ~(sizes > fitting)]
    cost = _time_per_row(parts, sizes)
    close = sizes[cost <= cost.min() * (1 + params["close"])]
    return int(close[np.abs(close - rows).argmin()])


def _time_per_row(parts: Sequence[RowPart], sizes: Ints) -> npt.NDArray[np.float64]:
    return np.asarray(sum(part.time_ns(sizes) for part in parts) / sizes, dtype=np.float64)


def _fitting_rows(facts: Facts, params: Params, rows: int) -> float:
    """The rows for which the memory suffices, if all that a step adds to what is allocated when it begins grows with
    them. ``rows``: the most of a pass today. NaN where memory or steps were not recorded."""
    recorded = facts.get(memory_steps)
    used = used_of_capacity(facts, params)
    if recorded is None or recorded.empty:
        return float("nan")
    added = float((recorded["peak_bytes"] - recorded["trough_bytes"]).max())
    free = float(used["capacity_bytes"]) - float(used["used_bytes"])
    return rows * (1 + max(free, 0.0) / added) if added > 0 and np.isfinite(free) else float("nan")


def _rows_of_a_sample(kernels: StepKernels, found: dict[int, list[RowPart]]) -> dict[int, int]:
    """By rows of a pass, what they are a multiple of: the new tokens of a sequence, where attention over a cache tells
    them; else the longer of the two axes of activations with three, which is the length of a sample."""
    frame = kernels.frame
    texts = frame.loc[matching(frame["type"], DIVIDED_BY_ROWS), "input_shapes"].unique()
    axes: dict[int, int] = {}
    for text in texts:
        first = next(iter(shapes_of(str(text))), ())
        if len(first) == 3:
            axes[first[0] * first[1]] = max(first[:2])
    tokens = {rows: [part.each for part in parts if part.kind == "attention"] for rows, parts in found.items()}
    return {rows: lcm(*tokens[rows]) if tokens[rows] else axes.get(rows, 1) for rows in found}
