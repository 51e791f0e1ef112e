"""What a recorded program computes, from the data flow that was recorded with its operators.

A computation of the forward pass is told by its operators and by which of them reads what another wrote; the operators
that autograd runs for it are those of the nodes that it made. Nothing here knows kernels, their names or their order.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass

from tests.programs.finders import FINDERS
from tests.programs.streams import HEAVY, Stream

JOINING = frozenset({"slice_backward", "select_backward", "cat", "stack", "add"})
"""What autograd runs for views that take a part."""

CLOSE_BEFORE = 3
"""The views that a computation reads are made so many nodes before it, at most; those before it are of others."""

AROUND_NEGATION = 3
"""Of the nodes of a rotary embedding the first and the last are so far from its negation: a product and two slices lie
before it, a concatenation, a product and a sum behind it."""

APART = 8
"""So many nodes of other computations lie between two nodes of one, at most (a product and its views)."""

OF_PARTS = ("rotary", "swiglu", "geglu", "limited_swiglu", "moe_expert_loop")
"""Computations that take parts of one tensor."""

FORWARD_ONLY = ("bias_add",)
"""Computations for which autograd runs the same kernels with the fused operator."""

APPENDING = ("kv_cache_write",)
"""Computations that write a part of a tensor: the least is that part, read and written."""

OF_A_CHECKPOINT = 40
"""A node that runs so many operators computes a layer again, and is no part of a computation."""


@dataclass(frozen=True)
class Occurrence:
    """A computation that a program runs once. ``operators``: their numbers; ``bytes``: what one kernel in their place
    would move at least: every tensor from outside and every result that others read, each once; 0 where products
    are among them."""

    name: str
    backward: bool
    operators: frozenset[int]
    bytes: int


def occurrences(stream: Stream) -> list[Occurrence]:
    """The computations of a program, each with the operators that autograd runs for it as one of its own."""
    forward = [(name, frozenset(own)) for name, finder in FINDERS.items() for own in finder(stream)]
    backward = _backward(stream, forward)
    # What is computed again has written what the backward pass reads.
    again, after = defaultdict[str, set[int]](set), defaultdict[str, set[int]](set)
    for (name, own), behind in zip(forward, backward, strict=True):
        again[name] |= own
        after[name] |= behind
    found: list[Occurrence] = []
    for (name, own), behind in zip(forward, backward, strict=True):
        moved = _bytes_appended(stream, own) if name in APPENDING else _bytes(stream, own, after[name])
        found.append(Occurrence(name, False, own, moved))
        if behind and name not in FORWARD_ONLY:
            read = {tensor.writer for number in behind for tensor in stream.operators[number].reads}
            source = next((other for kind, other in forward if kind == name and other & read), own)
            moved = _bytes_backward(stream, source, behind, again[name])
            found.append(Occurrence(name, True, behind, moved))
    return found


def _backward(stream: Stream, forward: Sequence[tuple[str, frozenset[int]]]) -> list[frozenset[int]]:
    """What autograd runs for each computation of the forward pass; nothing where that is not recorded."""
    nodes = _nodes(stream)
    sequences = [_sequences(stream, own) & nodes.keys() for _, own in forward]
    taken = set().union(*sequences)
    unrecorded = {
        name
        for (name, own), mine in zip(forward, sequences, strict=True)
        if not mine and all(stream.operators[number].phase == "fwd" for number in own)
    }
    found = [
        _with_views(stream, name, frozenset(number for sequence in mine for number in nodes[sequence]))
        for (name, _), mine in zip(forward, sequences, strict=True)
    ]
    # Of what is computed again under a node of its own the nodes are not recorded: they read what it wrote or read.
    for place, (name, own) in enumerate(forward):
        if name in unrecorded and all(stream.operators[number].phase == "recompute" for number in own):
            read = _turned_back(stream, taken) if name == "rotary" else _reading_backward(stream, own) - taken
            taken |= read
            behind = frozenset(
                number
                for sequence, numbers in nodes.items()
                if read and min(read) <= sequence <= max(read)
                for number in numbers
                if stream.operators[number].name not in HEAVY or name == "attention"
            )
            found[place] = _with_views(stream, name, behind)
    return found


def _reading_backward(stream: Stream, own: frozenset[int]) -> set[int]:
    """The nodes of autograd that read what only these operators read in the forward pass."""
    written = {
        tensor.writer
        for number in own
        for tensor in stream.operators[number].reads
        if tensor.writer >= 0 and {one.number for one in stream.behind(tensor.writer)} <= own
    }
    inside = {number for number in own if (behind := {one.number for one in stream.behind(number)}) and behind <= own}
    sequences = {
        stream.operators[reader].sequence
        for number in inside | written
        for reader in stream.readers.get(number, ())
        if stream.operators[reader].phase == "bwd"
    }
    groups: list[set[int]] = []
    for sequence in sorted(sequences):
        if groups and sequence - max(groups[-1]) <= APART:
            groups[-1].add(sequence)
        else:
            groups.append({sequence})
    return max(groups, key=len, default=set())


def _nodes(stream: Stream) -> dict[int, list[int]]:
    """The operators of the backward pass by node."""
    nodes: dict[int, list[int]] = {}
    for one in stream.operators.values():
        if one.phase == "bwd" and one.sequence >= 0:
            nodes.setdefault(one.sequence, []).append(one.number)
    return nodes


def _sequences(stream: Stream, own: frozenset[int]) -> set[int]:
    """The nodes of autograd that these operators made: an operator without a node has the number of the one before."""
    found = set()
    for number in own:
        sequence = stream.operators[number].sequence
        of_node = stream.of_node.get(sequence, [])
        if stream.operators[number].phase != "fwd" or len(of_node) >= OF_A_CHECKPOINT:
            continue
        if of_node[0] in own:
            found.add(sequence)
        if _of_the_node_before(stream, number, of_node):
            found.add(sequence - 1)
    return found


def _of_the_node_before(stream: Stream, number: int, of_node: Sequence[int]) -> bool:
    """An operator in place has the number of the copy of its input, which autograd makes for the backward pass
    when the node is there."""
    one, first = stream.operators[number], stream.operators[of_node[0]]
    storages = {tensor.storage for tensor in one.writes} & {tensor.storage for tensor in one.reads}
    return first.name == "clone" and number in of_node[1:] and {tensor.storage for tensor in first.reads} == storages


def _with_views(stream: Stream, name: str, behind: frozenset[int]) -> frozenset[int]:
    """With what autograd runs for the views that the operators read through: it puts gradients of parts together."""
    if name not in OF_PARTS:
        return behind
    own = set(behind)
    first = min((stream.operators[number].sequence for number in behind), default=0) - CLOSE_BEFORE
    for one in stream.operators.values():
        written = {tensor.writer for tensor in one.reads}
        is_view = one.sequence in stream.views and one.sequence >= first
        of_a_view = one.phase == "bwd" and is_view and one.name in JOINING
        if of_a_view and written and written <= own:
            own.add(one.number)
    return frozenset(own)


def _turned_back(stream: Stream, taken: set[int]) -> set[int]:
    """The nodes of a rotary embedding, of which the backward pass reads nothing that is its own, around the negation:
    the next that nothing has."""
    for one in stream.operators.values():
        if one.phase == "bwd" and one.name == "neg" and one.sequence not in taken:
            return set(range(one.sequence - AROUND_NEGATION, one.sequence + AROUND_NEGATION + 1))
    return set()


def _outside(stream: Stream, own: frozenset[int], without: Iterable[int] = ()) -> dict[int, int]:
    """Bytes that these operators read of each storage that none of them, and none of the others, wrote."""
    inside = own | frozenset(without)
    read: dict[int, int] = {}
    for number in own:
        for tensor in stream.operators[number].reads:
            if tensor.writer not in inside:
                read[tensor.storage] = max(read.get(tensor.storage, 0), tensor.bytes)
    return read


def _results(stream: Stream, own: frozenset[int], besides: Set[int] = frozenset()) -> int:
    """Bytes of what these operators write and others, besides those, read or nobody does."""
    written: dict[int, int] = {}
    for number in own:
        readers = set(stream.readers.get(number, ()))
        if not readers or not readers <= own | besides:
            for tensor in stream.operators[number].writes:
                written[tensor.storage] = max(written.get(tensor.storage, 0), tensor.bytes)
    return sum(written.values())


def _bytes(stream: Stream, own: frozenset[int], behind: Set[int]) -> int:
    if any(stream.operators[number].name in HEAVY for number in own):
        return 0
    return sum(_outside(stream, own).values()) + _results(stream, own, behind)


def _bytes_appended(stream: Stream, own: frozenset[int]) -> int:
    return sum(2 * stream.operators[number].reads[-1].bytes for number in own)


def _bytes_backward(stream: Stream, own: frozenset[int], behind: frozenset[int], written: Set[int]) -> int:
    """What was not written for the backward pass is computed again from what the forward pass read."""
    if any(stream.operators[number].name in HEAVY for number in own | behind):
        return 0
    read = _outside(stream, behind, written)
    if any(tensor.writer in written for number in behind for tensor in stream.operators[number].reads):
        read = _outside(stream, own) | read
    return sum(read.values()) + _results(stream, behind)
