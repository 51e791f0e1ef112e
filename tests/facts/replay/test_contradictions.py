"""What the recorded times contradict has names, a number and by how much."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from advisor_core.facts.replay.contradictions import KINDS, MOST, Contradiction, contradictions
from advisor_core.facts.replay.edges import INFERRED, READY, Edges
from advisor_core.facts.replay.nodes import CALL, TASK, Nodes
from advisor_core.replay.graph import Ints
from advisor_core.result import run as result
from tests.once import ResultOf

WORK = pd.DataFrame({"name": ["Add", "Copy", "AllReduce"]})


def ints(*values: int) -> Ints:
    return np.array(values, dtype=np.int64)


def nodes() -> Nodes:
    """Two kernels, a collective that began before either ended, and a call of the host."""
    return Nodes(
        kind=ints(TASK, TASK, TASK, CALL),
        row=ints(0, 1, 2, 7),
        chain=ints(1, 1, 2, 0),
        start_ns=ints(0, 100, 40, 350),
        end_ns=ints(100, 300, 320, 350),
    )


def edges(kind: Ints, source: Ints, target: Ints) -> Edges:
    return Edges(ints(), ints(), ints(), (kind, source, target))


def test_they_are_told_by_kind_and_names_the_largest_first() -> None:
    found = contradictions(edges(ints(READY, READY, READY), ints(0, 1, 1), ints(2, 2, 2)), nodes(), WORK)
    assert found == (
        Contradiction("ready", "Copy", "AllReduce", 2, 300 - 40),
        Contradiction("ready", "Add", "AllReduce", 1, 100 - 40),
    )


def test_a_call_of_the_host_has_no_task_and_time_is_not_below_nothing() -> None:
    (found,) = contradictions(edges(ints(READY), ints(0), ints(3)), nodes(), WORK)
    assert (found.source, found.target, found.most_ns) == ("Add", "", 0)


def test_a_rank_tells_few_of_many() -> None:
    many = 3 * MOST
    work = pd.DataFrame({"name": [f"kernel{number}" for number in range(many)]})
    row = np.arange(many)
    tasks = Nodes(np.full(many, TASK), row, row, np.zeros(many, dtype=np.int64), 10 + row)
    found = contradictions(edges(np.full(many, READY), row, row[::-1].copy()), tasks, work)
    assert [one.most_ns for one in found] == [10 + many - 1 - number for number in range(MOST)]


def test_every_kind_has_a_name_in_the_report() -> None:
    assert set(KINDS) >= set(INFERRED)
    named = result.Contradiction.model_fields["kind"].annotation
    assert set(KINDS.values()) == set(named.__args__)  # type: ignore[union-attr]


def test_a_real_recording(result_of: ResultOf, profiles: Path) -> None:
    """All-to-alls of the next batch run beside kernels that were handed over before them: the inferred dependency is
    none, and the report says between what."""
    path = profiles / "kineto" / "trace-diff"
    if not path.is_dir():
        pytest.skip(f"no real trace at {path}")
    model = result_of(path).model
    assert model is not None
    assert sum(one.count for one in model.contradictions) == model.violated_edges
    assert {one.kind for one in model.contradictions} == {"ready"}
    assert all("SendRecv" in one.target for one in model.contradictions)
