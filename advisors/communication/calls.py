"""The collective calls of the profiled steps, and what shows them as evidence."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np
import pandas as pd

from advisor_core.api import Scalar
from advisor_core.api.advisors import Column, Metric, Reference, Rows
from advisor_core.api.facts import (
    COLLECTIVES,
    KERNELS,
    POINT_TO_POINT,
    Facts,
    Merging,
    Unavailable,
    collective_calls,
    operation_names,
    row_refs,
)
from advisors.columns import LEAF, OPERATION, SHARE_OF_STEP, TIME
from advisors.measuring import records, share
from advisors.messages import message

_DIVIDED_OR_SUMMED = re.compile(r"all_?reduce|reduce_?scatter|all_?gather", re.I)
_SUMMED = re.compile(r"all_?reduce|reduce_?scatter", re.I)
_ALL_TO_ALL = re.compile(r"all_?to_?all", re.I)


def divides_or_sums(operations: pd.Series) -> pd.Series:
    """Mask of AllReduce, ReduceScatter and AllGather, which data, tensor and sequence parallelism use."""
    return operations.str.contains(_DIVIDED_OR_SUMMED.pattern, case=False, regex=True)


def reduces(operations: pd.Series) -> pd.Series:
    """Mask of the operations that are an AllReduce or ReduceScatter: what gradients are reduced with."""
    return operations.str.contains(_SUMMED.pattern, case=False, regex=True)


def all_to_all(operations: pd.Series) -> pd.Series:
    """Mask of the all-to-all operations, with equal or different sizes, which bring tokens to experts."""
    return operations.str.contains(_ALL_TO_ALL.pattern, case=False, regex=True)


def point_to_point(operations: pd.Series) -> pd.Series:
    """Mask of the operations that send to or receive from single ranks."""
    return operations.str.contains(POINT_TO_POINT.pattern, case=False, regex=True)


def calls_in_steps(facts: Facts) -> pd.DataFrame:
    """The collective calls that belong to a step."""
    calls: pd.DataFrame = facts[collective_calls]
    inside = calls["step"].to_numpy() >= 0
    return calls.copy(deep=False) if inside.all() else calls[inside].reset_index(drop=True)


def moving_calls(facts: Facts) -> pd.DataFrame:
    """The collective calls of the steps whose tasks tell moving data from waiting, with that time as ``active_ns``.
    Raises `Unavailable` where the size of none is recorded."""
    calls = calls_in_steps(facts)
    calls = calls[calls["moving_ns"] >= 0].reset_index(drop=True)
    if not (calls["bytes"] >= 0).any():
        raise Unavailable(message("communication.no_sizes"), message("communication.no_sizes.collect"), ("level1",))
    return calls.assign(active_ns=calls["moving_ns"].astype(np.float64))


def shared_out(total_ns: float, by: pd.Series) -> pd.Series:
    """``total_ns`` in parts that are to each other as ``by``; nothing where that is nowhere above 0."""
    parts = by.clip(lower=0).astype("float64")
    return parts * (total_ns / parts.sum() if parts.sum() > 0 else 0.0)


def shorter(calls: pd.DataFrame, less_ns: pd.Series) -> Merging:
    """The cure that makes each of the calls shorter by ``less_ns``, at most by all that it takes."""
    took = calls["elapse_ns"].to_numpy(dtype=np.float64)
    after = took - less_ns.to_numpy(dtype=np.float64).clip(0, took)
    return Merging.none(calls["work"].to_numpy(dtype=np.int64), took, after)


def call_rows(facts: Facts, calls: pd.DataFrame, limit: int = 10) -> list[Reference]:
    """The calls as rows of kernel_details.csv and of communication.json, as far as these were read."""
    chosen = calls.head(limit)
    references: list[Reference] = []
    for where in row_refs(chosen):
        if where.table is KERNELS:
            columns = ("name", "start_ns", "duration_ns")
            references.append(Rows(message("communication.largest"), KERNELS, where.rows, columns))
    exported = facts.get(COLLECTIVES)
    if exported is not None and len(exported) and len(chosen):
        asked = {name: number for number, name in enumerate(dict.fromkeys(chosen["name"].tolist()))}
        place = np.array([asked.get(name, len(asked)) for name in operation_names(exported["name"]).tolist()])
        rows = np.argsort(place, kind="stable")[: np.count_nonzero(place < len(asked))]
        if any(exported[name].take(rows).notna().any() for name in ("transit_ns", "wait_ns", "idle_ns")):
            shown = ("name", "elapse_ns", "transit_ns", "wait_ns", "idle_ns")
            references.append(Rows(message("communication.exporter_collectives"), COLLECTIVES, rows, shown))
    return references


ONE_CALL = (
    Column("name", "text", "", "operation, as the exporter names it", zh="名称"),
    Column("step_number", "int", "", "which of the profiled steps, from 0", zh="step 编号"),
)
"""The columns that say which call a row is about."""

ELAPSE = Column("elapse", "int", "ns", "from its begin to its end", zh="总时长")
CALL = (
    OPERATION,
    ELAPSE,
    Column("uncovered", "int", "ns", "part of it that no computing covers", zh="未掩盖"),
    Column("transmit", "int", "ns", "uncovered, moving data", zh="传输"),
    Column("wait", "int", "ns", "uncovered, waiting for other ranks", zh="等待"),
    Column("launch_gaps", "int", "ns", "uncovered, begun and doing nothing", zh="内部空隙"),
    Column("waits_for_rank", "int", "", "the rank that it waits for, where that is known", zh="等待的 rank"),
    Column("source", "text", "", "what told who waits: planes, arrivals or pair; '' unknown", zh="来源"),
)
"""The columns of a collective that `call_metric` shows."""

LEAVES = (LEAF, TIME, SHARE_OF_STEP)
"""The columns that `leaf_metric` shows."""


def call_metric(calls: pd.DataFrame, limit: int = 10) -> Metric:
    """Evidence: the times of the first ``limit`` calls, and the rank that each waits for."""
    rows = records(
        calls,
        limit,
        operation="name",
        elapse="elapse_ns",
        uncovered="uncovered_ns",
        transmit="transmit_ns",
        wait="wait_ns",
        launch_gaps="launch_gap_ns",
        waits_for_rank="waits_for",
        source="source",
    )
    return Metric(message("communication.per_call"), [row | _untold(row) for row in rows])


def _untold(call: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """What is not known of a call that `call_metric` shows."""
    nobody = ("waits_for_rank",) if call["waits_for_rank"] == -1 else ()
    times = () if call["source"] else ("transmit", "wait", "launch_gaps")
    return dict.fromkeys((*nobody, *times))


def leaf_metric(per_leaf: pd.Series, wall: float) -> Metric:
    """Evidence: the ledger entries of communication, largest first, with their share of the step."""
    causes = per_leaf[per_leaf.index.str.startswith("communication/")].sort_values(ascending=False)
    rows: list[dict[str, Scalar]] = [
        {"leaf": str(path), "time": ns, "share_of_step": share(ns, wall)} for path, ns in causes.items()
    ]
    return Metric(message("communication.where"), rows)
