"""CO024: logits that all ranks gather, so that each of them computes the same loss over the whole vocabulary.

A product computes a part of the vocabulary on each of some ranks. Where these are gathered before the loss, the largest
tensor of the model travels, and every rank passes over all of it, forward and backward. A loss over divided logits
exchanges three numbers for each token (the largest logit, the sum, the logit of the label) and passes over its own
part.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pandas as pd

from advisor_core.api.advisors import Column, Observations, Params, Reference, Rows, advisor
from advisor_core.api.facts import (
    COLLECTIVES,
    KERNELS,
    Facts,
    Merging,
    NotApplicable,
    collective_calls,
    elements,
    matching,
    steps,
)
from advisors.columns import SAVEABLE_SHARE, STEP_NS
from advisors.communication.calls import CALL, call_metric, call_rows, calls_in_steps
from advisors.fusion.dataflow import Node
from advisors.fusion.nodes import KernelNodes, kernel_nodes
from advisors.measuring import row, share, step_count, step_ns
from advisors.messages import message
from advisors.step_kernels import EVIDENCE_COLUMNS, StepKernels, step_kernels

if TYPE_CHECKING:
    import numpy.typing as npt

Ints: TypeAlias = "npt.NDArray[np.int64]"

_GATHERS = re.compile(r"all_?gather", re.I)
_LOSS = re.compile(r"log_?softmax|cross_?entropy|nll_?loss", re.I)
"""Kernels of a loss over classes, by their types (operators of PyTorch and of Ascend/op-plugin)."""

_EXCHANGED = 3
"""Numbers that a loss over a divided vocabulary exchanges for each token: the largest logit, the sum and the logit of
the label.

Source: vocab_parallel_cross_entropy of Megatron-LM, loss_parallel of PyTorch."""
_NUMBER_BYTES = 4
_LOGIT_BYTES = 2
"""Of a logit, where the size of the gather is not recorded: models compute them in 16 bits."""


@dataclass(frozen=True)
class _Gathered:
    """A gather of logits: ``call`` is its row, ``part`` and ``whole`` the last axis before and after it, ``rows`` how
    many tokens there are. ``joins``: kernels that put parts together or cut one out; ``over``: others on the whole
    vocabulary, up to the next product."""

    call: int
    part: int
    whole: int
    rows: int
    joins: Ints
    over: Ints

    @property
    def members(self) -> int:
        """Ranks that have a part each."""
        return self.whole // self.part


@advisor(
    "communication.gathered_logits",
    needs=(steps, collective_calls, step_kernels, kernel_nodes),
    wants=(KERNELS, COLLECTIVES),
    columns=(
        STEP_NS,
        Column("gathers", "float", "count", "gathers of logits per step", zh="收集次数"),
        Column("members", "int", "count", "ranks that compute a part of the vocabulary each", zh="成员数"),
        Column("vocabulary", "int", "count", "size of the vocabulary", zh="词表大小"),
        Column("logit_tokens", "int", "count", "tokens whose logits are gathered at once", zh="token 数"),
        Column("gather_ns", "float", "ns", "what the gathers take that no computing covers, per step", zh="收集耗时"),
        Column("join_ns", "float", "ns", "what putting together and cutting out takes, per step", zh="拼接与切分"),
        Column("loss_ns", "float", "ns", "what other kernels over the whole vocabulary take, per step", zh="loss 耗时"),
        Column("saveable_ns", "float", "ns", "what a loss over divided logits saves, per step", zh="可节省"),
        SAVEABLE_SHARE,
    ),
    evidence=(*CALL,),
)
def gathered_logits(facts: Facts, params: Params) -> Observations:
    """Gathers of logits for a loss, and what a loss over the divided vocabulary would save."""
    kernels, calls = facts[step_kernels], calls_in_steps(facts)
    gathers = np.flatnonzero(calls["operation"].str.contains(_GATHERS.pattern, case=False, regex=True).to_numpy())
    if not len(gathers):
        raise NotApplicable(message("communication.no_gathered_logits"))
    kernels.require_shapes()
    search = _Search(kernels, facts[kernel_nodes], calls)
    found = [one for number in gathers.tolist() if (one := search.logits(number)) is not None]
    if not found:
        raise NotApplicable(message("communication.no_gathered_logits"))
    largest = max(found, key=lambda one: one.rows * one.whole)
    own = calls.iloc[[one.call for one in found]]
    joins, over = (np.concatenate([getattr(one, name) for one in found]) for name in ("joins", "over"))
    duration = kernels.frame["duration_ns"].to_numpy()
    count, wall = step_count(facts), step_ns(facts)
    after = np.array([_exchange_ns(one, calls) for one in found])
    gather, join, loss = (float(one.sum()) / count for one in (own["uncovered_ns"], duration[joins], duration[over]))
    saved = (own["uncovered_ns"].to_numpy() - after).clip(0).sum() / count + join + loss * (1 - 1 / largest.members)
    frame = row(
        step_ns=wall,
        gathers=len(found) / count,
        members=largest.members,
        vocabulary=largest.whole,
        logit_tokens=largest.rows,
        gather_ns=gather,
        join_ns=join,
        loss_ns=loss,
        saveable_ns=saved,
        saveable_share=share(saved, wall),
    )

    def evidence(number: int) -> Sequence[Reference]:
        longest = own.sort_values("uncovered_ns", ascending=False, kind="stable")
        chosen = np.concatenate([joins, over])
        shown = kernels.frame["row"].to_numpy()[chosen[np.argsort(-duration[chosen], kind="stable")]]
        title = message("communication.over_the_vocabulary", vocabulary=largest.whole)
        return [call_metric(longest), *call_rows(facts, longest), Rows(title, KERNELS, shown, EVIDENCE_COLUMNS)]

    def cure(number: int) -> Merging:
        tasks = kernels.frame["work"].to_numpy()
        parts = np.concatenate([np.full(len(one.over), 1 / one.members) for one in found])
        took = np.concatenate([own["elapse_ns"].to_numpy(), duration[joins], duration[over]]).astype(np.float64)
        then = np.concatenate([np.minimum(after, own["elapse_ns"]), np.zeros(len(joins)), duration[over] * parts])
        work = np.concatenate([own["work"].to_numpy(), tasks[joins], tasks[over]]).astype(np.int64)
        return Merging.none(work, took, then)

    return Observations(frame, evidence, cure=cure)


def _exchange_ns(one: _Gathered, calls: pd.DataFrame) -> float:
    """What exchanging a few numbers for each token takes, at the speed of the gather, with its gaps for each call."""
    call = calls.iloc[one.call]
    moving = max(float(call["elapse_ns"] - call["wait_ns"] - call["launch_gap_ns"]), 0.0)
    sent = float(call["bytes"]) if call["bytes"] > 0 else float(one.rows * (one.whole - one.part) * _LOGIT_BYTES)
    return _EXCHANGED * (float(call["launch_gap_ns"]) + moving * one.rows * _NUMBER_BYTES / sent)


class _Search:
    """Looks for products, gathers and losses on the kernels of a rank, in order of start."""

    def __init__(self, kernels: StepKernels, nodes: KernelNodes, calls: pd.DataFrame) -> None:
        frame = kernels.frame
        self._order = np.argsort(frame["start_ns"].to_numpy(), kind="stable")
        self._start = frame["start_ns"].to_numpy()[self._order]
        signature = frame["signature"].to_numpy()[self._order]
        self._nodes = [nodes.nodes[number] for number in signature.tolist()]
        self._products = np.flatnonzero((frame["operator_class"] == "matmul").to_numpy()[self._order])
        self._loss = matching(frame["type"], _LOSS)[self._order]
        self._backward = nodes.backward[self._order]
        self._begin, self._behind = (calls[name].to_numpy() for name in ("start_ns", "end_ns"))
        self._members = calls["members"].to_numpy()

    def logits(self, number: int) -> _Gathered | None:
        """The gather of logits that a call is; ``None`` where it is none: a product wrote what it gathers, and a loss
        with a backward pass reads several times as many classes for as many tokens before the next product."""
        before, first = np.searchsorted(self._start, [self._begin[number], self._behind[number]], side="left").tolist()
        last, later = np.searchsorted(self._products, [before, first], side="left").tolist()
        if not last or not self._nodes[self._products[last - 1]].writes:
            return None
        part = self._nodes[self._products[last - 1]].writes[0][0]
        stretch = np.arange(first, self._products[later] if later < len(self._products) else len(self._nodes))
        loss = stretch[self._loss[stretch]]
        if not len(part) or not len(loss) or not self._backward[stretch].any():
            return None
        rows = elements(part) // part[-1]
        wholes = {shape[-1] for place in loss.tolist() for shape in _shapes(self._nodes[place]) if len(shape) > 1}
        members = int(self._members[number])
        fit = [one for one in wholes if one > part[-1] and one % part[-1] == 0 and members in (one // part[-1], -1, 0)]
        if not fit:
            return None
        whole = max(fit)
        on_whole, on_part = (
            np.array([_has(self._nodes[place], rows, axis) for place in stretch.tolist()], dtype=np.bool_)
            for axis in (whole, part[-1])
        )
        joins = on_whole & on_part
        if not (on_whole & self._loss[stretch]).any():
            return None
        own = self._order[stretch]
        return _Gathered(number, part[-1], whole, rows, own[joins], own[on_whole & ~joins])


def _shapes(node: Node) -> list[tuple[int, ...]]:
    return [shape for shape, _ in (*node.reads, *node.writes)]


def _has(node: Node, rows: int, axis: int) -> bool:
    """Whether it reads or writes so many rows with a last axis of this size."""
    return any(shape and shape[-1] == axis and elements(shape) == rows * axis for shape in _shapes(node))
