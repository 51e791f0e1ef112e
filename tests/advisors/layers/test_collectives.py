"""The place of collectives in the model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from advisor_core.api.renderers import TableView
from advisor_core.api.testing import Scene
from advisor_core.facts.store import FactStore
from advisors.communication.calls import calls_in_steps
from advisors.layers.collectives import collectives, ended_before
from advisors.step_kernels import step_kernels
from tests.advisors.layers.test_layers import facts_of

Row = dict[str, object]


def rows_of(store: FactStore) -> list[Row]:
    (view,) = collectives.draw(store.view(collectives.needs, collectives.wants))
    assert isinstance(view, TableView)
    heads = [column.label.en for column in view.data.columns]
    cells = [[getattr(cell, "en", cell) for cell in row] for row in view.data.rows]
    return [dict(zip(heads, row, strict=True)) for row in cells]


def test_the_kernel_before_is_the_last_that_ended_on_the_main_stream() -> None:
    scene = Scene().step(1, 0, 1000).kernel(0, 100).kernel(120, 100).kernel(300, 10)
    scene.kernel(230, 5, stream=9)
    kernels = scene.store()[step_kernels]
    us = np.array([50, 100, 219, 220, 250, 400]) * 1000
    start = kernels.frame["start_ns"].to_numpy()
    ended = [None if row < 0 else start[row] - start.min() for row in ended_before(kernels, us + start.min()).tolist()]
    assert ended == [None, 0, 0, 120_000, 120_000, 300_000]


def test_every_collective_of_a_simulated_transformer_has_one_place(advisor_sample: Path) -> None:
    store = facts_of(advisor_sample)
    calls, rows = calls_in_steps(store), rows_of(store)
    steps = store[step_kernels].steps
    assert sum(float(str(row["Calls"])) for row in rows) == pytest.approx(len(calls) / steps)
    assert sum(float(str(row["Time in it"])) for row in rows) == pytest.approx(calls["elapse_ns"].sum() / steps)


def test_what_tensor_parallelism_sums_stands_behind_the_last_products_of_attention_and_network(profiles: Path) -> None:
    """Two layers of a recorded GPT-3: kernels 47, 82, 59 and 96 of its file, and the collectives behind them."""
    rows = rows_of(facts_of(profiles / "ascend" / "gpt3-kernel-details-only_ascend_pt"))
    sums = {row["Part of the model"]: row for row in rows if row["Behind"] == "MatMul"}
    assert {part: row["Operation"] for part, row in sums.items()} == dict.fromkeys(
        ("attention", "feed-forward"), "hcom_allReduce"
    )
    assert [row["Layers"] for row in sums.values()] == [row["Calls"] for row in sums.values()] == [2, 2]
    assert sums["attention"]["Time in it"] == pytest.approx(3_360_400 + 6_328_780)
    assert sums["feed-forward"]["Time in it"] == pytest.approx(2_833_820 + 2_804_140)
    (embedding,) = [row for row in rows if row["Part of the model"] == "embedding"]
    assert (embedding["Behind"], embedding["Time in it"]) == ("Mul", pytest.approx(1_470_840))
