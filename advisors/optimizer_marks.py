"""The marks that PyTorch puts around the step of an optimizer and around what adds up gradients, and the kernels that
are launched in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pandas as pd

from advisor_core.api.facts import HOST_EVENTS, Facts, launches
from advisors.step_kernels import StepKernels

if TYPE_CHECKING:
    import numpy.typing as npt

_UPDATE = "Optimizer.step#"
_ADDITION = "torch::autograd::AccumulateGrad"

Ints: TypeAlias = "npt.NDArray[np.int64]"


def optimizer_marks(facts: Facts) -> pd.DataFrame:
    """The steps of optimizers as the host recorded them, in order; those inside another are left out."""
    return _marks(facts, _UPDATE)


def gradient_marks(facts: Facts) -> pd.DataFrame:
    """What stores or adds up the gradient of each weight, in order, with the shape of the gradient where recorded."""
    return _marks(facts, _ADDITION)


def _marks(facts: Facts, name: str) -> pd.DataFrame:
    events = facts.get(HOST_EVENTS)
    if events is None:
        return pd.DataFrame({"name": [], "start_ns": [], "duration_ns": [], "thread": [], "input_shapes": []})
    is_mark = events["name"].array.categories.to_series().str.startswith(name).to_numpy(dtype=np.bool_)
    marks: pd.DataFrame = events[is_mark[events["name"].array.codes]].sort_values(
        ["start_ns", "duration_ns"], kind="stable"
    )
    ends = (marks["start_ns"] + marks["duration_ns"]).to_numpy()
    return marks[marks["start_ns"].to_numpy() >= np.concatenate([[0], np.maximum.accumulate(ends)[:-1]])[: len(marks)]]


def mark_of(facts: Facts, kernels: StepKernels, marks: pd.DataFrame) -> Ints:
    """The number of the mark in which each kernel was launched; -1 for none, or where its launch is not known."""
    launched = facts[launches].frame
    launch_ns = launched["launch_ns"].to_numpy()[kernels.frame["work"].to_numpy()]
    thread = launched["thread"].to_numpy()[kernels.frame["work"].to_numpy()]
    number = np.searchsorted(marks["start_ns"].to_numpy(), launch_ns, side="right") - 1
    inside = number >= 0
    mark = marks.iloc[np.maximum(number, 0)]
    inside &= launch_ns < (mark["start_ns"] + mark["duration_ns"]).to_numpy()
    inside &= thread == mark["thread"].to_numpy()
    return np.where(inside, number, -1)


def updating(facts: Facts, kernels: StepKernels) -> Ints:
    """The kernels that update parameters."""
    inside = _inside(facts, kernels, optimizer_marks(facts))
    return np.flatnonzero((kernels.frame["operator_class"] == "optimizer").to_numpy()) if inside is None else inside


def adding_gradients(facts: Facts, kernels: StepKernels) -> Ints:
    """The kernels that add a gradient to that of its parameter; none where these marks are not recorded."""
    inside = _inside(facts, kernels, gradient_marks(facts))
    return np.zeros(0, dtype=np.int64) if inside is None else inside


def _inside(facts: Facts, kernels: StepKernels, marks: pd.DataFrame) -> Ints | None:
    """The kernels that are launched in the marks; `None` where no marks or no launches are recorded."""
    if launches not in facts or not len(marks):
        return None
    return np.flatnonzero(mark_of(facts, kernels, marks) >= 0)
