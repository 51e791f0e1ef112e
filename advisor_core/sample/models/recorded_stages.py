"""A recorded training step, cut into the stages of a pipeline.

The record is cut by what its operators read and write, and by what repeats itself, not by names: between two layers one
tensor goes on, and one gradient comes back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import accumulate, chain, pairwise
from math import prod

from .recorded import READ, Operator, Part, Record, TrainingName, record_of

Storages = frozenset[int]


@dataclass(frozen=True, slots=True)
class Stage:
    """What one stage runs of a step: ``record`` with its operators, weights and moments. ``entered``: the memory of
    what the stage before hands on; ``result``: of what goes to the next one, ``returned``: of its gradient, which
    comes back from there; ``handed_back``: of the gradient of what has entered. ``None`` where there is no stage
    beyond."""

    record: Record
    entered: int | None = None
    result: int | None = None
    returned: int | None = None
    handed_back: int | None = None


@cache
def stages_of(
    program: TrainingName, written_out: tuple[Part, ...], stages: int, layers: tuple[int, ...]
) -> list[Stage]:
    """The stages of a program with these parts written out. ``layers``: of each of them, empty for equally many.
    Raises :class:`ValueError` for a program that cannot be divided so."""
    cutter = _Cutter(record_of(program, written_out), program)
    total = len(cutter.layers) - 1
    layers = layers or (total // stages,) * stages
    if len(layers) != stages or sum(layers) != total or not all(layers):
        raise ValueError(f"{stages} stages of {layers} layers for {program!r}, which was recorded with {total}")
    return cutter.stages([cutter.layers[before] for before in accumulate(layers[:-1])])


class _Cutter:
    """Finds where the layers of a record begin, and cuts it there. ``layers``: the places in the forward pass at which
    they do, and the one at which the last of them ends. Raises :class:`ValueError` for a program without layers."""

    def __init__(self, record: Record, name: str) -> None:
        self._record, self._name = record, name
        memory = [storage for storage, *_ in record.tensors]
        self._nbytes: dict[int, int] = {}
        for storage, shape, dtype, _ in record.tensors:
            self._nbytes[storage] = max(self._nbytes.get(storage, 0), prod(shape) * dtype.size)
        phases: dict[str, list[Operator]] = {"forward": [], "backward": [], "optimizer": []}
        for one in record.operators:
            phases[one.phase].append(one)
        self._forward, self._backward, self._optimizer = phases.values()

        self._reads: dict[int, Storages] = {}
        self._writes: dict[int, Storages] = {}
        for one in record.operators:
            self._reads[one.number] = frozenset(memory[tensor] for _, _, read, _, _ in one.tasks for tensor in read)
            self._writes[one.number] = frozenset(memory[tensor] for _, _, _, new, _ in one.tasks for tensor in new)
        updated = frozenset(chain.from_iterable(self._writes[one.number] for one in self._optimizer))
        self._weights = record.kept & updated
        self._learnt = self._activations()
        self.layers = self._repeated(self._narrow(self._forward, self._learnt))

    def _activations(self) -> Storages:
        """What the forward pass computes from weights: it has gradients. What it computes of positions and of the batch
        alone has none."""
        found = set(self._weights)
        for one in self._forward:
            if self._reads[one.number] & found:
                found |= self._writes[one.number]
        return frozenset(found - self._weights)

    def _narrow(self, operators: Sequence[Operator], of: Storages | None = None) -> dict[int, int]:
        """The places behind kernels at which only one memory is written before and read later, and that memory. ``of``:
        the memory that counts, by default all that these operators write."""
        written: dict[int, int] = {}
        read: dict[int, int] = {}
        for place, one in enumerate(operators):
            for storage in self._writes[one.number]:
                written.setdefault(storage, place)
            read |= dict.fromkeys(self._reads[one.number], place)
        open_at: list[list[int]] = [[] for _ in range(len(operators) + 1)]
        closed_at: list[list[int]] = [[] for _ in range(len(operators) + 1)]
        for storage, first in written.items():
            last = read.get(storage, -1)
            if last > first and (of is None or storage in of):
                open_at[first + 1].append(storage)
                closed_at[last + 1].append(storage)
        alive: set[int] = set()
        found = {}
        for place in range(len(operators)):
            alive = (alive | {*open_at[place]}) - {*closed_at[place]}
            if len(alive) == 1 and place and operators[place - 1].tasks:
                (found[place],) = alive
        return found

    def _repeated(self, narrow: dict[int, int]) -> list[int]:
        """The places between repetitions of the same kernels, where they make up most of the forward pass."""
        places = [0, *sorted(narrow), len(self._forward)]
        parts = [self._kernels(*ends) for ends in pairwise(places)]
        best = (0, 0, 0, 0)
        for period in range(1, len(parts) // 2 + 1):
            begin = 0
            for place in range(len(parts) - period + 1):
                if place < len(parts) - period and parts[place] == parts[place + period]:
                    continue
                count = (place - begin) // period + 1
                covered = sum(map(len, parts[begin : begin + count * period])) if count > 1 else 0
                best = max(best, (covered, -period, begin, count))
                begin = place + 1
        covered, period, begin, count = best[0], -best[1], best[2], best[3]
        if 2 * covered < sum(map(len, parts)) or not begin:
            raise ValueError(
                f"{self._name!r} has no layers that hand on one tensor, so that it cannot be cut into stages"
            )
        return [places[begin + number * period] for number in range(count + 1)]

    def _kernels(self, begin: int, end: int) -> tuple[str, ...]:
        """What a part of the forward pass does with weights: the types of its kernels."""
        return tuple(
            task[0]
            for one in self._forward[begin:end]
            if self._reads[one.number] & (self._learnt | self._weights)
            for task in one.tasks
        )

    def stages(self, cuts: Sequence[int]) -> list[Stage]:
        """The stages between these places. Raises :class:`ValueError` where they share a weight, or something else
        than a tensor and its gradient."""
        count = len(cuts) + 1
        narrow = self._narrow(self._forward, self._learnt)
        handed = [narrow[cut] for cut in cuts]
        home = self._homes(cuts)
        weights = self._homes_of_weights(cuts)
        backward, returned = self._backward_cuts(handed, home | weights)
        chosen: list[set[int]] = []
        for stage in range(count):
            numbers = {one.number for one in _parts(self._backward, backward, count)[count - 1 - stage]}
            needed = set(chain.from_iterable(self._reads[number] for number in numbers))
            chosen.append(numbers | self._forward_of(stage, cuts, needed))
        for one, stages in self._updates(weights, count):
            for stage in stages:
                chosen[stage].add(one.number)
        return [
            Stage(
                self._part(chosen[stage], last=stage == count - 1),
                handed[stage - 1] if stage else None,
                handed[stage] if stage < count - 1 else None,
                returned[stage] if stage < count - 1 else None,
                returned[stage - 1] if stage else None,
            )
            for stage in range(count)
        ]

    def _homes(self, cuts: Sequence[int]) -> dict[int, int]:
        """The stage that computes each activation."""
        found: dict[int, int] = {}
        for stage, operators in enumerate(_parts(self._forward, cuts, len(cuts) + 1)):
            for one in operators:
                found |= {storage: stage for storage in self._writes[one.number] & self._learnt if storage not in found}
        return found

    def _homes_of_weights(self, cuts: Sequence[int]) -> dict[int, int]:
        """The stage that has each weight."""
        found: dict[int, int] = {}
        for stage, operators in enumerate(_parts(self._forward, cuts, len(cuts) + 1)):
            for weight in chain.from_iterable(self._reads[one.number] & self._weights for one in operators):
                if found.setdefault(weight, stage) != stage:
                    raise ValueError(
                        f"{self._name!r} cannot be cut into these stages: two share a weight, as tied embeddings do"
                    )
        return found

    def _backward_cuts(self, handed: Sequence[int], home: dict[int, int]) -> tuple[list[int], list[int]]:
        """Where in the backward pass each stage but the first ends, by stage from the first; and the memory of the
        gradient that it hands back there."""
        narrow = self._narrow(self._backward)
        both = {*handed}
        touched = [
            {home[one] for one in self._reads[op.number] if one in home and one not in both} for op in self._backward
        ]
        cuts, returned = [], []
        for stage, tensor in enumerate(handed):
            begin = max(place for place, stages in enumerate(touched) if any(one > stage for one in stages)) + 1
            end = min(place for place, stages in enumerate(touched) if any(one <= stage for one in stages))
            found = [
                place
                for place in range(begin, end + 1)
                if place in narrow and self._nbytes[narrow[place]] == self._nbytes[tensor]
            ]
            if not found:
                raise ValueError(
                    f"{self._name!r} cannot be cut into stages: more than a gradient goes back between them"
                )
            cuts.append(found[0])
            returned.append(narrow[found[0]])
        return cuts[::-1], returned

    def _forward_of(self, stage: int, cuts: Sequence[int], needed: set[int]) -> set[int]:
        """The numbers of the forward operators of a stage. What depends on no weight every stage computes that needs
        it, and every stage reads back from it what decides how the program goes on. ``needed``: the memory that its
        backward pass reads."""
        begin, end = (0, *cuts)[stage], (*cuts, len(self._forward))[stage]
        chosen: set[int] = set()
        taken = False
        for place in range(len(self._forward) - 1, -1, -1):
            one = self._forward[place]
            reads, writes = self._reads[one.number], self._writes[one.number]
            if one.tasks:  # what has no kernel goes with the next operator that has one
                with_weights = reads & (self._learnt | self._weights)
                decides = any(task[0] == READ for task in one.tasks)
                taken = begin <= place < end if with_weights else decides or bool(writes & needed)
            if taken:
                chosen.add(one.number)
                needed |= reads
        return chosen

    def _updates(self, weights: dict[int, int], count: int) -> Iterator[tuple[Operator, Iterable[int]]]:
        """The operators of the optimizer with the stages that run them. Raises :class:`ValueError` for one that updates
        weights of several stages."""
        together = _Groups()
        for one in self._optimizer:
            together.join(self._reads[one.number] | self._writes[one.number])
        stages: dict[int, set[int]] = {}
        for weight, stage in weights.items():
            stages.setdefault(together.of(weight), set()).add(stage)
        if any(len(one) > 1 for one in stages.values()):
            raise ValueError(
                f"the optimizer of {self._name!r} updates all weights at once and cannot be cut into stages"
            )
        everywhere = range(count)
        current: Iterable[int] = everywhere
        for one in self._optimizer:
            if one.tasks:
                touched = self._reads[one.number] | self._writes[one.number]
                current = stages.get(together.of(next(iter(touched))), everywhere)
            yield one, current if one.tasks else everywhere

    def _part(self, numbers: set[int], *, last: bool) -> Record:
        record = self._record
        touched = frozenset(chain.from_iterable(self._reads[one] | self._writes[one] for one in numbers))
        return replace(
            record,
            kept=record.kept & touched,
            batch=record.batch if record.batch in touched else None,
            loss=record.loss if last else None,
            operators=tuple(one for one in record.operators if one.number in numbers),
            gradients={number: found for number, found in record.gradients.items() if number in numbers},
        )


def _parts(operators: Sequence[Operator], cuts: Sequence[int], count: int) -> list[Sequence[Operator]]:
    """The operators of each stage."""
    ends = pairwise((0, *cuts, len(operators)))
    return [operators[begin:end] for begin, end in ends]


class _Groups:
    """Memory that operators touch together."""

    def __init__(self) -> None:
        self._parent: dict[int, int] = {}

    def of(self, one: int) -> int:
        """What stands for the group of a memory."""
        while (parent := self._parent.setdefault(one, one)) != one:
            self._parent[one] = one = self._parent[parent]
        return one

    def join(self, several: Iterable[int]) -> None:
        """These belong together."""
        roots = [self.of(one) for one in several]
        for root in roots:
            self._parent[root] = roots[0]
