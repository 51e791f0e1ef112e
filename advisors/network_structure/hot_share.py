"""NS001: how much of the kernel time is attention and matrix products."""

from __future__ import annotations

import re
from typing import Any

import pandas as pd

from advisor_core.api.advisors import Column, Metric, Observations, Params, Reference, advisor
from advisor_core.api.facts import Facts, NotApplicable, context, matching, parts
from advisors.columns import OPERATOR_CLASS, PER_STEP_NS, SHARE
from advisors.fusion.chains import fusion_chains
from advisors.messages import message
from advisors.network_structure.updates import updating_kernels
from advisors.phases import PHASE, phases_of
from advisors.step_kernels import StepKernels, kernel_rows, records, step_kernels

PRODUCTS = ("attention", "matmul")
_FULL = ("training", "log_probs", "prefill")
"""Parts that compute whole sequences."""
_SOFTMAX = re.compile(r"(?<!log)softmax(?!crossentropy)", re.I)


@advisor(
    "network_structure.hot_share",
    needs=(step_kernels, context, fusion_chains),
    wants=(parts,),
    about=(PHASE,),
    columns=(
        Column("hot_share", "float", "ratio", "attention and matrix products of all kernel time", zh="热点占比"),
        Column("expected_share", "float", "ratio", "what the phase should show", zh="应有占比"),
        Column("hot_ns", "float", "ns", "attention and matrix products per step", zh="热点"),
        Column("kernel_ns", "float", "ns", "all kernels per step but those of the optimizer", zh="kernel"),
        Column("excess_ns", "float", "ns", "kernel time beyond what the expected share implies", zh="多出"),
        Column("largest_other", "text", "", "the class that takes most of the rest", zh="其他最大"),
        Column("largest_other_share", "float", "ratio", "its part of all kernel time", zh="其他最大占比"),
        Column("share_of_step", "float", "ratio", "excess_ns over the step", zh="占 step"),
    ),
    params=("full_share", "decode_share"),
    evidence=(
        OPERATOR_CLASS,
        PER_STEP_NS,
        SHARE,
    ),
)
def hot_share(facts: Facts, params: Params) -> Observations:
    """The share of attention and matrix products in the kernel time of a language model, in each part of the recording.
    The optimizer is left out: its time goes with the parameters and not with the tokens, and the expected shares speak
    of the layers."""
    kernels = facts[step_kernels]
    frame = kernels.frame[~updating_kernels(kernels, facts[fusion_chains])]
    phases = phases_of(facts, frame)
    frames = {phase: part for phase in dict.fromkeys(phases.tolist()) if _has_products(part := frame[phases == phase])}
    if not frames:
        raise NotApplicable(message("network_structure.no_attention"))
    rows = [_row(part, phase, kernels, params) for phase, part in frames.items()]

    def evidence(number: int) -> list[Reference]:
        part = frames[rows[number]["phase"]]
        table = _by_class(part, kernels).sort_values(ascending=False, kind="stable").rename("per_step_ns").reset_index()
        table["operator_class"] = table["operator_class"].astype(str)
        table["share"] = table["per_step_ns"] / rows[number]["kernel_ns"]
        other_rows = part[~part["operator_class"].isin(PRODUCTS)]
        return [
            Metric(message("network_structure.by_class"), records(table)),
            kernel_rows(message("network_structure.not_hot"), other_rows),
        ]

    return Observations(pd.DataFrame(rows), evidence)


def _by_class(frame: pd.DataFrame, kernels: StepKernels) -> pd.Series:
    sums: pd.Series = frame.groupby("operator_class", observed=True)["duration_ns"].sum() / kernels.steps
    return sums


def _has_products(frame: pd.DataFrame) -> bool:
    """A language model runs: attention and products, and fewer convolutions."""
    took = frame.groupby("operator_class", observed=True)["duration_ns"].sum()
    product_ns = float(took.get("matmul", 0.0))
    has_attention = bool(took.get("attention", 0.0)) or bool(matching(frame["type"], _SOFTMAX).any())
    return has_attention and product_ns > 0 and product_ns >= float(took.get("convolution", 0.0))


def _row(frame: pd.DataFrame, phase: str, kernels: StepKernels, params: Params) -> dict[str, Any]:
    kernel_ns, by_class = float(frame["duration_ns"].sum()) / kernels.steps, _by_class(frame, kernels)
    hot_ns = float(by_class.reindex(PRODUCTS).fillna(0).sum())
    # Where the phase is not known, the lower share cannot be wrong.
    expected = params["full_share"] if phase in _FULL else params["decode_share"]
    other_classes = by_class.drop([*PRODUCTS, "optimizer"], errors="ignore").sort_values(ascending=False, kind="stable")
    excess_ns = max(kernel_ns - hot_ns / expected, 0.0)
    return {
        "phase": phase,
        "hot_share": hot_ns / kernel_ns,
        "expected_share": expected,
        "hot_ns": hot_ns,
        "kernel_ns": kernel_ns,
        "excess_ns": excess_ns,
        "largest_other": str(other_classes.index[0]) if len(other_classes) else None,
        "largest_other_share": float(other_classes.iloc[0]) / kernel_ns if len(other_classes) else None,
        "share_of_step": excess_ns / kernels.wall_ns,
    }
