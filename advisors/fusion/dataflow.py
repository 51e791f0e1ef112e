"""The data flow between kernels, from what an export has: the shapes and types of what each one reads and writes.

No export says which kernel wrote the tensor that another one reads. A kernel can have written it if one of its outputs
has as many elements of the same type (views change the shape, not the number). Where several can have, the expression
that is looked for decides, and among what fits it the nearest: nothing is decided by one accident of sizes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from advisor_core.api.facts import Shape, elements, shapes_of
from advisors.fusion.computations import Vocabulary
from advisors.fusion.expressions import Expression
from advisors.step_kernels import ON_LISTS

REACH = 48
"""So many kernels before and behind a kernel are searched: the longest computation has 20, and the kernels of other
branches lie between (a layer of the programs that were recorded has 60 to 180)."""

CANDIDATES = 6
"""So many kernels are tried that can have written one tensor, the nearest first."""

COPIES_BEHIND = 2
"""So many copies are tried behind the kernels that can read a tensor: parts of a gradient are put together last."""

NEARBY = 8
"""So many kernels are looked at for what follows at once: a copy that extends a tensor, a step that may be missing, or
that has to stand right there."""

MOST_EXPERTS = 2048
"""No router has more (the operators for routers take no more, see docs/sources.md#moe-gating), every vocabulary has."""

OF_PYTORCH = "aten::"
"""Operator types of kernels on GPUs begin so: they are the operators of PyTorch that launched them."""

REAL_OF = {"COMPLEX64": "FLOAT", "COMPLEX128": "DOUBLE"}
"""The type of the two parts of a complex number."""

Key = tuple[int, str]
"""The key that tells tensors apart: number of elements and type."""


@dataclass(frozen=True)
class Node:
    """A kernel with its operation and its roles. ``reads`` and ``writes``: tensors of more than one element, as shape
    and key. ``views``: kernels of its device read a part of a tensor where it lies; no copy cuts it out before.
    ``in_place``: it is known to write over the first tensor that it reads."""

    operator: str
    operation: str
    roles: frozenset[str]
    reads: tuple[tuple[Shape, Key], ...]
    writes: tuple[tuple[Shape, Key], ...]
    carries: bool
    creates: bool
    views: bool = False
    in_place: bool = False

    @cached_property
    def read_keys(self) -> frozenset[Key]:
        """The keys of what it reads."""
        return frozenset(key for _, key in self.reads)

    @cached_property
    def distinct_writes(self) -> tuple[Key, ...]:
        """The keys of what it writes, each once, in order."""
        return tuple(dict.fromkeys(key for _, key in self.writes))

    @cached_property
    def distinct_reads(self) -> tuple[Key, ...]:
        """The keys of what it reads, each once, in order."""
        return tuple(dict.fromkeys(key for _, key in self.reads))

    @cached_property
    def written_keys(self) -> frozenset[Key]:
        """The keys of what it writes."""
        return frozenset(key for _, key in self.writes)

    @cached_property
    def expands(self) -> bool:
        """Whether what it reads is listed as large as what it writes, as exports list an expanded view."""
        return (
            self.operation == "expand"
            and bool(self.reads and self.writes)
            and self.reads[0][1][0] == self.writes[0][1][0]
        )


def fits(step: Expression, node: Node) -> bool:
    """Whether the kernel can be the step of an expression."""
    return node.operation in step.operations and (not step.role or step.role in node.roles)


def node_of(kernel: Mapping[Any, object], words: Vocabulary) -> Node:
    """The node of a row of ``kernels``."""
    operator = str(kernel["type"])
    operation = words.operation_of(operator)
    creates = operation in words.creating
    reads = () if creates else _tensors(str(kernel["input_shapes"]), str(kernel["input_dtypes"]))
    writes = _tensors(str(kernel["output_shapes"]), str(kernel["output_dtypes"]))
    if operator.startswith(ON_LISTS) and writes:
        # It reads one list of tensors after the other: the first of each list stands for it.
        reads, writes = reads[:: len(writes)], writes[:1]
    views = operator.startswith(OF_PYTORCH)
    roles = _roles(reads, writes)
    if any(name.removeprefix("DT_") in REAL_OF for name in str(kernel["input_dtypes"]).split(";")):
        roles |= _complex_roles(reads, writes)
    if views and operation == "copy" and reads and writes and reads[0][1][1] != writes[0][1][1]:
        operation = "cast"
    elif views and operation == "copy" and reads and writes and reads[0][1][0] < writes[0][1][0]:
        operation = "expand"
    if views and writes:
        # A view leaves out axes of one element.
        length = next((size for size in reversed(writes[0][0]) if size > 1), 1)
        roles |= {"parts"} if length % 2 else {"parts", "halves"}
    in_place = views and operator.endswith("_") and operation != "copy" and not creates
    return Node(operator, operation, roles, reads, writes, operation in words.carrying, creates, views, in_place)


def _tensors(shapes: str, dtypes: str) -> tuple[tuple[Shape, Key], ...]:
    parsed_shapes, types = shapes_of(shapes), dtypes.split(";")
    if len(parsed_shapes) != len(types):
        return ()
    tensors = [(shape, _key(shape, name.removeprefix("DT_"))) for shape, name in zip(parsed_shapes, types, strict=True)]
    return tuple((shape, key) for shape, key in tensors if key[0] > 1)


def _key(shape: Shape, dtype: str) -> Key:
    """A view takes pairs of real numbers for complex ones, and complex numbers for pairs."""
    real = REAL_OF.get(dtype)
    return (elements(shape), dtype) if real is None else (2 * elements(shape), real)


def _roles(reads: Sequence[tuple[Shape, Key]], writes: Sequence[tuple[Shape, Key]]) -> frozenset[str]:
    if not reads:
        return frozenset()
    largest_shape, (most_elements, _) = max(reads, key=lambda tensor: tensor[1][0])
    written_elements = max((key[0] for _, key in writes), default=1)
    roles = set()
    if written_elements < most_elements:
        roles.add("row" if written_elements * largest_shape[-1] == most_elements else "column")
    elif largest_shape[-1] == 1:
        roles.add("row")
    if all(key[0] == written_elements for _, key in reads):
        roles.add("equal")
        if len(reads) == 2:
            roles.add("pair")
    if len(reads) == 1:
        roles.add("single")
    if len(reads) == 2 and _is_bias_of(reads[1][0], reads[0][0]) and written_elements == most_elements:
        roles.add("bias")
    if len(reads) == 2 and any(_is_bias_of(one, other) for (one, _), (other, _) in (reads, reads[::-1])):
        roles.add("weighted")
    if writes and writes[0][0][-1] == writes[0][1][0]:
        roles.add("halves")
    read_int8, written_int8 = (any(dtype == "INT8" for _, (_, dtype) in side) for side in (reads, writes))
    if read_int8 != written_int8:
        roles.add("quantises" if written_int8 else "restores")
    if writes and any(_is_row_of(shape, reads[0][0]) for shape, _ in reads[1:]):
        roles.add("append")
    if largest_shape[-1] <= MOST_EXPERTS:
        roles.add("narrow")
    return frozenset(roles)


def _complex_roles(reads: Sequence[tuple[Shape, Key]], writes: Sequence[tuple[Shape, Key]]) -> frozenset[str]:
    """Of a kernel that reads complex numbers."""
    sizes = sorted(key[0] for _, key in reads)
    turns = len(reads) == 2 and sizes[0] < sizes[1] and reads[0][0][-1] == reads[1][0][-1]
    return frozenset({"turned", "turns"} if turns and writes and writes[0][1][0] == sizes[1] else {"turned"})


def _is_bias_of(shape: Shape, whole: Shape) -> bool:
    """A tensor is one row, as long as those of another one that has several."""
    return elements(shape) == shape[-1] == whole[-1] < elements(whole)


def _is_row_of(shape: Shape, whole: Shape) -> bool:
    """A tensor has the axes of another one, but one row in an axis that is neither the first nor the last."""
    differ = [axis for axis, sizes in enumerate(zip(shape, whole, strict=False)) if sizes[0] != sizes[1]]
    return len(shape) == len(whole) and len(differ) == 1 and 0 < differ[0] < len(shape) - 1 and shape[differ[0]] == 1


class Window:
    """The kernels around one, numbered from 0, with who can have written and who can read each tensor."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.nodes = nodes
        self._writers: dict[Key, list[int]] = defaultdict(list)
        self._readers: dict[Key, list[int]] = defaultdict(list)
        self._writers_of_halves: dict[Key, list[int]] = defaultdict(list)
        self._viewed: dict[Key, list[int]] = defaultdict(list)
        self._written = [
            self._with_whole(number, node) if node.views else node.distinct_writes for number, node in enumerate(nodes)
        ]
        for number, node in enumerate(nodes):
            for key in self._written[number]:
                self._writers[key].append(number)
                if "halves" in node.roles and key[0] % 2 == 0:
                    self._writers_of_halves[key[0] // 2, key[1]].append(number)
                    if node.views:
                        self._viewed[key[0] // 2, key[1]].append(number)
            for key in node.distinct_reads:
                self._readers[key].append(number)

    def _with_whole(self, number: int, node: Node) -> Sequence[Key]:
        """The keys of what a kernel writes. What is copied to where a tensor was just created is a part of that, where
        only the part is listed: the gradient of a slice."""
        keys = node.distinct_writes
        created = self.nodes[number - 1] if number else None
        if node.views and node.carries and keys and created is not None and created.creates and created.views:
            return [*keys, *(key for key in created.written_keys if key[1] == keys[0][1] and key[0] > keys[0][0])]
        return keys

    def written(self, number: int) -> Sequence[Key]:
        """The keys of what a kernel writes, and of the tensor that this is a part of."""
        return self._written[number]

    def writers(self, key: Key, reader: int, *, halves: bool = False, latest: bool = False) -> list[int]:
        """The kernels before ``reader`` that can have written the tensor, the nearest first; or (``halves``) one row
        of which it is a half. Where no copy cuts tensors, those that wrote a tensor of which it is a half come last
        (``latest``: in their place)."""
        among = self._writers_of_halves if halves else self._writers
        viewed = [] if halves else [number for number in reversed(self._viewed.get(key, ())) if number < reader]
        found = [*[number for number in reversed(among.get(key, ())) if number < reader], *viewed]
        return (sorted(found, reverse=True) if latest else found)[:CANDIDATES]

    def readers_of_parts(self, writer: int) -> list[int]:
        """The kernels behind ``writer``, the nearest first, that read as many rows as it writes, of the same type and
        shorter."""
        if not self.nodes[writer].writes:
            return []
        shape, (count, dtype) = self.nodes[writer].writes[0]
        found = []
        for number in range(writer + 1, len(self.nodes)):
            for part, (size, kind) in self.nodes[number].reads:
                if kind == dtype and part[-1] < shape[-1] and size * shape[-1] == count * part[-1]:
                    found.append(number)
                    break
            if len(found) == CANDIDATES:
                break
        return found

    def given(self, key: Key, reader: int) -> bool:
        """Whether no kernel before ``reader`` computed such a tensor: only copies of one wrote it."""
        before = (self.nodes[number] for number in self._writers.get(key, ()) if number < reader)
        return all(node.carries and key in node.read_keys for node in before)

    def readers(self, key: Key, writer: int) -> list[int]:
        """The kernels behind ``writer`` that can read the tensor, the nearest first; then those that read a half."""
        keys = (
            [key, (key[0] // 2, key[1])] if "halves" in self.nodes[writer].roles and self.nodes[writer].views else [key]
        )
        found = [number for one in keys for number in self._readers.get(one, ()) if number > writer]
        # Into a tensor that was just created.
        copies = [one for one in found[CANDIDATES:] if self.nodes[one].carries and self.nodes[one - 1].creates]
        return [*found[:CANDIDATES], *copies[:COPIES_BEHIND]]

    def sources(self, number: int) -> Iterator[Key]:
        """The tensors that a copy carries on: the first that it reads, and where that is listed as large as what it
        writes, smaller ones that were just written and extend to it."""
        node = self.nodes[number]
        if node.reads:
            yield node.reads[0][1]
        if node.expands:
            shape, (_, dtype) = node.writes[0]
            for earlier in range(number - 1, max(number - NEARBY, 0) - 1, -1):
                for narrow, key in self.nodes[earlier].writes:
                    if key[1] == dtype and _extends(narrow, shape):
                        yield key

    def expanding(self, number: int) -> Iterator[int]:
        """The copies behind a kernel that extend what it writes, though what they read is listed as large as their
        output."""
        written = self.nodes[number].writes
        for later in range(number + 1, min(number + NEARBY, len(self.nodes))):
            node = self.nodes[later]
            if node.expands:
                shape, (_, dtype) = node.writes[0]
                if any(key[1] == dtype and _extends(narrow, shape) for narrow, key in written):
                    yield later


def _extends(narrow: Shape, wide: Shape) -> bool:
    return (
        len(narrow) == len(wide)
        and narrow != wide
        and all(narrow_axis in (wide_axis, 1) for narrow_axis, wide_axis in zip(narrow, wide, strict=True))
    )
