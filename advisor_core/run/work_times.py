"""Operators and collectives in the steps of a rank, and of all ranks together."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from advisor_core.contracts.computed import ComputedWork
from advisor_core.contracts.tables import KERNELS
from advisor_core.facts.communication.calls import collective_calls
from advisor_core.facts.device.work import work
from advisor_core.facts.grouping import aggregated
from advisor_core.facts.steps.steps import steps
from advisor_core.facts.store import FactStore
from advisor_core.result.work import CollectiveTime, OperatorTime, Work
from advisor_core.run.api_totals import RankApis, rank_apis, summed_apis
from advisor_core.run.computed_times import chip_peaks, summed_computed, summed_samples
from advisor_core.vocabulary.operator_class import kernel_type

LISTED = 400
"""So many rows of operators, and of collectives, stand by themselves, those with most time; a convention that keeps
report.json below about 100 kB more. The training steps at hand have 100 to 300 pairs of a type and shapes."""

LONGEST = 160
"""Characters of a name or of shapes: one kernel over all weights lists hundreds of shapes. What is longer is cut, with
a digest of the whole, so that two that differ stay two."""

_UNKNOWN = -1
_OPERATOR = ["type", "shapes", "operator_class"]
_COLLECTIVE = ["operation", "members", "spacing", "bytes"]
_TIMES = ["ns", "uncovered_ns", "waiting_ns"]


@dataclass(frozen=True)
class RankWork:
    """Operators and collectives in the steps of one rank. ``operators``: a row per type, shapes and class;
    ``collectives``: a row per operation, layout of the group and size; both with ``calls`` and times in ns. ``apis``:
    calls of the host, where the exporter sums them up; ``computed``: what the kernels compute, where a plugin tells."""

    steps: int
    operators: pd.DataFrame
    collectives: pd.DataFrame
    apis: RankApis | None = None
    computed: ComputedWork | None = None


def rank_work(store: FactStore, computed: ComputedWork | None) -> RankWork | None:
    """The work of a rank; ``None`` where its kernels or its steps are not known. ``computed``: what its kernels
    compute."""
    device, windows = store.get(work), store.get(steps)
    if device is None or windows is None or not len(windows):
        return None
    count = len(windows)
    operators = _operators(device, windows, store.get(KERNELS))
    return RankWork(count, operators, _collectives(store), rank_apis(store, count), computed)


def _operators(device: pd.DataFrame, windows: pd.DataFrame, kernels: pd.DataFrame | None) -> pd.DataFrame:
    starts = device["start_ns"].to_numpy()
    step = np.searchsorted(windows["start_ns"].to_numpy(), starts, side="right") - 1
    inside = (step >= 0) & (starts < windows["end_ns"].to_numpy()[np.maximum(step, 0)])
    own = device[inside & ~device["communication"].to_numpy()]
    shapes = np.full(len(own), _UNKNOWN)
    shape_texts = [""]
    if kernels is not None:
        recorded = (own["table"] == KERNELS.name).to_numpy()
        shapes[recorded] = kernels["input_shapes"].cat.codes.to_numpy()[own["row"].to_numpy()[recorded]]
        shape_texts = [*map(_short, kernels["input_shapes"].cat.categories), ""]  # the last is that of -1
    untyped = (own["type"] == "").to_numpy()
    rows = pd.DataFrame(
        {
            "type": own["type"].cat.codes.to_numpy(),
            "name": np.where(untyped, own["name"].cat.codes.to_numpy(), _UNKNOWN),
            "shapes": shapes,
            "operator_class": own["operator_class"].cat.codes.to_numpy(),
            "calls": 1,
            "ns": (own["end_ns"] - own["start_ns"]).to_numpy(),
        }
    )
    sums = _summed(rows, ("type", "name", "shapes", "operator_class"), ["ns"], sort=False)
    types, names, classes = (own[column].cat.categories for column in ("type", "name", "operator_class"))
    type_texts = [
        _short(types[kind] if name < 0 else kernel_type(names[name]))
        for kind, name in zip(sums["type"], sums["name"], strict=True)
    ]
    texts = pd.DataFrame(
        {
            "type": type_texts,
            "shapes": [shape_texts[code] for code in sums["shapes"]],
            "operator_class": [classes[code] for code in sums["operator_class"]],
        },
        dtype=object,
    )
    operators = texts.assign(calls=sums["calls"], ns=sums["ns"])
    return _summed(operators, _OPERATOR, ["ns"], sort=False)


def _collectives(store: FactStore) -> pd.DataFrame:
    calls = store.get(collective_calls)
    columns = [*_COLLECTIVE, "calls", *_TIMES]
    if calls is None:
        return pd.DataFrame({name: pd.Series(dtype="int64") for name in columns})
    own = calls[calls["step"] >= 0]
    rows = pd.DataFrame(
        {
            "operation": own["operation"].astype(str).map(_short),
            "members": own["members"],
            "spacing": own["ranks"].astype(str).map(_spacing).astype("int64"),
            "bytes": own["bytes"],
            "calls": 1,
            "ns": own["elapse_ns"],
            "uncovered_ns": own["uncovered_ns"],
            "waiting_ns": own["wait_ns"],
        }
    )
    return _summed(rows, _COLLECTIVE, _TIMES, sort=False)


def _summed(rows: pd.DataFrame, keys: Sequence[str], times: Sequence[str], *, sort: bool) -> pd.DataFrame:
    """Calls and times of the rows that have the same ``keys``, by these or in the order of the first of them."""
    summed: pd.DataFrame = aggregated(rows, keys, sort=sort, **{name: (name, "sum") for name in ("calls", *times)})
    return summed


def _short(text: str) -> str:
    if len(text) <= LONGEST:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{text[: LONGEST - 11]}… #{digest}"


def _spacing(ranks: str) -> int:
    """Distance between neighbouring ranks of a group, -1 where they are not known or not evenly spaced.

    >>> _spacing("0,8,16"), _spacing("0,1,3"), _spacing("")
    (8, -1, -1)
    """
    numbers = sorted(int(rank) for rank in ranks.split(",") if rank.strip().isdecimal())
    gaps = {after - before for before, after in pairwise(numbers)}
    return gaps.pop() if len(gaps) == 1 else _UNKNOWN


def summed_work(ranks: Sequence[RankWork]) -> list[Work]:
    """The work of all ranks together, as the one entry of a result; none without ranks."""
    if not ranks:
        return []
    operators = _listed([rank.operators for rank in ranks], _OPERATOR, "type", ["ns"])
    collectives = _listed([rank.collectives for rank in ranks], _COLLECTIVE, "operation", _TIMES)
    apis = [rank.apis for rank in ranks if rank.apis is not None]
    computed = [rank.computed for rank in ranks if rank.computed is not None]
    # Part of the ranks would be another amount of work than the steps of all that it is divided by.
    whole = computed if len(computed) == len(ranks) else []
    return [
        Work(
            rank_steps=sum(rank.steps for rank in ranks),
            operators=[_operator(row) for row in operators],
            collectives=[_collective(row) for row in collectives],
            api_steps=sum(rank.steps for rank in apis),
            apis=summed_apis(apis),
            computed=summed_computed(whole),
            samples=summed_samples(whole),
            peaks=chip_peaks(whole),
        )
    ]


_Row = dict[str, Any]


def _listed(frames: Sequence[pd.DataFrame], keys: Sequence[str], kind: str, times: Sequence[str]) -> list[_Row]:
    """The sums by ``keys``, largest first: the `LISTED` largest by themselves, what is left by ``kind``, and of these
    again the largest; the last row is the rest. A key that a row is not divided by is ``None``."""
    every = _summed(pd.concat(frames), keys, times, sort=True)
    every = every.sort_values(["ns", *keys], ascending=[False, *[True] * len(keys)], kind="stable")
    left = _summed(every.iloc[LISTED:], [kind], times, sort=True)
    left = left.sort_values(["ns", kind], ascending=[False, True], kind="stable")
    rest = left.iloc[LISTED:][["calls", *times]].sum()
    rows = [_row(keys, row, listed=True) for row in every.head(LISTED).to_dict("records")]
    rows += [_row(keys, row, listed=False) for row in left.head(LISTED).to_dict("records")]
    if len(left) > LISTED:
        rows.append(_row(keys, rest.astype(int).to_dict(), listed=False))
    return rows


def _row(keys: Sequence[str], values: Mapping[Hashable, Any], listed: bool) -> _Row:
    return {**dict.fromkeys(keys), **{str(name): value for name, value in values.items()}, "listed": listed}


def _operator(row: _Row) -> OperatorTime:
    given = {name: value for name, value in row.items() if name != "listed"}
    return OperatorTime.model_validate({**given, "operator_class": given["operator_class"] or ""})


def _collective(row: _Row) -> CollectiveTime:
    known = {name: None if row[name] == _UNKNOWN else row[name] for name in _COLLECTIVE}
    return CollectiveTime.model_validate({**row, **known})
