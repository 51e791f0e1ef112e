"""Match an expression against the data flow around its anchor.

Below the anchor the operands of every step are looked for among the kernels that can have written them, above it the
steps among those that can read the result, through copies and casts in between. Each step keeps a few ways to read it,
those whose kernels lie nearest together (a step that may be missing is there if it is nearby). What one of them found
out about a kernel is not looked for again, so that the effort grows with the kernels and not with the combinations.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from advisor_core.api.facts import Shape
from advisors.fusion.dataflow import CANDIDATES, NEARBY, Key, Node, Window, fits
from advisors.fusion.expressions import Expression

Kernels = frozenset[int]

WAYS = 4
"""So many ways to read a step are kept."""

IN_A_ROW = 8
"""So many copies, casts or repeated operations follow one another between two steps, at most."""

_NOTHING: Kernels = frozenset()


def ways(window: Window, form: Expression, anchor: int) -> list[Kernels]:
    """The kernels of the expression whose anchor is at this kernel of the window, for a few ways to read it, the
    nearest first; none if there is none."""
    if form.behind is not None:
        return _with_behind(window, form, form.behind, anchor)
    matching = _Matching(window)
    path = form.above_anchor()
    if not fits(path[0], window.nodes[anchor]):
        return []
    found = [
        below | above | {anchor}
        for below in matching.below(path[0], anchor)
        for above in matching.above(path, 0, anchor, 0)
        if not below & above
    ]
    return _nearest(found, anchor)


def _with_behind(window: Window, form: Expression, behind: Expression, anchor: int) -> list[Kernels]:
    """The same with the kernels of a second expression, all of which stand behind those of the first, the first of them
    at once."""
    found = []
    step = behind.above_anchor()[0]
    for first in ways(window, replace(form, behind=None), anchor):
        end = max(first) + 1
        for other in range(end, min(end + 2 * NEARBY, len(window.nodes))):
            if fits(step, window.nodes[other]):
                for second in ways(window, behind, other):
                    # What cuts out the parts that are turned stands in between.
                    if min(second) >= end and all(window.nodes[place].carries for place in range(end, min(second))):
                        found.append(first | second)
    return _nearest(found, anchor)


def _nearest(ways: Iterable[Kernels], number: int) -> list[Kernels]:
    """The ways that span least, counted with the kernel itself; of equal ones those with more kernels."""

    def span(way: Kernels) -> tuple[int, int, list[int]]:
        if not way:
            return (0, 0, [])
        first, last = min(way), max(way)
        return (last - first + max(abs(number - first), abs(number - last)), -len(way), sorted(way))

    return sorted(set(ways), key=span)[:WAYS]


def _most(tensors: Iterable[tuple[Shape, Key]]) -> int:
    return max((key[0] for _, key in tensors), default=1)


def _sized(step: Expression, written: Node, reader: Node) -> bool:
    """Whether the reader writes as much as the step asks for of what this kernel wrote or, as a copy, passed on."""
    if step.whole and _most(reader.writes) > _most(written.writes):
        return False
    # What puts a half into a whole tensor writes the whole.
    passed_on = written.reads[:1] if written.carries and written.reads else written.writes
    return not step.half or _most(reader.writes) == 2 * _most(passed_on)


def _shaped(written: Node, reader: Node) -> bool:
    """Whether the reader reads rows as long as this kernel wrote and, as a copy, writes the shape that it reads."""
    rows = {shape[-1] for shape, _ in written.writes}
    if reader.carries and [shape for shape, _ in reader.reads[:1]] != [shape for shape, _ in reader.writes[:1]]:
        return False
    return any(shape[-1] in rows for shape, _ in reader.reads)


class _Matching:
    def __init__(self, window: Window) -> None:
        self._window = window
        self._ways_of: dict[tuple[int, str, int], list[Kernels]] = {}

    def _of_tensor(self, step: Expression, key: Key, reader: int, depth: int) -> list[Kernels]:
        """Ways in which the step wrote the tensor that a kernel reads."""
        if not step.operations:
            return [_NOTHING] if not step.given or self._window.given(key, reader) else []
        ways: list[Kernels] = []
        writers = self._window.writers(key, reader, halves=step.role == "halves", latest=step.latest)
        for number in writers[: self._tried(step, key, reader)]:
            node = self._window.nodes[number]
            if (step.optional or step.close) and reader - number > NEARBY:
                break
            # A copy may put a half into the whole that its reader reads.
            told = step.half and not self._window.nodes[reader].carries
            if told and not _sized(step, node, self._window.nodes[reader]):
                continue
            if fits(step, node):
                operand_ways = self._repeated(step, number, depth) if step.repeated else self.below(step, number)
                ways += [way | {number} for way in operand_ways]
            if node.carries and not (step.whole and _most(node.reads) > _most(node.writes)):
                ways += [way | {number} for way in self._carried(step, number, depth)]
        if step.operands and (step.repeated or (step.optional and not ways)):
            ways += self._of_tensor(step.operands[0], key, reader, depth)
        if step.beside:
            return [_NOTHING] if ways else []
        return _nearest(ways, reader)

    def _tried(self, step: Expression, key: Key, reader: int) -> int:
        """The number of kernels that are tried: of what has to be the latest only what wrote such a tensor last, or
        with the other operands of the reader."""
        return sum(read == key for _, read in self._window.nodes[reader].reads) if step.latest else CANDIDATES

    def below(self, step: Expression, number: int) -> list[Kernels]:
        """Ways to find the operands of a step that is at this kernel."""
        key = (id(step), "below", number)
        if key not in self._ways_of:
            self._ways_of[key] = []
            self._ways_of[key] = self._operands([operand for operand in step.operands if operand.constrains], number)
        return self._ways_of[key]

    def _operands(self, steps: Sequence[Expression], number: int, used: Kernels = _NOTHING) -> list[Kernels]:
        if not steps:
            return [_NOTHING]
        ways = []
        for place, (_, key) in enumerate(self._window.nodes[number].reads):
            if place in used:
                continue
            first_ways = self._of_tensor(steps[0], key, number, 0)
            other_ways = self._operands(steps[1:], number, used | {place}) if first_ways else []
            ways += [
                first_way | other_way
                for first_way in first_ways
                for other_way in other_ways
                if not first_way & other_way
            ]
        return _nearest(ways, number)

    def _carried(self, step: Expression, number: int, depth: int) -> list[Kernels]:
        return self._through(step, "carried", number, self._window.sources(number), depth)

    def _repeated(self, step: Expression, number: int, depth: int) -> list[Kernels]:
        keys = [key for _, key in self._window.nodes[number].reads]
        return self._through(step, "repeated", number, keys, depth)

    def _through(self, step: Expression, kind: str, number: int, keys: Iterable[Key], depth: int) -> list[Kernels]:
        cache_key = (id(step), kind, number)
        if cache_key not in self._ways_of:
            self._ways_of[cache_key] = []
            if depth < IN_A_ROW:
                ways = [way for key in keys for way in self._of_tensor(step, key, number, depth + 1)]
                self._ways_of[cache_key] = _nearest(ways, number)
        return self._ways_of[cache_key]

    def above(self, path: Sequence[Expression], place: int, number: int, depth: int) -> list[Kernels]:
        """Ways to find what lies above the step at ``place`` of the path, which is at this kernel."""
        if place + 1 == len(path):
            return [_NOTHING]
        key = (id(path[place]), "above", number)
        if key not in self._ways_of:
            self._ways_of[key] = []
            self._ways_of[key] = _nearest(self._above(path, place, number, depth), number)
        return self._ways_of[key]

    def _above(self, path: Sequence[Expression], place: int, number: int, depth: int) -> list[Kernels]:
        above = path[place + 1]
        ways: list[Kernels] = []
        if depth < IN_A_ROW:
            if path[place].role == "parts" and not depth:
                readers = self._window.readers_of_parts(number)
            else:
                written = self._window.written(number)
                readers = [reader for key in written for reader in self._window.readers(key, number)]
            for reader in dict.fromkeys([*readers, *self._window.expanding(number)]):
                node = self._window.nodes[reader]
                if above.optional and reader - number > NEARBY:
                    continue
                if path[place].shaped and not _shaped(self._window.nodes[number], node):
                    continue
                if fits(above, node) and _sized(path[place], self._window.nodes[number], node):
                    if above.repeated:
                        ways += [way | {reader} for way in self.above(path, place, reader, depth + 1)]
                    else:
                        ways += self._with_siblings(path, place, number, reader, depth)
                if node.carries:
                    ways += [way | {reader} for way in self.above(path, place, reader, depth + 1)]
        # A copy leads to a step that may be missing, and is none itself.
        missing = above.optional and not ways and (path[place].anchor or not self._window.nodes[number].carries)
        if above.repeated or missing:
            ways += self.above(path, place + 1, number, depth)
        return ways

    def _with_siblings(
        self, path: Sequence[Expression], place: int, number: int, reader: int, depth: int
    ) -> list[Kernels]:
        step, above = path[place], path[place + 1]
        other_operands = [operand for operand in above.operands if operand.constrains and operand is not step]
        return [
            siblings | higher | {reader}
            for siblings in self._operands(other_operands, reader)
            if number not in siblings
            for higher in self.above(path, place + 1, reader, depth + 1)
            if not siblings & higher
        ]
