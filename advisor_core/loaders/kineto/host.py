"""The table of host events, and the look-ups that other tables need of it: operators by id, calls by correlation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from advisor_core.contracts import tables
from advisor_core.contracts.tables import Int64Array
from advisor_core.loaders.kineto import words
from advisor_core.loaders.kineto.events import Columns
from advisor_core.loaders.kineto.stacks import call_stacks
from advisor_core.loaders.readers.columns import Interner

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Host:
    """The events of the threads of the host, in the order of the file. ``frame``: the table; ``columns``: its
    sources."""

    frame: pd.DataFrame
    columns: Columns
    interners: dict[str, Interner]

    def named(self, rows: Mask, test: Any) -> Mask:
        """Mask of the chosen rows whose name passes ``test``, which is called once per distinct name."""
        codes = self.columns["name"]
        texts = list(self.interners["name"])
        used = np.unique(codes[rows])
        hits = np.zeros(len(texts), bool)
        hits[used] = [bool(test(str(texts[code]))) for code in used.tolist()]
        matching: Mask = rows & hits[codes]
        return matching

    def names(self, rows: Int64Array) -> npt.NDArray[np.object_]:
        """The names of rows, '' for -1."""
        column = self.frame["name"].cat
        texts = np.append(column.categories.to_numpy(object), "")
        names: npt.NDArray[np.object_] = texts[np.where(rows >= 0, column.codes.to_numpy()[rows], -1)]
        return names

    def of(self, category: str) -> Mask:
        """Mask of the rows of a category."""
        mask: Mask = (self.frame["category"] == category).to_numpy()
        return mask

    def work_of_operators(self) -> pd.DataFrame:
        """The events of operators, without the marks that the profiler of 2021 recorded like operators."""
        chosen = self.of("cpu_op")
        return self.frame[chosen & ~self.named(chosen, words.MARK.search)]

    def operators(self, ids: Int64Array) -> Int64Array:
        """Rows of the operators that the ids name, -1 for none."""
        return _rows(self.columns["external"], self.of("cpu_op"), ids)

    def calls(self, correlations: Int64Array) -> Int64Array:
        """Rows of the calls of the runtime that the correlation ids name, -1 for none."""
        return _rows(self.columns["correlation"], self.of("runtime"), correlations)

    def launching(self) -> Mask:
        """Mask of the calls that launch kernels, without those that record into a graph that is being captured."""
        runtime = self.of("runtime")
        starts = self.frame["start_ns"].to_numpy()
        begun, ended = (
            np.searchsorted(np.sort(starts[self.named(runtime, border.search)]), starts)
            for border in (words.CAPTURE_BEGINS, words.CAPTURE_ENDS)
        )
        launching: Mask = self.named(runtime, words.LAUNCHING_CALLS.search) & (begun <= ended)
        return launching

    def steps(self) -> pd.DataFrame:
        """The recorded steps of the framework in order of time: ``step``, ``start_ns``, ``end_ns``."""
        rows = np.flatnonzero(self.named(self.of("cpu_op") | self.of("user_annotation"), words.STEP.search))
        marks = self.frame.iloc[rows]
        numbers = marks["name"].astype(str).str.extract(words.STEP, expand=False)
        steps = pd.DataFrame({"step": pd.to_numeric(numbers).astype("int64"), "start_ns": marks["start_ns"]})
        steps["end_ns"] = marks["start_ns"] + marks["duration_ns"]
        return steps.sort_values("start_ns", kind="stable", ignore_index=True)


def host_events(columns: Columns, interners: dict[str, Interner]) -> Host:
    """From the columns of `events.Events`, whose times are in ns. Names of operators carry their stacks where they or
    the Python functions around them were recorded."""
    frame = pd.DataFrame(
        {
            "name": interners["name"].categorical(columns["name"]),
            "category": interners["category"].categorical(columns["category"], words.host_category),
            "thread": columns["thread"],
            "start_ns": columns["start_ns"],
            "duration_ns": columns["duration_ns"],
            "correlation": -1,
            "connection": columns["correlation"],
            "call_stack": interners["stack"].categorical(columns["stack"], words.stack),
            "input_shapes": interners["shapes"].categorical(columns["shapes"], words.shapes),
            "source_row": columns["source_row"],
        }
    )
    collections = (frame["category"] == "python_function") & frame["name"].isin(
        [name for name in frame["name"].cat.categories if words.COLLECTION.search(name)]
    )
    if collections.any():
        frame["category"] = frame["category"].astype(object).mask(collections, "gc").astype("category")
    if not (frame["call_stack"] != "").any():
        stacks = call_stacks(frame, columns["python"], columns["python_parent"])
        frame = frame if stacks is None else frame.assign(call_stack=stacks)
    return Host(tables.HOST_EVENTS.conform(frame), columns, interners)


def _rows(ids: Int64Array, chosen: Mask, wanted_ids: Int64Array) -> Int64Array:
    """The first of the chosen rows with each wanted id; -1 for none and for what is no id."""
    rows = np.flatnonzero(chosen & (ids >= 0))
    if not len(rows):
        return np.full(len(wanted_ids), -1, np.int64)
    distinct, first = np.unique(ids[rows], return_index=True)
    place = np.minimum(np.searchsorted(distinct, wanted_ids), len(distinct) - 1)
    return np.where(distinct[place] == wanted_ids, rows[first[place]], -1)
