"""The computing in which the data of transfers becomes ready: what could hide them if each began with its data.

Gradients are made by the backward pass of the last micro-batch: what was computed before it hides none of their
transfers. Its operators are run by the thread of autograd, while the transfers of a program that waits for all of them
are called by the thread that runs the model. Where one thread calls both, or no host is recorded, it is what runs from
the first kernel on that computes gradients, by its name; where no kernel has such a name, nothing tells where the data
is made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pandas as pd

from advisor_core.api.facts import (
    HOST_EVENTS,
    PROFILE,
    Facts,
    Layer,
    Vocabulary,
    launches,
    matching,
    timeline,
    work,
)

if TYPE_CHECKING:
    import numpy.typing as npt

Ints: TypeAlias = "npt.NDArray[np.int64]"

_OPTIMIZER = "optimizer"
"""Class of the operators that update parameters."""

_UNKNOWN = -(1 << 63)
_NEVER = (1 << 63) - 1


def producing(
    facts: Facts, found: pd.DataFrame, first_call: np.ndarray, since_ns: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of each of some `advisors.transfers.chains` the computing that could hide it, begin and ns: the last run of
    kernels before it that another thread called than its own, else that from the first kernel of gradients on, less the
    part of the run in which the data of the first transfer is made; all computing since ``since_ns`` where no such run
    is known; and whether threads tell the run: it is then that of the last micro-batch alone. ``first_call``: the row
    of ``work`` of the first transfer of each."""
    computing: Layer = facts[timeline].computing
    starts = found["start_ns"].to_numpy()
    began = since_ns.copy()
    if launches in facts and HOST_EVENTS in facts:
        began = np.maximum(began, run_begins(facts[work], _callers(facts), starts, first_call, since_ns))
    told = began > since_ns
    named = gradients_begin(facts[work], facts[PROFILE].vocabulary, starts, since_ns)
    began = np.where(told, began, named)
    ready = computing.measure(starts) - computing.measure(began)
    return began, np.where(began > since_ns, ready * (1 - found["first_share"].to_numpy()), ready), told


def gradients_begin(device: pd.DataFrame, words: Vocabulary, starts: Ints, since_ns: Ints) -> Ints:
    """Where the first kernel behind ``since_ns`` and before ``starts`` begins whose type or name is one of gradients;
    ``since_ns`` where there is none. Kernels of the optimizer, which recordings name alike, are left out."""
    named = matching(device["type"], words.backward) | matching(device["name"], words.backward)
    begins = device["start_ns"].to_numpy()[named & (device["operator_class"] != _OPTIMIZER).to_numpy()]
    following = np.append(begins, _NEVER)[np.searchsorted(begins, since_ns)]
    return np.where(following < starts, following, since_ns)


def _callers(facts: Facts) -> np.ndarray:
    """The thread of the operator that called each task, -1 unknown."""
    rows = facts[launches].frame["op_row"].to_numpy()
    thread = facts[HOST_EVENTS]["thread"].to_numpy()
    return np.where(rows >= 0, thread[np.maximum(rows, 0)], -1) if len(thread) else np.full(len(rows), -1)


def run_begins(
    device: pd.DataFrame, caller: np.ndarray, starts: np.ndarray, first_call: np.ndarray, since_ns: np.ndarray
) -> np.ndarray:
    """The begin of the run of kernels that the data of each chain is made in: behind the last kernel that the thread of
    the chain called itself before it. The lowest int64 where no kernel of another thread lies between."""
    begins, begin, end = np.full(len(starts), _UNKNOWN), device["start_ns"].to_numpy(), device["end_ns"].to_numpy()
    computes = ~device["communication"].to_numpy() & (caller >= 0)
    own_thread = caller[first_call]
    for thread in np.unique(own_thread[own_thread >= 0]).tolist():  # one or two
        chosen = np.flatnonzero(own_thread == thread)
        own, others = (np.flatnonzero(computes & called) for called in (caller == thread, caller != thread))
        last_begin = _last_before(starts[chosen], begin[others], begin[others])
        own_end = _last_before(last_begin, begin[own], np.maximum.accumulate(end[own]))
        begins[chosen] = np.where(last_begin > since_ns[chosen], own_end, _UNKNOWN)
    return begins


def _last_before(times: np.ndarray, begin: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The value of the last one that begins before each of ``times``; the lowest int64 where none does. ``begin``:
    ascending."""
    return np.append(values, _UNKNOWN)[np.searchsorted(begin, times) - 1]  # -1, none, is the last
