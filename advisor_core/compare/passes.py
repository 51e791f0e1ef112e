"""Kernels of two devices by pass and part of the model, which the program has whoever made the device."""

from __future__ import annotations

from collections.abc import Iterable

from advisor_core.compare.match import Match
from advisor_core.compare.work import paired_work
from advisor_core.result.comparison import PassDifference
from advisor_core.result.work import ComputedTime

_ORDER = ("forward", "recomputation", "backward", "optimizer", "")
"""Passes as they follow in a step."""

_Place = tuple[str, str]
_Sums = tuple[int, int]


def pass_differences(match: Match) -> list[PassDifference]:
    """The kernels of both sides by pass and part, in the order of a step, the largest part of a pass first. Parts are
    told where both sides know some: the layers of one alone say nothing of the other."""
    rows: list[PassDifference] = []
    for role, before, after in paired_work(match):
        if not before.computed or not after.computed:
            continue
        known = all(any(row.block for row in work.computed) for work in (before, after))
        old, new = (_by_place(work.computed, known) for work in (before, after))
        for place in dict.fromkeys([*old, *new]):
            (kernels, ns), (other_kernels, other_ns) = old.get(place, (0, 0)), new.get(place, (0, 0))
            times = round(ns / before.rank_steps), round(other_ns / after.rank_steps)
            rows.append(
                PassDifference(
                    role=role,
                    in_pass=place[0],
                    block=place[1],
                    kernels_before=round(kernels / before.rank_steps, 3),
                    kernels_after=round(other_kernels / after.rank_steps, 3),
                    before_ns=times[0],
                    after_ns=times[1],
                    difference_ns=times[1] - times[0],
                )
            )
    return sorted(
        rows, key=lambda row: (row.role or "", _ORDER.index(row.in_pass), -max(row.before_ns, row.after_ns), row.block)
    )


def _by_place(rows: Iterable[ComputedTime], with_blocks: bool) -> dict[_Place, _Sums]:
    sums: dict[_Place, _Sums] = {}
    for row in rows:
        place = row.in_pass if row.in_pass in _ORDER else "", row.block if with_blocks else ""
        kernels, ns = sums.get(place, (0, 0))
        sums[place] = kernels + row.kernels, ns + row.ns
    return sums
