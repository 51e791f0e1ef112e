"""Find the computations in the kernels of a rank.

Every computation is looked for around its anchors. Layers and steps repeat: what the kernels around an anchor are
decides what is found there, so the same surroundings are searched once. Kernels that serve a computation without being
in its expression (copies made for a layout, casts, the gradient of a weight) are added when all of a round are found.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from advisors.fusion.computations import Computation
from advisors.fusion.dataflow import REACH, Key, Node, Window, fits
from advisors.fusion.expressions import Expression
from advisors.fusion.match import ways

if TYPE_CHECKING:
    import numpy.typing as npt

Ints: TypeAlias = "npt.NDArray[np.int64]"
Bools: TypeAlias = "npt.NDArray[np.bool_]"

CLOSE = 3
"""A copy or cast stands so many kernels before the one that it serves, at most, or behind the last one."""

BESIDE = 5
"""Kernels that a computation absorbs begin so many kernels before it, at most, or end so many behind it."""

AROUND = 4 * BESIDE
"""So many kernels before a computation and behind it are compared before what it absorbed is taken for it again."""


@dataclass(frozen=True)
class Kernels:
    """The kernels in order: ``signature`` of each, ``nodes`` by signature, ``backward`` as of `passes`. A computation
    does not reach from one ``group`` into another; one that reaches across collectives stays in its ``part``, a stream
    of a step. ``goes_on``: as of `StepKernels`; these belong to what the kernel before belongs to."""

    signature: Ints
    nodes: Sequence[Node]
    backward: Bools
    group: Ints
    part: Ints
    goes_on: Bools

    def calls(self) -> Kernels:
        """The first kernel of each call alone."""
        first = ~self.goes_on
        return Kernels(self.signature[first], self.nodes, self.backward[first], self.group[first], self.part[first],
            self.goes_on[first])  # fmt: skip

    def within(self, computation: Computation) -> Ints:
        """The groups that the computation stays in, by number."""
        return self.part if computation.across else self.group

    def node(self, number: int) -> Node:
        """The node of a kernel."""
        return self.nodes[int(self.signature[number])]


def search(
    kernels: Kernels, computations: Sequence[Computation], elsewhere: Ints | None = None
) -> list[tuple[Computation, Ints]]:
    """The computations and their kernels; a kernel belongs to one computation at most, and one of those ``elsewhere``
    to none: of several ways to read an expression the nearest holds that has none of them."""
    if kernels.goes_on.any():
        call_of = np.cumsum(~kernels.goes_on) - 1
        kernels_of = np.split(np.arange(len(call_of)), np.flatnonzero(~kernels.goes_on)[1:])
        of_calls = search(kernels.calls(), computations, None if elsewhere is None else call_of[elsewhere])
        return [(computation, np.concatenate([kernels_of[call] for call in calls])) for computation, calls in of_calls]
    barred = np.zeros(len(kernels.signature), dtype=np.bool_)
    if elsewhere is not None:
        barred[elsewhere] = True
    taken = barred.copy()
    matches: list[tuple[Computation, set[int]]] = []
    surroundings, absorbing = _Surroundings(kernels), _Absorbing(kernels, taken)
    # Some computations look alike forward and backward. Where both can be read, the pass decides; where only one can,
    # that is what it is, whatever the pass is taken to be.
    for in_its_pass in (True, False):
        first_new = len(matches)
        for computation in computations:
            in_pass = (kernels.backward == computation.backward) == in_its_pass
            for form in computation.forms:
                for anchor in _anchors(kernels, form, in_pass & ~taken):
                    open_ways = (
                        way for way in surroundings.ways(computation, form, anchor) if not barred[list(way)].any()
                    )
                    members = next(open_ways, None)
                    if members is not None and not taken[list(members)].any():
                        taken[list(members)] = True
                        matches.append((computation, members))
                if computation.in_a_row > 1:
                    # What fits a form by chance, once or twice, leaves its kernels to the next one.
                    _drop_scattered(computation, matches, taken)
        for computation, members in matches[first_new:]:
            absorbing.absorb(computation, members)
    return [(computation, np.array(sorted(members), dtype=np.int64)) for computation, members in matches]


def _drop_scattered(computation: Computation, matches: list[tuple[Computation, set[int]]], taken: Bools) -> None:
    """Drop what was found of the computation where fewer than `in_a_row` of it follow one another."""
    ordered = sorted((members for candidate, members in matches if candidate is computation), key=min)
    runs: list[list[set[int]]] = []
    for members in ordered:
        follows = bool(runs) and min(members) == max(runs[-1][-1]) + 1
        if follows and len(members) == max(members) - min(members) + 1:
            runs[-1].append(members)
        else:
            runs.append([members])
    scattered = [members for run in runs if len(run) < computation.in_a_row for members in run]
    for members in scattered:
        taken[list(members)] = False
    dropped = {id(members) for members in scattered}
    matches[:] = [(candidate, members) for candidate, members in matches if id(members) not in dropped]


def _anchors(kernels: Kernels, form: Expression, among: Bools) -> list[int]:
    step = form.above_anchor()[0]
    anchors = np.array([fits(step, node) for node in kernels.nodes], dtype=np.bool_)
    places: list[int] = np.flatnonzero(anchors[kernels.signature] & among).tolist()
    return places


class _Surroundings:
    """Remembers what was found in the same surroundings."""

    def __init__(self, kernels: Kernels) -> None:
        self._kernels = kernels
        self._borders = {
            across: _borders(kernels.part if across else kernels.group).tolist() for across in (False, True)
        }
        self._windows: dict[bytes, Window] = {}
        self._found: dict[tuple[int, int, bytes], list[frozenset[int]]] = {}

    def ways(self, computation: Computation, form: Expression, anchor: int) -> Iterator[set[int]]:
        """The kernels of the form of the computation around this anchor, for each way to read it, the nearest first."""
        borders = self._borders[computation.across]
        border = bisect_right(borders, anchor)
        start = max(anchor - REACH, borders[border - 1])
        end = min(anchor + REACH + 1, borders[border])
        signatures = self._kernels.signature[start:end]
        key = (id(form), anchor - start, signatures.tobytes())
        if key not in self._found:
            window = self._windows.get(key[2])
            if window is None:
                window = Window([self._kernels.nodes[signature] for signature in signatures.tolist()])
                self._windows[key[2]] = window
            self._found[key] = ways(window, form, anchor - start)
        for members in self._found[key]:
            found = {start + member for member in members}
            if computation.across and len(set(self._kernels.group[list(found)].tolist())) == 1:
                return
            yield found


def _borders(group: Ints) -> Ints:
    return np.concatenate([[0], np.flatnonzero(np.diff(group)) + 1, [len(group)]])


class _Absorbing:
    """Adds to computations what serves them, and remembers what that was in the same surroundings."""

    def __init__(self, kernels: Kernels, taken: Bools) -> None:
        self._kernels, self._taken = kernels, taken
        self._added: dict[tuple[int, bytes, bytes, bytes, bytes], Ints] = {}

    def absorb(self, computation: Computation, members: set[int]) -> None:
        """Add the kernels to ``members``, and mark them as taken."""
        first, last = min(members), max(members)
        start, end = max(first - AROUND, 0), last + 1 + AROUND
        group = self._kernels.within(computation)
        key = (
            id(computation),
            (np.array(sorted(members), dtype=np.int64) - start).tobytes(),
            self._kernels.signature[start:end].tobytes(),
            self._taken[start:end].tobytes(),
            (group[start:end] == group[first]).tobytes(),
        )
        if key in self._added:
            added = self._added[key] + start
            members.update(added.tolist())
            self._taken[added] = True
            return
        before = frozenset(members)
        _absorb(self._kernels, computation, members, self._taken)
        if start <= min(members) - BESIDE and max(members) + BESIDE < end:  # it depends on nothing further away
            self._added[key] = np.array(sorted(members - before), dtype=np.int64) - start


def _absorb(kernels: Kernels, computation: Computation, members: set[int], taken: Bools) -> None:
    """Add what serves the kernels of the expression, and what the fused kernel does as well."""
    group = kernels.within(computation)
    size_before = 0
    while len(members) > size_before:
        size_before = len(members)
        if not computation.wide:  # an optimizer works on what is there; copies beside it are no layout of its own
            _serving(kernels, group, members, taken)
        _sharing(
            kernels, group, computation.absorbs, members, taken, lambda: range(min(members) - BESIDE, max(members))
        )
        _sharing(kernels, group, computation.followed_by, members, taken, lambda: _range_behind(members, BESIDE))
    last = max(members)
    for following in _free(group, taken, last, _range_behind(members, 1)):
        node = kernels.node(following)
        if node.operation == "cast" and node.read_keys & kernels.node(last).written_keys:
            members.add(following)
            taken[following] = True


def _range_behind(members: set[int], count: int) -> range:
    return range(max(members) + 1, max(members) + 1 + count)


def _serving(kernels: Kernels, group: Ints, members: set[int], taken: Bools) -> None:
    """Add the copies and casts that wrote what the kernels read, and what prepared the tensors that they write, where
    no kernel of another computation wrote such a tensor in between."""
    todo = sorted(members)
    while todo:
        number = todo.pop()
        served = kernels.node(number)
        reads, writes = served.read_keys, served.written_keys
        for earlier in range(number - 1, max(number - CLOSE, 0) - 1, -1):
            node = kernels.node(earlier)
            serves = (node.carries and node.written_keys & reads) or (node.creates and node.written_keys & writes)
            if serves and not taken[earlier] and group[earlier] == group[number]:
                members.add(earlier)
                taken[earlier] = True
                todo.append(earlier)
            elif earlier not in members:
                reads -= node.written_keys


def _sharing(
    kernels: Kernels,
    group: Ints,
    operations: Sequence[tuple[str, str]],
    members: set[int],
    taken: Bools,
    candidates: Callable[[], range],
) -> None:
    """Add the kernels of these operations that share tensors with those that are there, until there are no more."""
    changed = bool(operations)
    while changed:
        changed = False
        first, last = min(members), max(members)
        nodes = [kernels.node(member) for member in members]
        read = frozenset[Key]().union(*(node.read_keys for node in nodes))
        written = frozenset[Key]().union(*(node.written_keys for node in nodes))
        for number in _free(group, taken, first, candidates()):
            node = kernels.node(number)
            if {(node.operation, role) for role in ("", *node.roles)}.isdisjoint(operations):
                continue
            # Of the kernels of one call on GPUs only one has a result.
            of_a_call = not node.writes and node.views and node.operator == nodes[0].operator and node.read_keys & read
            if (
                of_a_call
                or (number < last and node.written_keys & read)
                or (number > first and node.read_keys & written)
            ):
                members.add(number)
                taken[number] = changed = True
                break


def _free(group: Ints, taken: Bools, reference: int, numbers: range) -> Iterator[int]:
    """Those of the kernels that are of the same group and that no computation has."""
    for number in numbers:
        if 0 <= number < len(taken) and not taken[number] and group[number] == group[reference]:
            yield number
