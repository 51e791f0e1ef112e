"""Dependencies that the recorded times contradict, by name: what should have waited ended or began too early.

A clock that runs apart, a launch that is linked to the wrong task or a dependency that was inferred wrongly shows so.
They are left out of the graph; told by name, a reader sees which of the three it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from advisor_core.facts.replay.edges import (
    AWAITED,
    DONE,
    FOLLOWS,
    HANDED,
    HELD,
    LAUNCHED,
    READY,
    ROOM_MADE,
    Edges,
)
from advisor_core.facts.replay.nodes import LAUNCH, TASK, Nodes

KINDS: Final = {
    HANDED: "handed",
    LAUNCHED: "launched",
    DONE: "done",
    READY: "ready",
    HELD: "held",
    AWAITED: "awaited",
    FOLLOWS: "follows",
    ROOM_MADE: "room_made",
}
MOST = 5
"""So many are told of a rank, those that are contradicted by most time; the others are counted."""


@dataclass(frozen=True)
class Contradiction:
    """Dependencies of one kind between tasks of the same names. ``kind``: one of `KINDS`; ``source``, ``target``: the
    task that was to be waited for, or whose launch was, and the task that was to wait, '' where that is a call of the
    host; ``count``; ``most_ns``: by how much the latest source ended after its target began."""

    kind: str
    source: str
    target: str
    count: int
    most_ns: int


def contradictions(edges: Edges, nodes: Nodes, work: pd.DataFrame) -> tuple[Contradiction, ...]:
    """Those of ``edges.contradicted``, by kind and names, the largest first. ``work``: the fact of that name."""
    kind, source, target = edges.contradicted
    if not len(kind):
        return ()
    names = work["name"].astype(object).to_numpy()
    frame = pd.DataFrame(
        {
            "kind": [KINDS[number] for number in kind.tolist()],
            "source": [_name(nodes, names, node) for node in source.tolist()],
            "target": [_name(nodes, names, node) for node in target.tolist()],
            "ns": np.maximum(nodes.end_ns[source] - nodes.start_ns[target], 0),
        }
    )
    found = frame.groupby(["kind", "source", "target"])["ns"].agg(["size", "max"]).reset_index()
    found = found.sort_values(["max", "kind", "source", "target"], ascending=[False, True, True, True], kind="stable")
    return tuple(
        Contradiction(str(kind), str(source), str(target), int(count), int(most))
        for kind, source, target, count, most in found.head(MOST).itertuples(index=False)
    )


def _name(nodes: Nodes, names: npt.NDArray[np.object_], node: int) -> str:
    """Of the task, or of the task that a launch is of; '' for what the host does."""
    return str(names[nodes.row[node]]) if nodes.kind[node] in (TASK, LAUNCH) else ""
