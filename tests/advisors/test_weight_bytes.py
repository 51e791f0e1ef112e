"""Products of decoding that wait for their weights, and what weights of 8 bits would save at most."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from advisor_core.api.renderers import TableView, View
from advisor_core.api.testing import Scene
from advisor_core.facts.store import FactStore
from advisor_core.loaders.discover import discover
from advisor_core.run.rank import fact_store
from advisors.pipeline_bound.weight_bytes import waited_weights, weight_table
from advisors.roofline.bounds import roofline
from advisors.roofline.products import matrix_products
from advisors.step_kernels import step_kernels
from tests.advisors.build import host

CHIP = {"ai_core_num": 24, "aiv_num": 48, "aic_frequency": 1800}
MIB = 1 << 20


def saved(scene: Scene, part: str = "decode") -> list[float]:
    """What each product saves, us, if the whole recording is one part."""
    store = scene.store(chip=CHIP)
    own = store[step_kernels]
    starts, ends = own.frame["start_ns"].min(), own.frame["end_ns"].max()
    spans = pd.DataFrame({"start_ns": [starts], "end_ns": [ends + 1], "part": [part]})
    found = waited_weights(own, store[matrix_products], store[roofline], spans)
    return [round(ns / 1_000, 2) for ns in found.rows["saved"]]


def product(rows: int, *, dtype: str = "BF16", batch: str = "") -> Scene:
    shapes = [f"{batch}{rows},4096 {dtype}", f"{batch}4096,4096 {dtype}"]
    return Scene().tensors(0, 40, "MatMulV3", shapes, [f"{batch}{rows},4096 {dtype}"])


def test_half_of_the_time_in_which_the_weight_is_read() -> None:
    """A weight of 32 MiB, and 16 rows in and out of 128 KiB each, in 40 us."""
    assert saved(product(16)) == [pytest.approx(40 / 2 * 32 / 32.25, abs=0.01)]


@pytest.mark.parametrize(
    "scene",
    [product(4096), product(16, dtype="FLOAT"), product(16, batch="8,"), product(16, dtype="INT8")],
    ids=["many rows compute", "other data type", "attention, not a weight", "quantised already"],
)
def test_what_does_not_wait_for_a_weight_of_16_bits_saves_nothing(scene: Scene) -> None:
    assert saved(scene) == []


@pytest.mark.parametrize("part", ["training", "prefill", "unknown"])
def test_other_parts_than_those_that_decode_are_left_out(part: str) -> None:
    assert saved(product(16), part) == []


def facts_below(folder: Path) -> FactStore:
    loaders = host().loaders
    source = discover(list(loaders.values()), folder)[0]
    return fact_store(host(), loaders[source.loader].load(source))


def drawn(store: FactStore) -> Sequence[View]:
    return weight_table.draw(store.view(weight_table.needs, weight_table.wants))


def test_a_job_that_decodes_has_the_table_and_one_that_trains_has_none(shared_sample: Callable[..., Path]) -> None:
    (view,) = drawn(facts_below(shared_sample("healthy-decode")))
    assert isinstance(view, TableView) and "accuracy has to be measured" in view.title.en
    for _, rows, weight, kernels, took, read, reached, less in view.data.rows:
        k, n = map(int, str(weight).split(","))
        assert rows == 64 and read == pytest.approx(2 * k * n * float(str(kernels)))
        assert 0.48 * float(str(took)) < float(str(less)) <= 0.5 * float(str(took)) and 0 < float(str(reached)) <= 1.05
    assert drawn(facts_below(shared_sample("healthy-training-single"))) == []


def test_a_recorded_engine_of_which_one_product_has_shapes_is_not_worth_a_table(profiles: Path) -> None:
    """Its head of 1,158,266,880 bytes takes 347 us, a thousandth of what was recorded."""
    store = facts_below(profiles / "kineto" / "vllm-prefill-decode-graph.json.gz")
    (product_of_head,) = store[matrix_products].query("k == 2880 and n == 201088").to_dict("records")
    assert product_of_head["right_bytes"] == 2 * 2880 * 201088 and product_of_head["m"] == 46
    assert np.isclose(product_of_head["total_ns"], 346_637) and drawn(store) == []
