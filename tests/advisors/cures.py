"""What the cure of a finding changes of a recording."""

from __future__ import annotations

import numpy as np

from advisor_core.api.facts import Change, Replay, replay
from advisor_core.api.testing import JudgedRule
from advisor_core.contracts.cure import Cure
from advisor_core.facts.replay.changes import Changing
from advisor_core.facts.replay.nodes import TASK
from advisor_core.facts.replay.rank_graph import RankGraph, rank_graph
from advisor_core.facts.store import FactStore


def cure_of(found: JudgedRule) -> Change:
    """The cure of the first finding, of the size that its rule promises."""
    assert found.observed is not None and found.observed.cure is not None
    cure = found.observed.cure(found.first.row)
    assert cure is not None
    return _change(cure.promised(round(found.first.impact_ns)))


def shorter(store: FactStore, cure: Cure) -> dict[int, int]:
    """Row of ``work`` to the ns that its task takes less; tasks that take as long as before are left out. One that does
    the work of others takes more: that is negative."""
    recorded = store[rank_graph]
    assert isinstance(recorded, RankGraph)
    graph = Changing(recorded).changed([_change(cure)])
    less = np.where(recorded.nodes.kind == TASK, recorded.graph.duration - graph.duration, 0)
    return {int(recorded.nodes.row[node]): int(less[node]) for node in np.flatnonzero(less)}


def saved(store: FactStore, cure: Cure) -> int:
    """ns that the recorded steps take less with it."""
    found = store[replay]
    assert isinstance(found, Replay)
    return found.saved_by(_change(cure))


def _change(cure: Cure) -> Change:
    assert isinstance(cure, Change)
    return cure
