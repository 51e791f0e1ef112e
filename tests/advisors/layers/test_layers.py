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
from advisor_core.sample.models.model import ModelShape
from advisors.fusion.nodes import KernelNodes
from advisors.layers.blocks import Block, Pass, blocks_around, blocks_of_layer
from advisors.layers.drawings import blocks
from advisors.layers.layers import Layers, layers
from advisors.layers.marks import Marks
from advisors.layers.runs import Run, runs_of
from advisors.layers.stacks import Stack
from advisors.step_kernels import step_kernels
from tests.advisors.build import host


def facts_of(path: Path) -> FactStore:
    loaders = host().loaders
    source = discover(list(loaders.values()), path)[0]
    return fact_store(host(), loaders[source.loader].load(source))


@pytest.fixture(scope="module")
def transformer(advisor_sample: Path) -> FactStore:
    return facts_of(advisor_sample)


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
        convolution=words == "convolution",
        attention=attention,
        rare=attention,
        heavy=product | attention | (words == "convolution"),
        norm=words == "norm",
        routing=words == "routing",
        gradient=nothing,
        optimizer=words == "update",
        cache=words == "cache",
    )


def test_what_writes_the_cache_is_a_part_of_its_own() -> None:
    kinds = "norm product other cache attention product norm product"
    keys = [Block(one).key for one in blocks_of_layer(_marks(kinds), backward=False)]
    assert keys == ["norm", "attention", "attention", "cache", "attention", "attention", "norm", "ffn"]


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


def _around(kinds: str, *layers: tuple[int, int], gradients: int | None = None) -> list[tuple[str, str]]:
    """Block and pass of the kernels outside of ``layers`` (first and behind the last kernel); those from
    ``gradients`` on are of the backward pass."""
    marks, rows = _marks(kinds), np.arange(len(kinds.split()))
    backward = rows >= (len(rows) if gradients is None else gradients)
    runs = [Run(rows, np.array([a]), np.array([b]), 1.0, backward=bool(backward[a])) for a, b in layers]
    outside = rows[~np.isin(rows, np.concatenate([np.arange(a, b) for a, b in layers]))]
    blocks, passes = blocks_around(outside, runs, marks, backward)
    return [(Block(block).key, Pass(each).key) for block, each in zip(blocks, passes, strict=True)]


def test_beside_the_layers_of_a_transformer_lie_embedding_and_head() -> None:
    kinds = "other product attention product product product other"
    assert _around(kinds, (1, 5)) == [("embedding", "forward"), ("head", "forward"), ("other", "forward")]


def test_a_convolution_before_the_layers_of_a_convolutional_network_is_no_embedding() -> None:
    kinds = "convolution norm other convolution convolution convolution convolution other product"
    around = [block for block, _ in _around(kinds, (3, 7))]
    assert around == ["convolution", "norm", "convolution", "other", "other"]


def test_a_convolution_before_the_layers_of_a_transformer_is_its_embedding() -> None:
    assert _around("convolution product attention product", (1, 4)) == [("embedding", "forward")]


def test_a_pass_of_which_no_layer_was_found_has_no_embedding() -> None:
    kinds = "product norm product product product product"
    around = _around(kinds, (4, 6), gradients=4)
    assert around == [("other", "forward"), ("norm", "forward"), ("other", "forward"), ("other", "forward")]


def test_layers_that_are_a_small_part_of_the_model_name_nothing_beside_them() -> None:
    around = _around("product product product product product attention product", (4, 6))
    assert {block for block, _ in around} == {"other"}


def test_updates_without_a_backward_pass_are_the_optimizer() -> None:
    around = _around("other product attention product update other update", (1, 4))
    assert around == [("embedding", "forward"), *[("optimizer", "optimizer")] * 3]


def test_the_stages_of_a_real_convolutional_network_are_convolutions(profiles: Path) -> None:
    """ResNet-50 has stages of 3, 4, 6 and 3 blocks. Where its forward pass had none 58.3 ms were called embedding."""
    for name in ("resnet50-workers-0", "resnet50-workers-4"):
        found = facts_of(profiles / "kineto" / name)[layers]
        assert sorted(found.towers["layers"]) == [3, 3, 4, 6]
        times = found.times
        assert set(times["block"]) == {"convolution", "norm", "optimizer", "other"}
        by_block = times.groupby("block")["ns"].sum()
        assert by_block["convolution"] > 80e6 > 1e6 > by_block["other"]


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


def _runs(*units: str) -> list[tuple[bool, int]]:
    """Direction and number of layers of the runs over stacks of equal units, ``f`` a product of the forward and ``b``
    one of the backward pass: ``fffbbb*4`` are four such units."""
    kinds, stacks = "", []
    for unit in units:
        one, _, count = unit.partition("*")
        starts = len(kinds) + len(one) * np.arange(int(count))
        stacks.append(Stack(starts, starts + len(one), 1.0, apart=True))
        kinds += one * int(count)
    marks = _marks(" ".join(["product"] * len(kinds)))
    backward = np.array([kind == "b" for kind in kinds], dtype=np.bool_)
    marks.gradient[:] = backward
    rows = np.arange(len(kinds))
    types = np.where(backward, 1, 0)
    found = runs_of(rows, types, stacks, marks, KernelNodes([], backward))
    return [(run.backward, len(run)) for run in found]


def test_micro_batches_through_a_single_layer_are_no_layers() -> None:
    """What runs forward and backward in turns is a stage of one layer; where the layers ran forward before, the same
    are layers that are computed again."""
    assert _runs("fffbbb*7") == []
    assert _runs("fff*7", "fffbbb*7") == [(False, 7), (True, 7)]
    assert _runs("fff*3", "fffbbb*7") == [(False, 3)]
    assert _runs("fff*3", "bbbb*3", "fff*3", "bbbb*3") == [(False, 3), (True, 3)] * 2
