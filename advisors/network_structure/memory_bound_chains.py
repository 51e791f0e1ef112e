"""GNS001: series of kernels that only read and write, which one kernel could replace."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise

import numpy as np

from advisor_core.api.advisors import Column, Observations, Params, Reference, advisor
from advisor_core.api.facts import HOST_EVENTS, Facts, NotApplicable, launches, matching
from advisors.columns import shares
from advisors.measuring import row
from advisors.messages import message
from advisors.optimizer_marks import updating
from advisors.step_kernels import call_stack, kernel_rows, step_kernels

MEMORY_BOUND = ("elementwise", "cast", "copy", "normalisation", "reduction", "random", "transpose")
"""Classes whose kernels read their inputs, do little with them and write the result: neighbours can be one kernel."""

_COMPILED = re.compile("^triton_")
"""Kernels that torch.compile has made: they are fused already."""

_CLEARING = re.compile("^mem_?set", re.IGNORECASE)
"""Clears the memory that the kernel behind it adds to: part of that kernel, not of what stands before it."""

_SHOWN = 4
"""Operator types of a series that are named."""


@advisor(
    "network_structure.memory_bound_chains",
    needs=(step_kernels,),
    wants=(launches, HOST_EVENTS),
    columns=(
        Column(
            "chains", "float", "count", "series of neighbouring kernels that only read and write, per step", zh="链数"
        ),
        Column("kernels", "float", "count", "kernels in them, per step", zh="kernel 数"),
        Column("chain", "text", "", "the series on which most time is spent, by operator type", zh="算子链"),
        Column("chain_ns", "float", "ns", "their time per step", zh="算子链"),
        Column("saving_ns", "float", "ns", "of it: all but the longest kernel of each series", zh="节省"),
        *shares("saving_ns"),
    ),
)
def memory_bound_chains(facts: Facts, params: Params) -> Observations:
    """Series of kernels that only read and write, without the update of the parameters.

    One kernel could do the work of each series, and takes at least as long as the longest of them."""
    kernels = facts[step_kernels]
    works = ~matching(kernels.frame["type"], _CLEARING)
    frame = kernels.frame[works]
    unbroken = np.cumsum(kernels.breaks)[works]
    breaks = np.diff(unbroken, prepend=unbroken[:1]) > 0
    is_memory_bound = frame["operator_class"].isin(MEMORY_BOUND).to_numpy() & ~matching(frame["type"], _COMPILED)
    updates = np.zeros(len(works), dtype=np.bool_)
    updates[updating(facts, kernels)] = True
    is_memory_bound &= ~updates[works]
    series = np.cumsum(~is_memory_bound | np.roll(~is_memory_bound, 1) | breaks)
    by_series = frame[is_memory_bound].groupby(series[is_memory_bound], sort=False)
    size, total, longest = (
        by_series["duration_ns"].count(),
        by_series["duration_ns"].sum(),
        by_series["duration_ns"].max(),
    )
    chain_ids = size.index[size > 1]
    if not len(chain_ids):
        raise NotApplicable(message("memory_bound_chains.none"))
    rows = np.flatnonzero(is_memory_bound & np.isin(series, chain_ids))
    names = frame["type"].iloc[rows].astype(str).groupby(series[rows], sort=False).agg(series_text)
    saving_by_chain = total[chain_ids] - longest[chain_ids]
    by_chain = saving_by_chain.groupby(names[chain_ids]).sum().sort_values(ascending=False, kind="stable")
    saving_ns = float(saving_by_chain.sum()) / kernels.steps

    def evidence(_: int) -> list[Reference]:
        return [
            kernel_rows(message("memory_bound_chains.rows"), frame.iloc[rows]),
            *call_stack(facts, frame.iloc[rows]),
        ]

    result = row(
        chains=len(chain_ids) / kernels.steps,
        kernels=float(size[chain_ids].sum()) / kernels.steps,
        chain=str(by_chain.index[0]),
        chain_ns=float(total[chain_ids].sum()) / kernels.steps,
        saving_ns=saving_ns,
        share_of_step=saving_ns / kernels.wall_ns,
        share_of_computing=saving_ns / kernels.kernel_ns,
    )
    return Observations(result, evidence, cure=lambda _: kernels.shorter(frame.iloc[rows]))


def series_text(types: Iterable[str]) -> str:
    """The types of a series in order, the first few of many."""
    names = list(types)
    runs = [name for name, following in pairwise([*names, ""]) if name != following]
    return " + ".join([*runs[:_SHOWN], "…"] if len(runs) > _SHOWN else runs)
