"""Regions: kernels that pass tensors on to each other and do little with them, for which no computation has a name.

A compiler, or a kernel that is written for it, could do the work of a region at once: it reads what comes from outside
and writes what others read, each once, and what its kernels hand on to each other stays on the chip.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from advisor_core.api.facts import DTYPE_BYTES, HOST_EVENTS, Facts, Shape, fact, launches
from advisors.fusion.adapters import adapters
from advisors.fusion.chains import fusion_chains
from advisors.fusion.clipping import gradient_clipping
from advisors.fusion.computations import fused_kernels, matches
from advisors.fusion.dataflow import REACH, Key, Node, Window
from advisors.fusion.expert_loops import expert_loops
from advisors.fusion.nodes import KernelNodes, kernel_nodes
from advisors.fusion.passes import HEAVY
from advisors.optimizer_marks import adding_gradients, updating
from advisors.step_kernels import StepKernels, step_kernels

if TYPE_CHECKING:
    import numpy.typing as npt

Ints: TypeAlias = "npt.NDArray[np.int64]"
Bools: TypeAlias = "npt.NDArray[np.bool_]"

SIMPLE = ("elementwise", "cast", "transpose")
"""Classes whose kernels compute every element from a few others, wherever these lie."""

JOINED = (
    *("cast", "expand", "slice", "copy", "zeros", "concat", "select", "dropout"),
    *("layer_norm", "softmax", "log_softmax", "softmax_grad"),
)
"""Operations of `computations.yaml` that one kernel can do beside others."""

COPIES = ("expand", "slice", "copy", "concat")
"""Operations that only change the layout or the extent. No program copies a copy: it is a view that is copied."""

BY_ROW = ("mean", "sum", "max")
"""Operations that it can do beside others where they reduce the last axis: a core has whole rows."""


@dataclass(frozen=True)
class Read:
    """A tensor that a kernel reads: the kernel that wrote it (negative: none that is known), its key, and the number of
    its elements that are read."""

    writer: int
    key: Key
    count: int


Found: TypeAlias = list[tuple[list[int], float]]
"""The kernels of each region of a window, and what one kernel would move in their place."""

WINDOWS = 4096
"""So many windows are remembered; those of a model have some hundred different ones."""


@dataclass(frozen=True)
class Regions:
    """``members``: rows of the frame of `StepKernels`, in order; ``region_of``: the number of the region of each, from
    0; ``moved``: bytes that one kernel would move in place of each region, NaN unknown."""

    members: Ints
    region_of: Ints
    moved: npt.NDArray[np.float64]


@fact(
    "fusion_regions",
    needs=(step_kernels, kernel_nodes, fusion_chains, expert_loops, gradient_clipping, adapters),
    wants=(launches, HOST_EVENTS),
)
def fusion_regions(facts: Facts) -> Regions:
    """The regions of kernels between heavy ones, less those that a named computation, a loop over experts, an
    adapter or the clipping of gradients has or that update parameters."""
    named = [
        facts[fusion_chains].members,
        facts[expert_loops].members,
        facts[gradient_clipping].members,
        facts[adapters].members,
    ]
    if facts[kernel_nodes].on_gpu:
        # They write in place, and nothing reads it soon: what is done to the next weight of that size looks like it.
        named += [updating(facts, facts[step_kernels]), adding_gradients(facts, facts[step_kernels])]
    return find_regions(facts[step_kernels], facts[kernel_nodes], np.concatenate(named))


def find_regions(kernels: StepKernels, nodes: KernelNodes, named: Ints) -> Regions:
    """The same of these kernels, less those that are ``named``; none where no shapes are recorded."""
    signature = kernels.frame["signature"].to_numpy(dtype=np.int64)
    classes = kernels.frame["operator_class"].astype(str).to_numpy()
    types = kernels.frame["type"].astype(str).to_numpy()
    can_join = _can_join(nodes.nodes, types[kernels.firsts], classes[kernels.firsts])[signature]
    can_join[named] = False
    is_heavy = np.isin(classes, HEAVY)
    # A stretch has no heavy kernel and no border of a group in it.
    stretch = np.cumsum(is_heavy | np.concatenate([[False], is_heavy[:-1]]) | kernels.breaks)
    starts = np.flatnonzero(np.diff(stretch, prepend=-1))
    ends = np.append(starts[1:], len(signature))
    counts = np.add.reduceat(can_join, starts) if len(starts) else np.zeros(0)
    members, lengths, moved = [np.zeros(0, dtype=np.int64)], [], []
    known: dict[tuple[int, int, bytes, bytes], Found] = {}
    # What follows a collective still reads what was written before it.
    part_starts = np.flatnonzero(kernels.begins)
    part_ends = np.append(part_starts[1:], len(signature))
    for start, end in zip(starts[counts > 1].tolist(), ends[counts > 1].tolist(), strict=True):
        border = int(np.searchsorted(part_starts, start, side="right")) - 1
        first = max(start - REACH, int(part_starts[border]))
        last = min(end + REACH, int(part_ends[border]))
        window, joins = signature[first:last], can_join[start:end]
        key = (start - first, end - first, window.tobytes(), joins.tobytes())
        if key not in known:
            places = {number: place for place, number in enumerate(dict.fromkeys(window.tolist()))}
            distinct = tuple(nodes.nodes[number] for number in places)
            known[key] = _regions_of(
                distinct, tuple(places[number] for number in window.tolist()), start - first, key[3]
            )
        for numbers, size in known[key]:
            members.append(first + np.array(numbers, dtype=np.int64))
            lengths.append(len(numbers))
            moved.append(size)
    return Regions(
        np.concatenate(members),
        np.repeat(np.arange(len(lengths)), lengths),
        np.array(moved, dtype=np.float64),
    )


def _can_join(nodes: Sequence[Node], types: Sequence[str], classes: Sequence[str]) -> Bools:
    return np.array(
        [
            bool(node.writes)
            and (
                node.operation in JOINED
                or (node.operation in BY_ROW and "row" in node.roles)
                or (
                    operator_class in SIMPLE
                    and node.operation not in BY_ROW
                    and not matches(operator, fused_kernels())  # nobody writes those anew
                )
            )
            for node, operator, operator_class in zip(nodes, types, classes, strict=True)
        ],
        dtype=np.bool_,
    )


@lru_cache(WINDOWS)
def _regions_of(distinct: tuple[Node, ...], places: tuple[int, ...], start: int, joins: bytes) -> Found:
    """As `_regions` of the nodes at these places. No time goes into it: ranks of one program ask for the same."""
    return _regions([distinct[place] for place in places], start, np.frombuffer(joins, dtype=np.bool_))


def _regions(nodes: Sequence[Node], start: int, joins: Bools) -> Found:
    """The regions among the kernels of a window from ``start`` on that can join, and what one kernel moves for each.
    The kernels before and behind only write what comes from outside and read the results."""
    window = Window(nodes)
    sources = _sources(window)
    inside = {start + int(place) for place in np.flatnonzero(joins)}
    # A kernel that needs the result of one that cannot join stands behind it, and does not join what stands before it:
    # each region can run at once.
    level: dict[int, int] = {}
    for number in range(start, start + len(joins)):
        before = [(read.writer, level[read.writer]) for read in sources[number] if read.writer >= start]
        level[number] = max((at + (not {writer, number} <= inside) for writer, at in before), default=0)
    parts: dict[int, list[int]] = {number: [number] for number in inside}
    for number in sorted(inside):
        for writer in (read.writer for read in sources[number]):
            if writer in inside and level[writer] == level[number] and parts[writer] is not parts[number]:
                joined = parts[writer] + parts[number]
                for member in joined:
                    parts[member] = joined
    readers = defaultdict(set)
    for number, reads in enumerate(sources):
        for read in reads:
            readers[read.writer, read.key].add(number)
    distinct = {id(part): sorted(part) for part in parts.values() if len(part) > 1}
    return [(part, _moved(window, part, sources, readers)) for part in sorted(distinct.values())]


def _sources(window: Window) -> list[list[Read]]:
    """For each kernel the tensors that it reads, with the kernel that most likely wrote each."""
    nodes = window.nodes
    is_read: set[tuple[int, Key]] = set()
    # What was done in place to the tensor that a kernel wrote. A second time the same is done to the next tensor of
    # that size, as in `_repeats`.
    done: dict[int, frozenset[str]] = {}
    result = []
    for number, node in enumerate(nodes):
        found: list[Read] = []
        for place, (shape, listed) in enumerate(node.reads):
            keys = [key for key in window.sources(number) if key != listed] if node.expands else []
            used = {(read.writer, read.key) for read in found}
            again = any(read.key == listed for read in found)
            for key in (*keys, listed):
                writers = [
                    writer
                    for writer in window.writers(key, number)
                    if ((writer, key) not in used or key not in window.written(writer))
                    and _can_read(nodes, writer, number, key)
                    and not (node.in_place and place == 0 and node.operator in done.get(writer, ()))
                    and not _repeats(nodes[writer], node)
                ]
                writer = _likely(nodes, writers, is_read, key, shape, again=again, adds=node.operation == "add")
                if writer >= 0:
                    break
            part = place == 0 and node.operation == "slice" and bool(node.writes)
            count = min(key[0], sum(own[0] for _, own in node.writes)) if part else key[0]
            # What is not seen to be the same tensor counts for itself.
            if writer >= 0 and key not in window.written(writer):  # a half, read where it lies
                key = next(whole for whole in window.written(writer) if whole == (2 * key[0], key[1]))
            found.append(Read(writer if writer >= 0 or not again else -2 - number, key, count))
        if node.in_place:
            done[number] = done.get(found[0].writer if found else -1, frozenset()) | {node.operator}
        found += _written_into(nodes, window, number)
        is_read |= {(read.writer, read.key) for read in found}
        result.append(found)
    return result


def _written_into(nodes: Sequence[Node], window: Window, number: int) -> list[Read]:
    """The tensor that a copy writes a part of, where exports only list the part: it was created for that before."""
    node = nodes[number]
    whole = window.written(number)[1:]
    if not whole and (node.operation != "copy" or not node.writes or node.writes[0][1] in node.read_keys):
        return []
    key = whole[0] if whole else node.writes[0][1]
    nearest = window.writers(key, number)[:1]
    return [Read(writer, key, 0) for writer in nearest if nodes[writer].creates]


def _can_read(nodes: Sequence[Node], writer: int, reader: int, key: Key) -> bool:
    if nodes[reader].operation in COPIES and nodes[writer].operation in COPIES:
        return False
    if not nodes[writer].creates:
        return True
    # A kernel of which it is not known what it writes wrote into the tensor that was created.
    if nodes[writer].views and any(not nodes[between].writes for between in range(writer + 1, reader)):
        return False
    # A tensor that was created to be written into is another one when that is done.
    return not any(
        nodes[between].operation == "copy" and any(written == key for _, written in nodes[between].writes)
        for between in range(writer + 1, reader)
    )


def _repeats(writer: Node, reader: Node) -> bool:
    """Whether both do the same to one tensor. Programs go through lists of tensors of one size, and write what they do
    twice to one as one operator: these are two tensors. Kernels that are alike are one node."""
    return writer is reader and "single" in reader.roles


def _likely(
    nodes: Sequence[Node],
    writers: Sequence[int],
    is_read: set[tuple[int, Key]],
    key: Key,
    shape: Shape,
    *,
    again: bool,
    adds: bool,
) -> int:
    """The kernel that wrote the tensor, of those that can have (the nearest first); -1 where that is not to be told.

    Most tensors are read once: one that nobody has read comes first, with the shape that is read if there are several.
    What is read again is what was read last, or, beside another tensor like it, a sum: those of residual connections
    are read twice, and what the backward pass reads besides the gradient is of the forward pass."""
    unread = [writer for writer in writers if (writer, key) not in is_read]
    if unread:
        alike = [writer for writer in unread if any(written == (shape, key) for written in nodes[writer].writes)]
        return alike[0] if alike else unread[0] if len(unread) == 1 else -1
    if again:
        writers = [writer for writer in writers if adds and nodes[writer].operation == "add"]
    return writers[0] if writers else -1


def _moved(
    window: Window,
    part: Sequence[int],
    sources: Sequence[Sequence[Read]],
    readers: Mapping[tuple[int, Key], set[int]],
) -> float:
    """Bytes: every tensor from outside once, of one that is cut only the parts, and every result that others read or
    that nothing here is seen to read."""
    own = set(part)
    taken: dict[tuple[int, Key], int] = defaultdict(int)
    for number in part:
        for read in sources[number]:
            if read.writer not in own:
                taken[read.writer, read.key] += read.count
    size = sum(min(count, key[0]) * DTYPE_BYTES.get(key[1], np.nan) for (_, key), count in taken.items())
    for number in part:
        whole = window.written(number)[len(window.nodes[number].written_keys) :]
        for _, key in window.nodes[number].writes:
            reading = readers[number, key].union(*(readers[number, other] for other in whole))
            if not reading or not reading <= own:
                size += key[0] * DTYPE_BYTES.get(key[1], np.nan)
    return float(size)


FACTS = (fusion_regions,)
