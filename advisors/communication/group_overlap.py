"""A table of the communication of each group, with the part that runs under computing."""

from __future__ import annotations

import numpy as np

from advisor_core.api.advisors import Drawing, drawing
from advisor_core.api.facts import (
    PROFILE,
    Facts,
    Profile,
    aggregated,
    collective_calls,
    name_of_group,
    steps,
    union,
    work,
)
from advisor_core.api.renderers import Cell, View
from advisors.communication.calls import calls_in_steps
from advisors.measuring import step_count
from advisors.messages import message
from advisors.rank_tables import rank_table

SHOWN = 40
"""Rows of the table, those whose communication takes longest; the title says of how many."""

_COLUMNS = (
    ("communication.group.name", ""),
    ("communication.group.ranks", ""),
    ("communication.group.members", ""),
    ("communication.group.dimension", ""),
    ("communication.group.operations", ""),
    ("communication.group.calls", ""),
    ("communication.group.took", "ns"),
    ("communication.group.covered", "ratio"),
    ("communication.group.uncovered", "ns"),
    ("communication.group.waiting", "ns"),
)


@drawing("communication.group_overlap", needs=(collective_calls, work, steps, PROFILE))
def group_overlap(facts: Facts) -> list[View]:
    """Groups of the rank: time in them per step, and how much of it kernels run beside."""
    calls, device, profile = calls_in_steps(facts), facts[work], facts[PROFILE]
    if calls.empty:
        return []
    computes = ~device["communication"].to_numpy(dtype=np.bool_)
    starts, ends = (device[edge].to_numpy()[computes] for edge in ("start_ns", "end_ns"))
    computing = union(starts, ends)
    beside = computing.measure(calls["end_ns"].to_numpy()) - computing.measure(calls["start_ns"].to_numpy())
    sums = aggregated(
        calls.assign(beside=beside),
        "group",
        ranks=("ranks", "first"),
        members=("members", "max"),
        operations=("operation", lambda of: ", ".join(sorted(set(of)))),
        calls=("work", "size"),
        took=("elapse_ns", "sum"),
        beside=("beside", "sum"),
        uncovered=("uncovered_ns", "sum"),
        waiting=("wait_ns", "sum"),
    ).sort_values("took", ascending=False, kind="stable")
    count = step_count(facts)
    rows: list[list[Cell]] = [
        [
            str(row.group),
            row.ranks or None,
            int(row.members) if row.members > 0 else None,
            _kind(str(row.group), int(row.members), profile),
            row.operations,
            row.calls / count,
            row.took / count,
            row.beside / row.took if row.took else None,
            row.uncovered / count,
            row.waiting / count,
        ]
        for row in sums.head(SHOWN).itertuples()
    ]
    title = message("communication.view.group_overlap", rank=profile.rank, shown=len(rows), count=len(sums))
    return [rank_table("group-overlap", title, profile.rank, _COLUMNS, rows)]


def _kind(group: str, members: int, profile: Profile) -> Cell:
    """The name that the framework gave a group; else the only dimension of the layout that has its size, which is a
    guess, as a group can join several dimensions."""
    if (name := name_of_group(group, profile)) is not None:
        return name
    alike = [name for name, size in profile.parallel.items() if size == members and size > 1]
    return message("communication.group.by_size", name=alike[0]) if len(alike) == 1 else None


DRAWINGS: tuple[Drawing, ...] = (group_overlap,)
