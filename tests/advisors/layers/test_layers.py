"""The layers of jobs whose layers are known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from advisor_core.api.renderers import HeatmapView
from advisor_core.contracts.missing import Missing
from advisor_core.facts.store import FactStore
from advisor_core.loaders.discover import discover
from advisor_core.run.rank import fact_store
from advisor_core.sample import write_sample
from advisor_core.sample.models.model import ModelShape
from advisors.layers.blocks import Block, Pass, blocks_of_layer
from advisors.layers.drawings import blocks
from advisors.layers.layers import Layers, layers
from advisors.layers.marks import Marks
from advisors.step_kernels import step_kernels
from tests.advisors.build import host


def facts_of(path: Path) -> FactStore:
    loaders = host().loaders
    source = discover(list(loaders.values()), path)[0]
    return fact_store(host(), loaders[source.loader].load(source))


@pytest.fixture(scope="module")
def transformer(tmp_path_factory: pytest.TempPathFactory) -> FactStore:
    folder = tmp_path_factory.mktemp("transformer")
    write_sample(folder)
    return facts_of(folder)


def test_the_layers_of_a_simulated_transformer(transformer: FactStore) -> None:
    found = transformer[layers]
    assert found.towers["layers"].tolist() == [ModelShape().layers]
    assert found.towers["passes"].tolist() == [1.0]


def test_every_kernel_is_booked_once(transformer: FactStore) -> None:
    own, found = transformer[step_kernels], transformer[layers]
    assert found.times["ns"].sum() * own.steps == pytest.approx(own.frame["duration_ns"].sum(), rel=1e-12)
    assert found.times["kernels"].sum() * own.steps == pytest.approx(len(own.frame))
    assert ((found.layer >= 0) == (found.tower >= 0)).all()


def test_an_attention_is_booked_as_one_and_the_optimizer_behind_the_backward_pass(transformer: FactStore) -> None:
    own, found = transformer[step_kernels].frame, transformer[layers]
    types = own["type"].astype(str)
    attention = types.str.contains("FlashAttention").to_numpy()
    assert attention.any()
    assert set(found.blocks[attention].tolist()) == {Block.ATTENTION}
    backward = types.str.contains("AttentionScoreGrad").to_numpy()
    assert set(found.passes[backward].tolist()) == {Pass.BACKWARD}
    updates = (own["operator_class"] == "optimizer").to_numpy()
    assert set(found.blocks[updates].tolist()) == {Block.OPTIMIZER}


def test_a_backward_pass_takes_the_layers_in_reverse(transformer: FactStore) -> None:
    own, found = transformer[step_kernels].frame, transformer[layers]
    chosen = (found.layer >= 0) & (found.passes == Pass.BACKWARD) & (found.run == found.run.max())
    order = own[chosen]["start_ns"].to_numpy().argsort()
    assert (np.diff(found.layer[chosen][order]) <= 0).all()


def test_the_drawing_has_the_sums_of_the_layers(transformer: FactStore) -> None:
    views = blocks.draw(transformer.view(blocks.needs, blocks.wants))
    by_pass, by_layer = views
    assert isinstance(by_pass, HeatmapView)
    assert isinstance(by_layer, HeatmapView)
    total = sum(line[-1] or 0 for line in by_pass.data.values)
    assert total == pytest.approx(transformer[layers].times["ns"].sum(), abs=len(by_pass.data.rows))
    inside = transformer[layers].times.query("tower >= 0")["ns"].sum()
    cells = [value for line in by_layer.data.values for value in line if value is not None]
    assert sum(cells) == pytest.approx(inside, abs=len(cells))


def test_a_convolutional_network_has_no_layers(profiles: Path) -> None:
    found = facts_of(profiles / "ascend" / "alexnet-ddp-text-level1").find(layers)
    assert isinstance(found, Missing)
    assert "no layers" in found.reason.en


KINDS = "norm product product product attention product norm product other product"


def _marks(kinds: str) -> Marks:
    words = np.array(kinds.split())
    product, attention = words == "product", words == "attention"
    nothing = np.zeros(len(words), dtype=np.bool_)
    return Marks(
        product=product,
        convolution=nothing,
        attention=attention,
        rare=attention,
        heavy=product | attention,
        norm=words == "norm",
        routing=words == "routing",
        gradient=nothing,
    )


def test_the_blocks_of_a_layer_forward() -> None:
    keys = [Block(one).key for one in blocks_of_layer(_marks(KINDS), backward=False)]
    assert keys == ["norm", *["attention"] * 5, "norm", *["ffn"] * 3]


def test_the_blocks_of_a_layer_backward() -> None:
    """Two products for each; those of the output projection stand before the attention."""
    kinds = "product product other product product norm product product attention product product norm"
    keys = [Block(one).key for one in blocks_of_layer(_marks(kinds), backward=True)]
    assert keys == [*["ffn"] * 5, "norm", *["attention"] * 5, "norm"]


def test_where_experts_are_chosen_the_products_are_theirs() -> None:
    kinds = "product attention product norm product routing product"
    keys = [Block(one).key for one in blocks_of_layer(_marks(kinds), backward=False)]
    assert keys == [*["attention"] * 3, "norm", *["experts"] * 3]


REAL = {
    "ascend/gpt3-kernel-details-only_ascend_pt": (2, 27),  # counted by hand: 54 kernels from LayerNormV3 to Add, twice
    "kineto/sglang_Qwen3-8B_prefilldecode.json.gz": (36, 14),  # num_hidden_layers of Qwen3-8B
    "kineto/vllm-prefill-decode-graph.json.gz": (24, 17),  # one attention each, 24 attentions
    "kineto/bert-small-h100.json.gz": (4, 12),  # num_hidden_layers of bert-small
}


@pytest.mark.parametrize("name", REAL)
def test_the_layers_of_real_recordings(profiles: Path, name: str) -> None:
    found = facts_of(profiles / name)[layers]
    assert isinstance(found, Layers)
    assert list(zip(found.towers["layers"], found.towers["kernels"], strict=True)) == [REAL[name]]
