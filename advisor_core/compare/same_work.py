"""Whether two runs do the same work in a step, as far as the shapes and the counts of their operators tell."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from advisor_core.result.work import Work

MAJORITY = 0.5
"""Of the time and of the types: a change of the code reaches some operators, another batch, sequence or model most."""

SAME_COUNT = 0.02
"""Two counts of calls are taken as the same within this share: a step can lack a kernel at its border."""

OTHER_COUNT = 0.1
"""From this share on a common factor of most counts is another amount of work. A convention, well above the above."""


@dataclass
class _Type:
    """The calls per step, the time, and the shapes of a type."""

    calls: float = 0.0
    ns: int = 0
    shapes: dict[str, int] = field(default_factory=dict)
    complete: bool = True


def other_shapes(before: Work, after: Work) -> bool:
    """Whether most of the time is in operators that run as often as before, in other shapes, and these are most of the
    types that run as often as before."""
    old, new = _types(before), _types(after)
    alike = [
        name
        for name in old.keys() & new.keys()
        if abs(_factor(old[name], new[name]) - 1) <= SAME_COUNT and old[name].complete and new[name].complete
    ]
    changed = {name: 1 - _kept(old[name], new[name]) for name in alike}
    time = sum(one.ns for one in old.values())
    moved = sum(share * old[name].ns for name, share in changed.items())
    most = sum(share > MAJORITY for share in changed.values())
    return moved > MAJORITY * time and most > MAJORITY * len(alike)


def other_count(before: Work, after: Work) -> float | None:
    """The factor by which most operators, by time and by types, run more or less often; ``None`` for no such factor."""
    old, new = _types(before), _types(after)
    factors = {name: _factor(old[name], new[name]) for name in old.keys() & new.keys()}
    middle = _weighted_median([(factor, old[name].ns) for name, factor in factors.items()])
    if middle is None or abs(middle - 1) < OTHER_COUNT:
        return None
    same = [name for name, factor in factors.items() if abs(factor - middle) <= SAME_COUNT * middle]
    time = sum(one.ns for one in old.values())
    of_time = sum(old[name].ns for name in same) > MAJORITY * time
    return middle if of_time and len(same) > MAJORITY * len(old) else None


def _types(work: Work) -> dict[str, _Type]:
    types: dict[str, _Type] = defaultdict(_Type)
    for row in work.operators:
        if row.type is None or not row.calls:
            continue
        own = types[row.type]
        own.calls += row.calls / work.rank_steps
        own.ns += row.ns
        if row.shapes:
            own.shapes[row.shapes] = own.shapes.get(row.shapes, 0) + row.ns
        else:
            own.complete = False
    return types


def _factor(old: _Type, new: _Type) -> float:
    return new.calls / old.calls


def _kept(old: _Type, new: _Type) -> float:
    """Share of the time of a type in shapes that the other side has, too."""
    total = sum(old.shapes.values())
    return sum(ns for shapes, ns in old.shapes.items() if shapes in new.shapes) / total if total else 1.0


def _weighted_median(values: Sequence[tuple[float, int]]) -> float | None:
    half = sum(weight for _, weight in values) / 2
    for value, weight in sorted(values):
        half -= weight
        if half <= 0:
            return value
    return None
