"""Operators and collectives that came, went, run more or less often, or take another time per call."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Literal

from advisor_core.compare.match import Match
from advisor_core.compare.rows import Sums, side_by_side
from advisor_core.result.comparison import CollectiveDifference, OperatorDifference
from advisor_core.result.work import Work

_Operator = tuple[str | None, str | None, str]
_Collective = tuple[str | None, int | None, int | None, int | None, bool]


def shape_differences(match: Match) -> list[OperatorDifference]:
    """The operators of the roles that both sides have, by type and shapes, what changed most first."""
    rows = []
    for role, before, after in paired_work(match):
        steps = before.rank_steps, after.rank_steps
        for key, old, new in side_by_side(*_operators(before, after), lambda key: (key[0], None, ""), (None, None, "")):
            calls = old[0] / steps[0], new[0] / steps[1]
            rows.append(_row((role, *key), calls, (round(old[1] / steps[0]), round(new[1] / steps[1]))))
    return _largest(rows)


def type_differences(shapes: Iterable[OperatorDifference]) -> list[OperatorDifference]:
    """The sums of `shape_differences` by type, most first."""
    by_type: dict[tuple[str | None, str | None], list[OperatorDifference]] = {}
    for row in shapes:
        by_type.setdefault((row.role, row.type), []).append(row)
    return _largest(_summed(rows) for rows in by_type.values())


def changed(rows: Iterable[OperatorDifference]) -> list[OperatorDifference]:
    """The rows in which anything changed."""
    return [row for row in rows if row.by_count_ns or row.by_time_ns or row.calls_before != row.calls_after]


def _summed(rows: Sequence[OperatorDifference]) -> OperatorDifference:
    """One row for all shapes of a type."""
    classes = [row.operator_class for row in rows if row.operator_class]
    return _row(
        (rows[0].role, rows[0].type, None, classes[0] if classes else ""),
        (sum(row.calls_before for row in rows), sum(row.calls_after for row in rows)),
        (sum(row.before_ns for row in rows), sum(row.after_ns for row in rows)),
    )


def _largest(rows: Iterable[OperatorDifference]) -> list[OperatorDifference]:
    return sorted(rows, key=lambda row: (-abs(row.difference_ns), row.type or "", row.shapes or ""))


def collective_differences(match: Match) -> list[CollectiveDifference]:
    """The collectives of the roles that both sides have, the largest difference of uncovered time first. Across vendors
    an operation is known by its kind, as each library has names of its own."""
    named = _kind_of_collective if match.across_vendors else _as_recorded
    rows = [
        _collective(role, key, old, new, (before.rank_steps, after.rank_steps))
        for role, before, after in paired_work(match)
        for key, old, new in side_by_side(
            _collectives(before, named),
            _collectives(after, named),
            lambda key: (key[0], None, None, None, False),
            (None, None, None, None, False),
        )
    ]
    return sorted(rows, key=lambda row: (-abs(row.difference_ns), row.operation or "", row.bytes or 0))


def paired_work(match: Match) -> Iterator[tuple[str | None, Work, Work]]:
    """The work of the roles that both sides have: the role, before and after."""
    after = {work.role: work for work in match.after.result.work}
    for work in match.before.result.work:
        if work.role in after:
            yield work.role, work, after[work.role]


def _operators(before: Work, after: Work) -> tuple[Mapping[_Operator, Sums], Mapping[_Operator, Sums]]:
    """Calls and ns of both sides. A type whose shapes only one side records is compared as a whole."""
    shaped = [{row.type for row in work.operators if row.shapes} for work in (before, after)]
    whole = shaped[0] ^ shaped[1]
    sides: tuple[dict[_Operator, Sums], dict[_Operator, Sums]] = ({}, {})
    for work, sums in zip((before, after), sides, strict=True):
        for row in work.operators:
            unshaped = row.type in whole and not row.shapes
            key = (row.type, None, "") if unshaped else (row.type, row.shapes, row.operator_class)
            calls, ns = sums.get(key, (0, 0))
            sums[key] = calls + row.calls, ns + row.ns
    return sides


_KINDS = ("allReduce", "allGather", "reduceScatter", "allToAll", "broadcast", "scatter", "gather", "reduce", "sendRecv",
    "send", "recv", "barrier")  # fmt: skip
"""Kinds of collectives as HCCL and NCCL both have them; what stands first in a name decides."""

_FOLDED = re.compile(r"[^a-z]")


def _kind_of_collective(operation: str | None) -> str | None:
    """The kind in the name of a collective of any library; the name itself where it has none.

    >>> _kind_of_collective("hcom_allReduce__445_5"), _kind_of_collective("nccl:_reduce_scatter_base")
    ('allReduce', 'reduceScatter')
    """
    folded = _FOLDED.sub("", (operation or "").lower())
    return next((kind for kind in _KINDS if kind.lower() in folded), operation)


def _as_recorded(operation: str | None) -> str | None:
    return operation


def _collectives(work: Work, named: Callable[[str | None], str | None]) -> Mapping[_Collective, Sums]:
    sums: dict[_Collective, Sums] = {}
    for row in work.collectives:
        key = (named(row.operation), row.members, row.spacing, row.bytes, row.listed)
        told = (row.calls, row.uncovered_ns, row.waiting_ns)
        known = sums.get(key)
        sums[key] = told if known is None else tuple(a + b for a, b in zip(known, told, strict=True))
    return sums


def _row(
    about: tuple[str | None, str | None, str | None, str], calls: tuple[float, float], times: tuple[int, int]
) -> OperatorDifference:
    """``about``: role, type, shapes and class; calls and ns of a step before and after."""
    difference = times[1] - times[0]
    both = calls[0] and calls[1]
    by_count = round((calls[1] - calls[0]) * times[0] / calls[0]) if both else difference
    by_time = difference - by_count
    return OperatorDifference(
        role=about[0],
        type=about[1],
        shapes=about[2],
        operator_class=about[3],
        change=_change(calls, by_count, by_time),
        calls_before=round(calls[0], 3),
        calls_after=round(calls[1], 3),
        before_ns=times[0],
        after_ns=times[1],
        difference_ns=difference,
        by_count_ns=by_count,
        by_time_ns=by_time,
    )


def _change(calls: tuple[float, float], by_count: int, by_time: int) -> Literal["gone", "new", "calls", "time"]:
    if not calls[1]:
        return "gone"
    if not calls[0]:
        return "new"
    return "calls" if abs(by_count) > abs(by_time) else "time"


def _collective(
    role: str | None, key: _Collective, old: Sums, new: Sums, steps: tuple[int, int]
) -> CollectiveDifference:
    before, after = round(old[1] / steps[0]), round(new[1] / steps[1])
    return CollectiveDifference(
        role=role,
        operation=key[0],
        members=key[1],
        spacing=key[2],
        bytes=key[3],
        listed=key[4],
        calls_before=round(old[0] / steps[0], 3),
        calls_after=round(new[0] / steps[1], 3),
        before_ns=before,
        after_ns=after,
        difference_ns=after - before,
        waiting_before_ns=round(old[2] / steps[0]),
        waiting_after_ns=round(new[2] / steps[1]),
    )
