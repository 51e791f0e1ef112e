"""HD017: operators that run on the CPU, between copies from the device and to it, while the device waits."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import numpy as np
import pandas as pd

from advisor_core.api.advisors import Column, Metric, Observations, Params, Reference, advisor
from advisor_core.api.facts import (
    HOST_EVENTS,
    PROFILE,
    Facts,
    Layer,
    Unavailable,
    aggregated,
    bookings,
    enclosing_of,
    host_activity,
    launches,
    matching,
    steps,
    union,
)
from advisors.columns import IDLE_SHARE, LONGEST, STEP_NS
from advisors.host_dispatch.host_events import names_of
from advisors.measuring import LARGEST, host_rows, idle_pieces, records, row, share, stack_of, step_count, step_ns
from advisors.messages import message

_FALLBACK: Final = re.compile(r"^aten::_to_cpu$")
"""What PyTorch calls within an operator that has no kernel for the device, to run it on the CPU
(aten/src/ATen/native/CPUFallback.cpp; recorded with torch 2.13 and an operator without a kernel)."""

_COPY: Final = re.compile("memcpy", re.I)
"""Calls of CANN (aclrtMemcpy, aclrtMemcpyAsync), and what is queued for one (acl_memcpy_host_to_device)."""

_COMPUTES_NOTHING: Final = re.compile(
    r"^(?!\w+::)|^(?:c10d|autograd|torch)::|^aten::(?:"
    r"(?:_unsafe_|_)?(?:view|reshape|alias)\w*|t|[mMH]T|transpose\w*|permute|adjoint|expand\w*|narrow|select|slice|"
    r"(?:tensor_|hv|unsafe_)?split\w*|(?:unsafe_)?chunk|unbind|(?:un)?squeeze_?|swap(?:axes|dims)|movedim|diagonal|unfold|"
    r"as_strided_?|detach_?|real|imag|values|indices|(?:un)?flatten\w*|lift\w*|(?:new_)?empty\w*|resize\w*|set_|"
    r"result_type|record_stream|_has_compatible_shallow_copy_type|to|_to_copy|copy_|contiguous|clone|item|"
    r"_local_scalar_dense|is_\w+)$"
)
"""Operators that make a view, reserve memory, ask about a tensor or only copy (docs.pytorch.org, Tensor Views), and
events of other names than operators have."""


@advisor(
    "host_dispatch.cpu_operators",
    needs=(HOST_EVENTS, steps, bookings, launches, host_activity, PROFILE),
    columns=(
        STEP_NS,
        Column("idle_ns", "float", "ns", "the device is idle while such an operator runs, per step", zh="空闲"),
        IDLE_SHARE,
        Column("total_ns", "float", "ns", "such operators run, per step", zh="合计"),
        Column("calls", "float", "count", "such operators per step", zh="次数"),
        Column("fallbacks", "float", "count", "of them: PyTorch itself moved them to the CPU, per step", zh="回退次数"),
        Column("operator", "text", "", "the one behind which the device is idle for longest", zh="算子"),
        Column("longest_ns", "int", "ns", "longest call of all", zh="最长"),
    ),
    evidence=(
        Column("called", "text", "", "name of the operator", zh="算子"),
        Column("count", "int", "count", "calls of all steps", zh="数量"),
        Column("idle", "int", "ns", "idle time of the device meanwhile", zh="空闲"),
        Column("total", "int", "ns", "time in them", zh="合计"),
        LONGEST,
    ),
)
def cpu_operators(facts: Facts, params: Params) -> Observations:
    """Operators that run on the CPU between copies from the device and to it, and the idle time meanwhile.

    Two kinds. Those that PyTorch itself moves to the CPU: an operator around `aten::_to_cpu`, with its copies. And
    those that the model's code runs there: operators that compute, after a call that copies or waits for the device and
    before the next copy, where the thread launches nothing in between.
    """
    events, words, host = facts[HOST_EVENTS], facts[PROFILE].vocabulary, facts[host_activity]
    called = (events["category"] == "cpu_op").to_numpy() & np.isin(events["thread"], list(host.feeders))
    if not called.any():
        raise Unavailable(message("host_dispatch.no_operators"), message("host_dispatch.no_cann.collect"), ("host",))
    operators = events[called & ~matching(events["name"], words.annotation)]
    fallen = _fallen(operators)
    rows = _outermost(operators, np.union1d(fallen, _between_copies(facts, operators)))
    skew, windows = facts[launches].skew_ns, facts[steps]
    starts = events["start_ns"].to_numpy()[rows] - skew
    lengths = events["duration_ns"].to_numpy()[rows]
    inside = (starts < int(windows["end_ns"].max())) & (starts + lengths > int(windows["start_ns"].min()))
    rows, starts, lengths = rows[inside], starts[inside], lengths[inside]
    pieces = idle_pieces(facts[bookings])
    idle, running = union(pieces["start_ns"].to_numpy(), pieces["end_ns"].to_numpy()), union(starts, starts + lengths)
    lost = float(_measured(idle, running.starts, running.ends).sum())
    meanwhile = _measured(idle, starts, starts + lengths)
    calls = pd.DataFrame({"name": names_of(events, pd.Series(rows)), "ns": lengths, "idle_ns": meanwhile})
    sums = aggregated(
        calls, "name", size=("ns", "size"), idle=("idle_ns", "sum"), sum=("ns", "sum"), max=("ns", "max")
    ).set_index("name")
    sums = sums.sort_values(["idle", "sum"], ascending=False, kind="stable")
    count, wall = step_count(facts), step_ns(facts)
    frame = row(
        step_ns=wall,
        idle_ns=lost / count,
        idle_share=share(lost / count, wall),
        total_ns=float(lengths.sum()) / count,
        calls=len(rows) / count,
        fallbacks=float(np.isin(rows, fallen).sum()) / count,
        operator=str(sums.index[0]) if len(sums) else "",
        longest_ns=int(lengths.max()) if len(rows) else 0,
    )

    def evidence(number: int) -> Sequence[Reference]:
        if not len(rows):
            return []
        table = records(sums.reset_index(), called="name", count="size", idle="idle", total="sum", longest="max")
        largest = rows[np.argsort(-meanwhile, kind="stable")]
        return [
            Metric(message("host_dispatch.activity"), table),
            *host_rows("host_dispatch.activity_calls", largest[:LARGEST]),
            *stack_of(events, int(largest[0])),
        ]

    return Observations(frame, evidence)


def _fallen(operators: pd.DataFrame) -> np.ndarray:
    """Rows of ``host_events`` of the operators that PyTorch moved to the CPU."""
    moves = matching(operators["name"], _FALLBACK)
    moved = operators[moves]
    around = enclosing_of(operators[~moves], moved["thread"].to_numpy(), moved["start_ns"].to_numpy())
    return np.unique(around[around >= 0])


def _between_copies(facts: Facts, operators: pd.DataFrame) -> np.ndarray:
    """Rows of ``host_events`` of the operators that compute without a launch, after a call that copies or waits and
    before the next copy of the same thread."""
    events, words, host = facts[HOST_EVENTS], facts[PROFILE].vocabulary, facts[host_activity]
    category = events["category"]
    call = category.isin(["runtime", "enqueue"]).to_numpy() & np.isin(events["thread"], list(host.feeders))
    copies = call & matching(events["name"], _COPY)
    waits = call & (category == "runtime").to_numpy() & matching(events["name"], words.sync_calls)
    launching = np.zeros(len(events), dtype=bool)
    launched = facts[launches].frame["call_row"].to_numpy()
    launching[launched[launched >= 0]] = True
    launching = call & ~copies & (launching | (category == "enqueue").to_numpy())
    rows = np.flatnonzero(copies | waits | launching)
    rows = rows[np.lexsort((events["start_ns"].to_numpy()[rows], events["thread"].to_numpy()[rows]))]
    thread, start = events["thread"].to_numpy()[rows], events["start_ns"].to_numpy()[rows]
    end = start + events["duration_ns"].to_numpy()[rows]
    follows = (thread[1:] == thread[:-1]) & copies[rows][1:] & ~launching[rows][:-1] & (start[1:] > end[:-1])
    stretches = pd.DataFrame(
        {
            "thread": thread[1:][follows],
            "start_ns": end[:-1][follows],
            "duration_ns": (start[1:] - end[:-1])[follows],
        }
    )
    asked = operators[~matching(operators["name"], _COMPUTES_NOTHING)]
    begin = asked["start_ns"].to_numpy()
    place = enclosing_of(stretches, asked["thread"].to_numpy(), begin)
    if not len(stretches):
        return np.zeros(0, dtype=np.int64)
    until = (stretches["start_ns"] + stretches["duration_ns"]).to_numpy()[np.maximum(place, 0)]
    within = (place >= 0) & (begin + asked["duration_ns"].to_numpy() <= until)
    return np.asarray(asked.index.to_numpy()[within], dtype=np.int64)


def _outermost(operators: pd.DataFrame, rows: np.ndarray) -> np.ndarray:
    """The chosen operators without those that run inside another chosen one."""
    chosen = operators.loc[rows]
    threads, starts = chosen["thread"].to_numpy(), chosen["start_ns"].to_numpy()
    return np.unique(enclosing_of(chosen, threads, starts, outermost=True))


def _measured(layer: Layer, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """ns of a layer within each interval."""
    return np.asarray(layer.measure(ends) - layer.measure(starts), dtype=np.int64)
