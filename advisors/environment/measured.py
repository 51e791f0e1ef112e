"""The needs of the recorded steps that environment variables are about, as far as a recording tells them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from advisor_core.api.facts import (
    COLLECTIVE_BANDWIDTH,
    HOST_EVENTS,
    KERNELS,
    MEMORY_RECORD,
    PROFILE,
    Facts,
    collective_calls,
    collective_state,
    launches,
    ledger,
    matching,
    parts,
    steps,
)
from advisors.measuring import leaves, share, step_ns, under
from advisors.shape_changes import computing, parts_of, varying_share
from advisors.step_kernels import StepKernels, step_kernels
from advisors.task_queue import seen_task_queue
from advisors.transfers import message_bytes

NEEDS = (PROFILE, steps)
WANTS = (
    *(KERNELS, HOST_EVENTS, MEMORY_RECORD, COLLECTIVE_BANDWIDTH),
    *(collective_calls, collective_state, launches, ledger, parts, step_kernels),
)


@dataclass(frozen=True)
class Measured:
    """Of the recorded steps; ``None`` is not known.

    ``signatures``: kernels that differ in type, shapes, data types or formats. ``varying_share``: of the kernels that
    compute, those whose type and shapes are not in every step; of one step it is not known. ``collectives``: how many.
    ``largest_bytes``: data of the largest of them, of any rank. ``rdma_bytes``: sent over RDMA by this rank, per step.
    ``uncovered_share``: of the step, data that move while nothing computes. ``memory_calls``: calls that allocate, map
    or free device memory, per step, and ``memory_ns``: idle time behind them. ``host_share``: of the step, idle because
    of the host. ``task_queue``: as of `seen_task_queue`.
    """

    signatures: int | None
    varying_share: float | None
    collectives: int | None
    largest_bytes: float | None
    rdma_bytes: float | None
    uncovered_share: float | None
    memory_calls: float | None
    memory_ns: float | None
    host_share: float | None
    task_queue: str


def measured(facts: Facts) -> Measured:
    """The needs of the recorded steps."""
    count, events = len(facts[steps]), facts.get(HOST_EVENTS)
    per_leaf = leaves(facts) if ledger in facts else None
    calls = facts.get(collective_calls)
    missing = facts.missing(collective_calls)
    has_none = missing is not None and missing.kind == "not_applicable"
    sizes = pd.Series(dtype="float64") if calls is None else message_bytes(calls[calls["step"] >= 0]).dropna()
    memory_calls = _memory_calls(facts, events)
    return Measured(
        signatures=_signatures(facts.get(step_kernels)),
        varying_share=_varying_share(facts, count),
        collectives=0 if has_none else None if calls is None else int((calls["step"] >= 0).sum()),
        largest_bytes=float(sizes.max()) if len(sizes) else None,
        rdma_bytes=_rdma_bytes(facts, has_none, count),
        uncovered_share=_share(facts, per_leaf, "communication/transmit") if collective_state in facts else None,
        memory_calls=None if memory_calls is None else memory_calls / count,
        memory_ns=None if per_leaf is None or launches not in facts else under(per_leaf, "idle/host/memory"),
        host_share=None if launches not in facts else _share(facts, per_leaf, "idle/host"),
        task_queue="unknown" if events is None else seen_task_queue(events, facts.get(MEMORY_RECORD)),
    )


def _signatures(kernels: StepKernels | None) -> int | None:
    return int(kernels.frame["signature"].nunique()) if kernels is not None and kernels.shaped else None


def _varying_share(facts: Facts, count: int) -> float | None:
    if KERNELS not in facts:
        return None
    kernels = computing(facts[KERNELS], facts[steps])
    found = varying_share(kernels, count, parts_of(facts, kernels))
    return None if np.isnan(found) else found


def _rdma_bytes(facts: Facts, has_none: bool, count: int) -> float | None:
    if has_none:
        return 0.0
    table = facts.get(COLLECTIVE_BANDWIDTH)
    return None if table is None else float(table["bytes"][table["transport"] == "RDMA"].sum()) / count


def _share(facts: Facts, per_leaf: pd.Series | None, path: str) -> float | None:
    return None if per_leaf is None else share(under(per_leaf, path), step_ns(facts))


def _memory_calls(facts: Facts, events: pd.DataFrame | None) -> int | None:
    """Calls of the runtime in the steps; ``None`` where no calls of the runtime were recorded."""
    if events is None:
        return None
    is_call = (events["category"] == "runtime").to_numpy()
    if not is_call.any():
        return None
    windows = facts[steps]
    rows = np.flatnonzero(is_call & matching(events["name"], facts[PROFILE].vocabulary.calls["memory"]))
    start = events["start_ns"].to_numpy()[rows]
    return int(((start >= windows["start_ns"].min()) & (start < windows["end_ns"].max())).sum())
