"""Find the computations in the kernels of a rank.

Every computation is looked for around its anchors. Layers and steps repeat: what the kernels around an anchor are
decides what is found there, so the same surroundings are searched once. Kernels that serve a computation without being
in its expression (copies made for a layout, casts, the gradient of a weight) are added when all of a round are found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from advisors.fusion.computations import Computation
from advisors.fusion.dataflow import Key, fits
from advisors.fusion.expressions import Expression
from advisors.fusion.sequence import Kernels
from advisors.fusion.surroundings import Match, Surroundings

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
    matches: list[Match] = []
    surroundings, anchors = Surroundings(kernels, barred), _Anchors(kernels)
    absorbing = _Absorbing(kernels, taken, surroundings)
    # Some computations look alike forward and backward. Where both can be read, the pass decides; where only one can,
    # that is what it is, whatever the pass is taken to be.
    for in_its_pass in (True, False):
        first_new = len(matches)
        for computation in computations:
            for form in computation.forms:
                places = anchors.of(form)
                in_pass = (kernels.backward[places] == computation.backward) == in_its_pass
                places = places[in_pass & ~taken[places]]
                matches += [(computation, members) for members in surroundings.found(computation, form, places, taken)]
                if computation.in_a_row > 1:
                    # What fits a form by chance, once or twice, leaves its kernels to the next one.
                    _drop_scattered(computation, matches, taken)
        matches[first_new:] = absorbing.absorbed(matches[first_new:])
    return matches


def _drop_scattered(computation: Computation, matches: list[Match], taken: Bools) -> None:
    """Drop what was found of the computation where fewer than `in_a_row` of it follow one another."""
    ordered = sorted((members for candidate, members in matches if candidate is computation), key=lambda own: own[0])
    runs: list[list[Ints]] = []
    for members in ordered:
        follows = bool(runs) and members[0] == runs[-1][-1][-1] + 1
        if follows and len(members) == members[-1] - members[0] + 1:
            runs[-1].append(members)
        else:
            runs.append([members])
    scattered = [members for run in runs if len(run) < computation.in_a_row for members in run]
    if not scattered:
        return
    for members in scattered:
        taken[members] = False
    dropped = {id(members) for members in scattered}
    matches[:] = [(candidate, members) for candidate, members in matches if id(members) not in dropped]


class _Anchors:
    """Tells the kernels that can be the anchor of an expression."""

    def __init__(self, kernels: Kernels) -> None:
        self._nodes = kernels.nodes
        self._order = np.argsort(kernels.signature, kind="stable")
        self._ends = np.cumsum(np.bincount(kernels.signature, minlength=len(kernels.nodes)))

    def of(self, form: Expression) -> Ints:
        """Their places, in order."""
        step = form.above_anchor()[0]
        fitting = [number for number, node in enumerate(self._nodes) if fits(step, node)]
        places = [self._order[self._ends[number - 1] if number else 0 : self._ends[number]] for number in fitting]
        return np.sort(np.concatenate(places)) if places else np.zeros(0, dtype=np.int64)


class _Absorbing:
    """Adds to computations what serves them, and remembers what that was in the same surroundings."""

    def __init__(self, kernels: Kernels, taken: Bools, surroundings: Surroundings) -> None:
        self._kernels, self._taken, self._surroundings = kernels, taken, surroundings
        self._added: dict[tuple[int, bytes], Ints] = {}

    def absorbed(self, matches: Sequence[Match]) -> list[Match]:
        """The computations with these kernels, which are marked as taken."""
        if not matches:
            return []
        starts, ends, numbers = self._surroundings.around(matches, AROUND)
        found = []
        for match, start, end, number in zip(matches, starts.tolist(), ends.tolist(), numbers.tolist(), strict=True):
            key = number, self._taken[start:end].tobytes()
            added = self._added.get(key)
            if added is None:
                added = self._absorb(match, start, end, key)
            elif len(added):
                self._taken[start + added] = True
            if len(added):
                members = np.concatenate((match[1], start + added))
                members.sort()
                match = match[0], members
            found.append(match)
        return found

    def _absorb(self, match: Match, start: int, end: int, key: tuple[int, bytes]) -> Ints:
        """What is added, counted from ``start``; remembered if it depends on nothing outside of ``[start, end)``."""
        before = set(match[1].tolist())
        members = set(before)
        _absorb(self._kernels, match[0], members, self._taken)
        added = np.array(sorted(members - before), dtype=np.int64) - start
        if start <= min(members) - BESIDE and max(members) + BESIDE < end:
            self._added[key] = added
        return added


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
        operators = {node.operator for node in nodes}
        read = frozenset[Key]().union(*(node.read_keys for node in nodes))
        written = frozenset[Key]().union(*(node.written_keys for node in nodes))
        for number in _free(group, taken, first, candidates()):
            node = kernels.node(number)
            if {(node.operation, role) for role in ("", *node.roles)}.isdisjoint(operations):
                continue
            # Of the kernels of one call on GPUs only one has a result.
            of_a_call = not node.writes and node.views and node.operator in operators and node.read_keys & read
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
