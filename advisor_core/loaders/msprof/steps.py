"""Assign the kernels of an msprof export to steps.

msprof knows no steps of a framework. In graph mode it counts the runs of each graph, which are the steps of a job that
compiles its step into one: step_trace_*.csv tells when each run ended and how long it took, op_summary_*.csv may name
the run of each task (Infer ID). Runs of other graphs (initialisation, evaluation) are no steps: those of the graph that
ran longest are. Follows the documentation and the source of msprof; no real export of graph mode has been seen.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from advisor_core.contracts.tables import Int64Array
from advisor_core.loaders.msprof.files import INFERENCE

NONE = -1


def by_iterations(kernels: pd.DataFrame, iterations: pd.DataFrame) -> Int64Array:
    """The run of the graph during which each kernel started, -1 for none. ``iterations``: ``iteration``, ``model``,
    ``end_ns``, ``duration_ns``. Runs that bear one number twice are counted anew, in order of time."""
    runs = iterations[iterations["model"] == _longest(iterations["model"], iterations["duration_ns"])]
    runs = runs.sort_values("end_ns", kind="stable")
    ends, numbers = runs["end_ns"].to_numpy(), runs["iteration"].to_numpy()
    begins = ends - runs["duration_ns"].to_numpy()
    if len(np.unique(numbers)) < len(numbers):
        numbers = np.arange(1, len(numbers) + 1)
    starts = kernels["start_ns"].to_numpy()
    place = np.searchsorted(begins, starts, side="right") - 1
    inside = (place >= 0) & (starts < ends[np.maximum(place, 0)])
    return np.where(inside, numbers[np.maximum(place, 0)], NONE)


def by_inference(kernels: pd.DataFrame) -> Int64Array:
    """The run of the graph that each kernel names, -1 for none; -1 for all where only one run is named: it may stand
    for any number of them."""
    named = (kernels[INFERENCE] >= 0).to_numpy()
    result = np.full(len(kernels), NONE, dtype=np.int64)
    if not named.any():
        return result
    of_graph = named & _is(kernels["model"], _longest(kernels.loc[named, "model"], kernels.loc[named, "duration_ns"]))
    if kernels.loc[of_graph, INFERENCE].nunique() > 1:
        result[of_graph] = kernels.loc[of_graph, INFERENCE]
    return result


def _longest(models: pd.Series, durations: pd.Series) -> int:
    """The graph that took the most time, of equals the one with the smallest number."""
    sums = durations.groupby(models).sum()
    return int(sums[sums == sums.max()].index.min())


def _is(models: pd.Series, model: int) -> npt.NDArray[np.bool_]:
    return (models == model).to_numpy()
