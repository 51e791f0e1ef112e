"""Memory of compiled graphs: what each graph holds at most at once, and the operators that take it."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from advisor_core.api.advisors import Drawing, drawing
from advisor_core.api.facts import GRAPH_MEMORY, PROFILE, Facts
from advisor_core.api.renderers import Cell, View
from advisors.messages import message
from advisors.rank_tables import rank_table

TOTAL: Final = "TOTAL"
"""The row of static_op_mem.csv with what the graph asks for in all.
Source: docs/sources.md#memory-of-compiled-graphs."""

SHOWN: Final = 20
"""Operators of the table, the largest of all graphs; its title says of how many."""

_GRAPHS: Final = (
    ("memory.column.graph", ""),
    ("memory.column.subgraph", ""),
    ("memory.column.operators", ""),
    ("memory.column.live", "B"),
    ("memory.column.live_at", ""),
    ("memory.column.sum", "B"),
    ("memory.column.asked", "B"),
)
_OPERATORS: Final = (
    ("memory.column.graph", ""),
    ("memory.column.subgraph", ""),
    ("memory.column.operator", ""),
    ("memory.column.size", "B"),
    ("memory.column.first", ""),
    ("memory.column.last", ""),
    ("memory.column.at_peak", ""),
    ("memory.column.of_live", "ratio"),
)

Ints = npt.NDArray[np.int64]


@drawing("memory.graphs", needs=(GRAPH_MEMORY, PROFILE))
def graphs(facts: Facts) -> list[View]:
    """The graphs with what they hold at most, and the largest operators with when they hold it.

    Times are numbers of nodes: what is released at a node is taken as free for what that node allocates, and lives for
    one node at least. Memory that the compiler reuses is counted once for each operator that it was given to: the most
    that is alive at once is less than the sum of all.
    """
    table, rank = facts[GRAPH_MEMORY], facts[PROFILE].rank
    of_graphs: list[list[Cell]] = []
    found: list[tuple[float, list[Cell]]] = []
    names = table["name"].astype(str).to_numpy(dtype=object)
    keys = [table["graph"].to_numpy(), table["subgraph"].astype(str).to_numpy(dtype=object)]
    for key, own in table.assign(name=names).groupby(keys, sort=True):
        graph, model = int(own["graph"].iloc[0]), str(key[1])
        operators = own[own["name"] != TOTAL]
        asked = own.loc[own["name"] == TOTAL, "bytes"]
        subgraph = None if model in ("", "0") else model
        live, at = _most_alive(operators)
        head: list[Cell] = [_known(graph), subgraph]
        totals: list[Cell] = [live, _known(at), float(operators["bytes"].sum())]
        of_graphs.append([*head, len(operators), *totals, float(asked.iloc[0]) if len(asked) else None])
        inside = _alive(operators, at)
        columns = (operators[name].to_numpy() for name in ("name", "bytes", "allocated_node", "released_node"))
        for name, size, first, last, alive in zip(*columns, inside, strict=True):
            share = float(size) / live if alive and live else None
            until: Cell = _known(int(last)) if last >= 0 else message("memory.with_the_graph")
            held = message("memory.alive.yes" if alive else "memory.alive.no")
            found.append((float(size), [*head, str(name), float(size), int(first), until, held, share]))
    found.sort(key=lambda one: -one[0])
    largest = [row for _, row in found[:SHOWN]]
    if not largest:
        return []
    title = message("memory.view.graphs", rank=rank)
    shown = message("memory.view.graph_operators", rank=rank, shown=len(largest), count=len(found))
    return [
        rank_table("graph-memory", title, rank, _GRAPHS, of_graphs),
        rank_table("graph-operators", shown, rank, _OPERATORS, largest),
    ]


def _ends(operators: pd.DataFrame) -> Ints:
    """The node from which the memory of each operator is free."""
    first, last = operators["allocated_node"].to_numpy(), operators["released_node"].to_numpy()
    return np.where(last < 0, np.iinfo(np.int64).max, np.maximum(last, first + 1))


def _alive(operators: pd.DataFrame, at: int) -> npt.NDArray[np.bool_]:
    return np.asarray((operators["allocated_node"].to_numpy() <= at) & (at < _ends(operators)), dtype=np.bool_)


def _most_alive(operators: pd.DataFrame) -> tuple[float, int]:
    """The most that is alive at once, B, and the first node at which it is; 0 and -1 without operators."""
    if operators.empty:
        return 0.0, -1
    first, ends, sizes = operators["allocated_node"].to_numpy(), _ends(operators), operators["bytes"].to_numpy()
    times = np.concatenate([ends, first])  # what is free at a node comes before what it allocates
    change = np.concatenate([-sizes, sizes])
    order = np.argsort(times, kind="stable")
    alive = np.cumsum(change[order])
    most = int(alive.argmax())
    return float(alive[most]), int(times[order][most])


def _known(number: int) -> int | None:
    return number if number >= 0 else None


DRAWINGS: tuple[Drawing, ...] = (graphs,)
