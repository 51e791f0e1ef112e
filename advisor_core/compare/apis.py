"""Calls of the host by API that take another time, or are made more or less often."""

from __future__ import annotations

from advisor_core.compare.match import Match
from advisor_core.result.comparison import ApiDifference
from advisor_core.result.work import Work

_Key = tuple[str, str]


def api_differences(match: Match) -> list[ApiDifference]:
    """The APIs of the roles that both sides have totals of, per recorded step of a rank, what changed most first."""
    later = {work.role: work for work in match.after.result.work if work.api_steps}
    rows = []
    for before in match.before.result.work:
        after = later.get(before.role)
        if after is None or not before.api_steps:
            continue
        old, new = _totals(before), _totals(after)
        for level, name in dict.fromkeys([*old, *new]):
            calls, ns = ([side.get((level, name), (0.0, 0.0))[place] for side in (old, new)] for place in (0, 1))
            rows.append(
                ApiDifference(
                    role=before.role,
                    level=level,
                    name=name,
                    calls_before=round(calls[0], 3),
                    calls_after=round(calls[1], 3),
                    before_ns=round(ns[0]),
                    after_ns=round(ns[1]),
                    difference_ns=round(ns[1]) - round(ns[0]),
                )
            )
    changed = [row for row in rows if row.difference_ns or row.calls_before != row.calls_after]
    return sorted(changed, key=lambda row: (-abs(row.difference_ns), row.name, row.level))


def _totals(work: Work) -> dict[_Key, tuple[float, float]]:
    return {(row.level, row.name): (row.calls / work.api_steps, row.ns / work.api_steps) for row in work.apis}
