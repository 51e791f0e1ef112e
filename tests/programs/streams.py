"""Operators of a recorded program, with the data flow that was recorded with them: who wrote what each one reads."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any

BYTES = {
    "f64": 8,
    "i64": 8,
    "c64": 8,
    "f32": 4,
    "i32": 4,
    "bf16": 2,
    "f16": 2,
    "i16": 2,
    "bool": 1,
    "u8": 1,
    "i8": 1,
}
"""Bytes of an element, by the short names of the recordings."""

CARRYING = frozenset({"_to_copy", "clone", "contiguous", "copy", "constant_pad_nd"})
"""Operators that change layout, type or extent of a tensor and nothing else."""

PRODUCTS = frozenset({"mm", "addmm", "bmm", "baddbmm", "_grouped_mm"})

HEAVY = PRODUCTS | {"convolution", "fusion_attention", "convolution_backward", "fusion_attention_backward"}


@dataclass(frozen=True)
class Tensor:
    """A tensor of an operator: the number of its storage, and the operator that wrote that last (-1: none, it is a
    weight or an input of the program)."""

    storage: int
    shape: tuple[int, ...]
    dtype: str
    writer: int = -1

    @property
    def bytes(self) -> int:
        """Size of what is read or written."""
        return prod(self.shape) * BYTES.get(self.dtype, 4)


@dataclass(frozen=True)
class Operator:
    """``name``: without namespace and without the underscore of an operator in place. ``phase``: as recorded: ``fwd``,
    ``recompute``, ``bwd``, ``opt``, ``clip``, ``prefill``, ... ``sequence``: of the node of autograd, -1 unknown."""

    number: int
    name: str
    phase: str
    sequence: int
    reads: tuple[Tensor, ...]
    writes: tuple[Tensor, ...]

    @property
    def forward(self) -> bool:
        """Whether it is no part of a backward pass or of an optimizer."""
        return self.phase not in ("bwd", "opt", "clip")


@dataclass(frozen=True)
class Stream:
    """The operators that compute something, by number; views are left out. ``of_node``: the operators
    of the forward pass with the sequence number of each node of autograd. ``views``: the nodes of views."""

    operators: dict[int, Operator]
    of_node: dict[int, list[int]]
    views: set[int]
    readers: dict[int, list[int]] = field(default_factory=dict)

    def of(self, names: Iterable[str]) -> Iterator[Operator]:
        """The forward operators of these names, in order."""
        wanted = frozenset(names)
        return (one for one in self.operators.values() if one.name in wanted and one.forward)

    def writer(self, tensor: Tensor) -> Operator | None:
        """The operator that wrote a tensor."""
        return self.operators.get(tensor.writer)

    def behind(self, number: int) -> list[Operator]:
        """The forward operators that read what this one wrote, in order."""
        return [self.operators[reader] for reader in self.readers.get(number, ()) if self.operators[reader].forward]

    def source(self, tensor: Tensor, through: Callable[[Operator], bool]) -> tuple[Operator | None, set[int]]:
        """The first operator before a tensor that does not only pass it on (``through``, by the first input that has
        its shape), and the operators in between."""
        passed: set[int] = set()
        one = self.writer(tensor)
        while one is not None and one.reads and through(one):
            passed.add(one.number)
            alike = [read for read in one.reads if one.writes and read.shape == one.writes[0].shape]
            one = self.writer((alike or one.reads)[0])
        return one, passed

    def before(self, numbers: Iterable[int], through: Callable[[Operator], bool]) -> set[int]:
        """The operators that these depend on, by any input, as far as all of them are such (``through``)."""
        passed: set[int] = set()
        todo = list(numbers)
        while todo:
            for tensor in self.operators[todo.pop()].reads:
                one = self.writer(tensor)
                if one is not None and one.number not in passed and through(one):
                    passed.add(one.number)
                    todo.append(one.number)
        return passed


def read(path: Path) -> Stream:
    """The stream of a file as `record_operators.py` writes them."""
    with gzip.open(path, "rt") as lines:
        records = [json.loads(line) for line in lines][1:]
    operators: dict[int, Operator] = {}
    of_node: dict[int, list[int]] = defaultdict(list)
    views: set[int] = set()
    readers: dict[int, list[int]] = defaultdict(list)
    for record in records:
        number, sequence = record["i"], record.get("seq", -1)
        is_forward = record["ph"] != "bwd"
        # A recorder takes a collective that works in place for a view.
        if record.get("view") and not record["op"].startswith("c10d::"):
            views |= {sequence} if is_forward and sequence not in of_node else set()
            continue
        if is_forward:
            of_node[sequence].append(number)
        name = record["op"].split("::")[1]
        one = Operator(
            number,
            name.rstrip("_"),
            record["ph"],
            sequence,
            tuple(_tensor(entry, entry[3]) for entry in record["in"]),
            tuple(_tensor(entry, number) for entry in record.get("out", ())),
        )
        operators[number] = one
        for tensor in one.reads:
            if tensor.writer >= 0 and number not in readers[tensor.writer]:
                readers[tensor.writer].append(number)
    return Stream(operators, dict(of_node), views, dict(readers))


def _tensor(entry: Sequence[Any], writer: int) -> Tensor:
    return Tensor(entry[0], tuple(entry[1]), entry[2], writer)
