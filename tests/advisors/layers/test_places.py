"""Where findings say that their kernels run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from advisor_core.api.advisors import Metric
from advisor_core.api.testing import judge_rule
from advisor_core.sample.models.model import ModelShape
from tests.advisors.layers.test_layers import facts_of


@pytest.fixture(scope="module")
def unfused(shared_sample: Callable[..., Path]) -> Path:
    return shared_sample("unfused-swiglu")


def test_an_unfused_activation_is_placed_in_the_feed_forward_part_of_every_layer(unfused: Path) -> None:
    found = judge_rule("NS011", facts_of(unfused))
    titles = "where in the model these kernels run"
    (where,) = [one for one in found.evidence() if isinstance(one, Metric) and one.title.en == titles]
    assert {row["part_of_model"] for row in where.rows} == {"ffn"}
    assert {row["pass"] for row in where.rows} == {"forward", "backward"}
    assert {row["layers"] for row in where.rows} == {ModelShape().layers}
    total = sum(float(row["per_step_ns"] or 0) for row in where.rows)
    assert total == pytest.approx(found.first.observation["chain_ns"])
