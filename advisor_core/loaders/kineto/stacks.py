"""The call stacks of operators, from the Python functions that were recorded around them.

A trace names with each Python function the one that called it. Stacks that consist of the same names are one: they are
numbered from the outermost function inwards.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from advisor_core.contracts.tables import Int64Array
from advisor_core.nesting import enclosing_of

DEEPEST = 400
"""Calls nested deeper are cut off: the recursion limit of Python is 1000, and no one reads as many."""


def call_stacks(events: pd.DataFrame, ids: Int64Array, callers: Int64Array) -> pd.Categorical | None:
    """A stack for each row of host events that is an operator, '' for the others; None where no Python function was
    recorded. ``ids`` and ``callers``: of the functions, -1 where there are none."""
    recorded = (events["category"] == "python_function").to_numpy() & (ids >= 0)
    functions = np.flatnonzero(recorded)
    if not len(functions):
        return None
    caller = _places(ids[functions], callers[functions])
    stacks = _stacks(events["name"].cat.codes.to_numpy()[functions].astype(np.int64), caller)
    operators = np.flatnonzero((events["category"] == "cpu_op").to_numpy())
    place = pd.Series(np.arange(len(functions)), index=functions)
    spans = events[["thread", "start_ns", "duration_ns"]]  # a trace with stacks consists of functions: no more copies
    around = enclosing_of(
        spans.iloc[functions],
        events["thread"].to_numpy()[operators],
        events["start_ns"].to_numpy()[operators],
    )
    inside = place.reindex(around).fillna(-1).to_numpy().astype(np.int64)
    codes = np.zeros(len(events), np.int64)  # 0: no stack
    codes[operators] = np.where(inside >= 0, stacks[np.maximum(inside, 0)] + 1, 0)
    names = events["name"].cat.categories.astype(str).to_numpy()[events["name"].cat.codes.to_numpy()[functions]]
    used, places = np.unique(codes, return_inverse=True)
    example = dict(zip((stacks + 1).tolist(), range(len(stacks)), strict=True))
    texts = ["\n".join(_frames(example.get(code, -1), caller, names)) for code in used.tolist()]
    return pd.Categorical.from_codes(places, categories=pd.Index(texts, dtype=object))


def _frames(place: int, caller: Int64Array, names: np.ndarray) -> Iterator[str]:
    """The names from a function outwards; none for -1."""
    while place >= 0:
        yield str(names[place])
        place = int(caller[place])


def _places(ids: Int64Array, wanted_ids: Int64Array) -> Int64Array:
    """Places of the functions with the wanted ids, -1 for none."""
    order = np.argsort(ids, kind="stable")
    place = np.minimum(np.searchsorted(ids[order], wanted_ids), len(ids) - 1)
    return np.where((ids[order][place] == wanted_ids) & (wanted_ids >= 0), order[place], -1)


def _stacks(names: Int64Array, caller: Int64Array) -> Int64Array:
    """A number for the stack of each function: the same for the same names from the outermost function on."""
    stacks = np.full(len(names), -1, np.int64)
    level = np.flatnonzero(caller < 0)
    order = np.argsort(caller, kind="stable")
    first = np.searchsorted(caller[order], np.arange(len(names) + 1))
    count = 0
    for _ in range(DEEPEST):
        if not len(level):
            break
        above = np.where(caller[level] >= 0, stacks[np.maximum(caller[level], 0)], -1)
        _, number = np.unique(np.stack([above, names[level]]), axis=1, return_inverse=True)
        stacks[level] = count + number.ravel()
        count += int(number.max()) + 1
        sizes = first[level + 1] - first[level]
        starts = np.repeat(first[level] - np.concatenate([[0], np.cumsum(sizes)[:-1]]), sizes)
        level = order[starts + np.arange(int(sizes.sum()))]
    return stacks
