"""What a compiled or fused model would not do: chains of kernels that only read and write, attention that is written
out, optimizers that update one parameter after the other. Judged by classes and order, whatever the device."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pandas as pd

from advisor_core.api.advisors import Column, Observations, Params, Reference, Rows, advisor
from advisor_core.api.facts import HOST_EVENTS, Facts, NotApplicable, launches, matching, union
from advisors.measuring import row
from advisors.messages import message
from advisors.step_kernels import StepKernels, call_stack, kernel_rows, step_kernels

MEMORY_BOUND = ("elementwise", "cast", "copy", "normalisation", "reduction", "random", "transpose")
"""Classes whose kernels read their inputs, do little with them and write the result: neighbours can be one kernel."""

_COMPILED = re.compile("^triton_")
"""Kernels that torch.compile has made: they are fused already."""

_SOFTMAX = re.compile("(?<!log)(?<!log_)softmax", re.IGNORECASE)
_REACH = 6
"""Kernels on either side of a softmax among which its matrix products are looked for: scale, mask, dropout, casts and
copies stand between."""

_UPDATE = "Optimizer.step#"
"""The mark that PyTorch puts around the step of an optimizer."""

_SHOWN = 4

Rank = npt.NDArray[np.int64]


@advisor(
    "network_structure.memory_bound_chains",
    needs=(step_kernels,),
    wants=(launches, HOST_EVENTS),
    columns=(
        Column("chains", "float", "count", "series of neighbouring kernels that only read and write, per step"),
        Column("kernels", "float", "count", "kernels in them, per step"),
        Column("chain", "text", "", "the series on which most time is spent, by operator type"),
        Column("chain_ns", "float", "ns", "their time per step"),
        Column("saving_ns", "float", "ns", "of it: all but the longest kernel of each series"),
        Column("share_of_step", "float", "ratio", "saving_ns over the step"),
        Column("share_of_computing", "float", "ratio", "saving_ns over the kernel time of the step"),
    ),
)
def memory_bound_chains(facts: Facts, params: Params) -> Observations:
    """Series of kernels that only read and write, without the update of the parameters.

    One kernel could do the work of each series, and takes at least as long as the longest of them."""
    own = facts[step_kernels]
    frame = own.frame
    bound = frame["operator_class"].isin(MEMORY_BOUND).to_numpy() & ~matching(frame["type"], _COMPILED)
    bound[_updating(facts, own)] = False
    series = np.cumsum(~bound | np.roll(~bound, 1) | own.breaks)
    inside = frame[bound].groupby(series[bound], sort=False)
    size, total, longest = inside["duration_ns"].count(), inside["duration_ns"].sum(), inside["duration_ns"].max()
    long = size.index[size > 1]
    if not len(long):
        raise NotApplicable(message("eager_chains.none"))
    rows = np.flatnonzero(bound & np.isin(series, long))
    names = frame["type"].iloc[rows].astype(str).groupby(series[rows], sort=False).agg(_listed)
    saved = total[long] - longest[long]
    by_chain = saved.groupby(names[long]).sum().sort_values(ascending=False, kind="stable")
    saving = float(saved.sum()) / own.steps
    result = row(
        chains=len(long) / own.steps,
        kernels=float(size[long].sum()) / own.steps,
        chain=str(by_chain.index[0]),
        chain_ns=float(total[long].sum()) / own.steps,
        saving_ns=saving,
        share_of_step=saving / own.wall_ns,
        share_of_computing=saving / own.kernel_ns,
    )
    return Observations(result, lambda _: _evidence(facts, own, rows, "eager_chains.chain_rows"))


@advisor(
    "network_structure.written_out_attention",
    needs=(step_kernels,),
    wants=(launches, HOST_EVENTS),
    columns=(
        Column("attentions", "float", "count", "softmax between two matrix products, per step"),
        Column("kernels", "float", "count", "kernels between these products, per step"),
        Column("between_ns", "float", "ns", "their time per step"),
        Column("product_ns", "float", "ns", "time of the products per step"),
        Column("share_of_step", "float", "ratio", "between_ns over the step"),
        Column("share_of_computing", "float", "ratio", "between_ns over the kernel time of the step"),
    ),
)
def written_out_attention(facts: Facts, params: Params) -> Observations:
    """Attention as products with a softmax between them, whose matrix of scores is written and read again."""
    own = facts[step_kernels]
    frame = own.frame
    products = np.flatnonzero((frame["operator_class"] == "matmul").to_numpy())
    normalises = (frame["operator_class"] == "normalisation").to_numpy()
    softmax = np.flatnonzero(normalises & matching(frame["type"], _SOFTMAX))
    if not len(products) or not len(softmax):
        raise NotApplicable(message("eager_chains.no_softmax"))
    place = np.searchsorted(products, softmax)
    before = products[np.maximum(place - 1, 0)]
    after = products[np.minimum(place, len(products) - 1)]
    unbroken = np.cumsum(own.breaks)
    near = (before < softmax) & (softmax - before <= _REACH) & (softmax < after) & (after - softmax <= _REACH)
    near &= unbroken[before] == unbroken[after]
    ends = sorted({*zip(before[near].tolist(), after[near].tolist(), strict=True)})
    between = np.array([n for first, last in ends for n in range(first + 1, last)], dtype=np.int64)
    touched = np.unique(np.array([n for pair in ends for n in pair], dtype=np.int64))
    took = frame["duration_ns"].to_numpy(dtype=np.float64)
    spent = float(took[between].sum()) / own.steps
    result = row(
        attentions=len(ends) / own.steps,
        kernels=len(between) / own.steps,
        between_ns=spent,
        product_ns=float(took[touched].sum()) / own.steps,
        share_of_step=spent / own.wall_ns,
        share_of_computing=spent / own.kernel_ns,
    )
    shown = np.concatenate([between, touched]) if len(ends) else softmax
    return Observations(result, lambda _: _evidence(facts, own, shown, "eager_chains.attention_rows"))


@advisor(
    "network_structure.optimizer_step",
    needs=(step_kernels, launches, HOST_EVENTS),
    columns=(
        Column("optimizer", "text", "", "class of the optimizer, as PyTorch marks its step"),
        Column("kernels", "float", "count", "kernels that it launches, per step"),
        Column("kernel_ns", "float", "ns", "their time per step"),
        Column("host_ns", "float", "ns", "time of the host in it, per step"),
        Column("idle_ns", "float", "ns", "idle between its first and its last kernel, per step"),
        Column("share_of_step", "float", "ratio", "idle_ns over the step"),
    ),
)
def optimizer_step(facts: Facts, params: Params) -> Observations:
    """The update of the parameters: how many kernels it takes, and how long the device waits for their launches."""
    own = facts[step_kernels]
    marks = _marks(facts)
    if not len(marks):
        raise NotApplicable(message("eager_chains.no_optimizer"))
    number = _mark_of(facts, own, marks)
    updates = np.flatnonzero(number >= 0)
    if not len(updates):
        raise NotApplicable(message("eager_chains.no_optimizer"))
    frame = own.frame.iloc[updates]
    idle = 0
    for _, kernels in frame.groupby(number[updates]):
        starts, ends = kernels["start_ns"].to_numpy(), kernels["end_ns"].to_numpy()
        others = own.frame[(own.frame["end_ns"] > starts.min()) & (own.frame["start_ns"] < ends.max())]
        busy = union(others["start_ns"].to_numpy(), others["end_ns"].to_numpy()).clip(starts.min(), ends.max())
        idle += int(ends.max() - starts.min()) - busy.total()
    used = marks.iloc[np.unique(number[updates])]
    result = row(
        optimizer=str(used["name"].iloc[0]).partition("#")[2].removesuffix(".step") or "?",
        kernels=len(updates) / own.steps,
        kernel_ns=float(frame["duration_ns"].sum()) / own.steps,
        host_ns=float(used["duration_ns"].sum()) / own.steps,
        idle_ns=idle / own.steps,
        share_of_step=idle / own.steps / own.wall_ns,
    )

    def evidence(_: int) -> Sequence[Reference]:
        columns = ("name", "start_ns", "duration_ns")
        calls = Rows(message("eager_chains.optimizer_calls"), HOST_EVENTS, used.index.to_numpy(), columns)
        return [calls, *_evidence(facts, own, updates, "eager_chains.optimizer_rows")]

    return Observations(result, evidence)


def _evidence(facts: Facts, own: StepKernels, rows: Rank, title: str) -> list[Reference]:
    frame = own.frame.iloc[rows]
    return [kernel_rows(message(title), frame), *call_stack(facts, frame)]


def _listed(types: pd.Series) -> str:
    """The types of a series in order, the first few of many."""
    names = types.tolist()
    runs = [name for name, following in pairwise([*names, ""]) if name != following]
    more = len(runs) - _SHOWN
    return " + ".join(runs[:_SHOWN]) + (f" + {more} more" if more > 0 else "")


def _marks(facts: Facts) -> pd.DataFrame:
    """The steps of optimizers as the host recorded them, in order; those inside another are left out."""
    events = facts.get(HOST_EVENTS)
    if events is None:
        return pd.DataFrame({"name": [], "start_ns": [], "duration_ns": [], "thread": []})
    marked = events["name"].cat.categories.to_series().str.startswith(_UPDATE).to_numpy(dtype=np.bool_)
    found = events[marked[events["name"].cat.codes.to_numpy()]].sort_values(["start_ns", "duration_ns"], kind="stable")
    ends = (found["start_ns"] + found["duration_ns"]).to_numpy()
    return found[found["start_ns"].to_numpy() >= np.concatenate([[0], np.maximum.accumulate(ends)[:-1]])[: len(found)]]


def _mark_of(facts: Facts, own: StepKernels, marks: pd.DataFrame) -> Rank:
    """The number of the mark in which each kernel was launched; -1 for none, or where its launch is not known."""
    launched = facts[launches].frame
    at = launched["launch_ns"].to_numpy()[own.frame["work"].to_numpy()]
    thread = launched["thread"].to_numpy()[own.frame["work"].to_numpy()]
    number = np.searchsorted(marks["start_ns"].to_numpy(), at, side="right") - 1
    inside = number >= 0
    mark = marks.iloc[np.maximum(number, 0)]
    inside &= at < (mark["start_ns"] + mark["duration_ns"]).to_numpy()
    inside &= thread == mark["thread"].to_numpy()
    return np.where(inside, number, -1)


def _updating(facts: Facts, own: StepKernels) -> Rank:
    """The kernels that update parameters."""
    marks = _marks(facts)
    if launches not in facts or not len(marks):
        return np.flatnonzero((own.frame["operator_class"] == "optimizer").to_numpy())
    return np.flatnonzero(_mark_of(facts, own, marks) >= 0)


ADVISORS = (memory_bound_chains, written_out_attention, optimizer_step)
