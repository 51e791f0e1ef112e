"""The words of one vendor's exports: what facts and advisors look for, as data that a plugin registers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final

from advisor_core.text.base import Text
from advisor_core.text.packaged import packaged_yaml
from advisor_core.vocabulary.chips import ChipModel
from advisor_core.vocabulary.host_labels import ACTIVITIES, UNNAMED, LedgerLeaf
from advisor_core.vocabulary.operator_class import OperatorClasses, OperatorWords
from advisor_core.vocabulary.phases import Aliases, PhaseMark, phase_of

Pattern = re.Pattern[str]

NOTHING: Final = re.compile(r"(?!)")
"""Is in no text: what a vendor has no word for."""


@dataclass(frozen=True)
class Vocabulary:
    """The words of one vendor, by ``name``; without a name nothing is known. Patterns are searched in names.

    ``devices``: what reports call the devices, in the plural; the name where nothing is given.
    ``compute_tasks``: task types that compute; everything else in a stream moves, waits or records.
    ``untold_tasks``: task types that tell no kind. ``copy_tasks``, ``wait_tasks``: task types, and like
    ``plane_marks`` names of tasks without one. ``collective``: what the name of a collective tells, by its groups
    ``operation``, ``group`` (digits of the group's hash) and ``index`` (n-th call of the group). ``plane_waits``,
    ``plane_marks``: tasks of a collective in which it waits, and those in which it neither waits nor moves data.
    ``compile_calls`` to ``copy_calls``: calls of the runtime that stand for a label of the host.
    ``launching_calls``: calls that launch single kernels, and those that replay a graph where they have the same
    word. ``sync_operators``: operators that wait for the device, for traces without calls of the runtime.
    ``data_loader``, ``step_mark``, ``annotation``: marks of the framework around Python code. ``backward``: types
    of kernels, ``optimizer``: host events that only training has. ``dropout``: kernels that draw masks for dropout,
    which a model has in training mode only. ``graph_replay``: calls that replay a captured
    graph. ``decode``, ``prefill``: types of kernels that only this part of inference has. ``products``: types of
    matrix products, ``softmax``: of softmaxes. ``fp32_kernels``, ``tf32_kernels``: names of kernels that compute
    products and convolutions in FP32, and of those that shorten it to TF32. ``prefill_mark``, ``decode_mark``: marks of
    engines around a pass that computes new sequences, or the next token of running ones; the mark of a pass that does
    both is both. ``pass_size``: what such a mark tells of the size of its pass, by its groups: sequences (``context``,
    ``generation``) and tokens (``context_tokens``, ``generation_tokens``) of each kind, or of all (``batch``,
    ``batch_tokens``). ``forward_mark``: marks of engines around the forward pass of the model within such a pass.
    ``decode_rows``: a matrix product with at most this many rows on the
    activation side carries single tokens, or short sequences. ``graph_siblings``: a call that launches more kernels
    than this replays a graph. ``memory_totals``: components of ``memory_record`` that tell what the framework
    holds, the most telling one first. ``core_counters``: whether the profilers can count cycles and times of the
    pipes of cores. ``task_queue``: whether a thread of its own can take the launches from those that run the model.
    ``interfaces``: operators that stand for a call of the vendor's library: before it is put into a task queue they
    work out its parameters and workspace, which another mode of the queue does behind it.
    """

    name: str = ""
    devices: Text | None = None
    operator_classes: OperatorClasses = field(default_factory=OperatorClasses)
    compute_tasks: tuple[str, ...] = ()
    untold_tasks: tuple[str, ...] = ()
    copy_tasks: Pattern = NOTHING
    wait_tasks: Pattern = NOTHING
    collective: Pattern = NOTHING
    plane_waits: Pattern = NOTHING
    plane_marks: Pattern = NOTHING
    compile_calls: Pattern = NOTHING
    memory_calls: Pattern = NOTHING
    launching_calls: Pattern = NOTHING
    sync_calls: Pattern = NOTHING
    copy_calls: Pattern = NOTHING
    sync_operators: Pattern = NOTHING
    data_loader: Pattern = NOTHING
    step_mark: Pattern = NOTHING
    annotation: Pattern = NOTHING
    backward: Pattern = NOTHING
    optimizer: Pattern = NOTHING
    dropout: Pattern = NOTHING
    graph_replay: Pattern = NOTHING
    interfaces: Pattern = NOTHING
    decode: Pattern = NOTHING
    prefill: Pattern = NOTHING
    products: Pattern = NOTHING
    softmax: Pattern = NOTHING
    fp32_kernels: Pattern = NOTHING
    tf32_kernels: Pattern = NOTHING
    prefill_mark: Pattern = NOTHING
    decode_mark: Pattern = NOTHING
    pass_size: Pattern = NOTHING
    forward_mark: Pattern = NOTHING
    decode_rows: int = 0
    graph_siblings: int = 0
    memory_totals: tuple[str, ...] = ()
    core_counters: bool = True
    task_queue: bool = True
    leaves: tuple[LedgerLeaf, ...] = ()
    """Of plugins."""
    phase_marks: tuple[PhaseMark, ...] = ()
    """Of frameworks and plugins."""
    chips: tuple[ChipModel, ...] = ()
    """Of the vendor and plugins."""

    @property
    def called(self) -> Text:
        """The name of the devices in reports."""
        return self.devices or Text(en=self.name, zh=self.name)

    @property
    def calls(self) -> Mapping[str, Pattern]:
        """Label of the host to the calls that it stands for."""
        own = {leaf.activity: re.compile(leaf.calls, re.IGNORECASE) for leaf in self.leaves}
        named = {"compile": self.compile_calls, "memory": self.memory_calls}
        return {**named, "sync": self.sync_calls, "copy": self.copy_calls, **own}

    @property
    def activities(self) -> tuple[str, ...]:
        """The labels of the host, outermost cause first; those of plugins after the calls that have a name."""
        named = (activity for activity in ACTIVITIES if activity not in UNNAMED)
        return (*named, *(leaf.activity for leaf in self.leaves), *UNNAMED)

    @property
    def phases(self) -> frozenset[str]:
        """The known phases of an iteration of reinforcement learning."""
        return frozenset(mark.phase for mark in self.phase_marks)

    def phase_of(self, name: str, aliases: Aliases = ()) -> str:
        """The phase that a name is about, '' for none."""
        return phase_of(name, self.phase_marks, aliases)

    def adding(
        self,
        words: Iterable[OperatorWords],
        leaves: Iterable[LedgerLeaf],
        marks: Iterable[PhaseMark],
        chips: Iterable[ChipModel],
    ) -> Vocabulary:
        """With what plugins add."""
        classes = self.operator_classes.adding(words)
        return replace(
            self, operator_classes=classes, leaves=tuple(leaves), phase_marks=tuple(marks), chips=tuple(chips)
        )


def read_vocabulary(name: str, package: str, words: str, classes: str) -> Vocabulary:
    """The vocabulary of a vendor from two YAML files of a package: its words, whose keys are fields of `Vocabulary`,
    and its operator classes. Raises `ValueError` for a key or a pattern that is none."""
    known = {item.name: item.type for item in fields(Vocabulary)}
    read: dict[str, Any] = {}
    for key, value in packaged_yaml(package, words).items():
        if key not in known:
            raise ValueError(f"{package}/{words}: {key!r} is no field of a vocabulary")
        read[key] = _value(known[key], value)
    return Vocabulary(name, operator_classes=OperatorClasses.of(packaged_yaml(package, classes)), **read)


def _value(kind: object, value: Any) -> Any:
    """A value of a file as the field of this type has it."""
    if kind == "Pattern":
        return _pattern(value)
    if kind == "Text | None":
        return Text.model_validate(value)
    return tuple(value) if isinstance(value, list) else value


def _pattern(alternatives: str | Iterable[str]) -> Pattern:
    texts = [alternatives] if isinstance(alternatives, str) else list(alternatives)
    return re.compile("|".join(texts), re.IGNORECASE)
