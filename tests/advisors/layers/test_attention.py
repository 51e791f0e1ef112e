"""The stages of attention, and the passes where no layers repeat."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from advisor_core.api.renderers import HeatmapView, TableView
from advisor_core.contracts.missing import Unavailable
from advisor_core.facts.store import FactStore
from advisors.fusion.chains import fusion_chains
from advisors.fusion.nodes import kernel_nodes
from advisors.layers.attention import Stage, attention, stages_of
from advisors.layers.blocks import Block, Pass
from advisors.layers.layers import layers
from advisors.layers.marks import CACHE_WRITE, marks_of
from advisors.layers.passes import passes, passes_of
from advisors.step_kernels import step_kernels
from tests.advisors.layers.test_layers import facts_of

Key = tuple[object, ...]


def table_of(store: FactStore) -> dict[Key, dict[str, object]]:
    """The rows by stage, pass and operator with its size."""
    (view,) = attention.draw(store.view(attention.needs, attention.wants))
    assert isinstance(view, TableView)
    heads = [column.label.en for column in view.data.columns]
    cells = [[getattr(cell, "en", cell) for cell in row] for row in view.data.rows]
    rows = [dict(zip(heads, row, strict=True)) for row in cells]
    return {(row["Stage"], row["Pass"], row["Operator"], row.get("M x N x K")): row for row in rows}


def test_the_projections_of_a_recorded_model(profiles: Path) -> None:
    """Two layers of GPT-3 on eight ranks, kernels 25 to 47 and 63 to 82 of the file: 4608 = 3 x 12288 / 8 columns of
    queries, keys and values; 12 heads; the output sums over 1536 = 12288 / 8."""
    folder = profiles / "ascend" / "gpt3-kernel-details-only_ascend_pt"
    (path,) = folder.rglob("kernel_details.csv")
    with path.open(encoding="utf-8") as file:
        lines = [row for row in csv.DictReader(file) if row["Type"] == "MatMul"]
    rows = table_of(facts_of(folder))
    for key, right in (
        (("projections of queries, keys, values", "forward", "MatMul", "4096 x 4608 x 12288"), "4608,12288"),
        (("output projection", "forward", "MatMul", "4096 x 12288 x 1536"), "12288,1536"),
    ):
        took = sum(float(row["Duration(us)"]) for row in lines if row["Input Shapes"].strip('"').endswith(right))
        assert rows[key]["Kernel time"] == pytest.approx(took * 1e3) and rows[key]["Layers"] == 2
    core = {key[2:] for key in rows if key[0] == "scores and weighted values"}
    sizes = {"12 x (1024 x 1024 x 512)", "12 x (1024 x 512 x 1024)"}
    assert core == {("ScaledMaskedSoftmax", None), *(("BatchMatMul", size) for size in sizes)}


@pytest.mark.parametrize(
    ("name", "operator", "count"),
    [("sglang_Qwen3-8B_prefilldecode", "store_kvcache", 36), ("vllm-prefill-decode-graph", "reshape_and_cache", 24)],
)
def test_writing_the_cache_of_recorded_engines(profiles: Path, name: str, operator: str, count: int) -> None:
    """In each layer once, between the projections and the attention."""
    rows = table_of(facts_of(profiles / "kineto" / f"{name}.json.gz"))
    (cache,) = [row for key, row in rows.items() if key[0] == "writing the cache"]
    assert operator in str(cache["Operator"]) and cache["Layers"] == cache["Kernels"] == count
    for stage in ("projections of queries, keys, values", "scores and weighted values", "output projection"):
        assert [row["Layers"] for key, row in rows.items() if key[0] == stage] == [count]


def test_a_backward_pass_has_the_stages_in_reverse(advisor_sample: Path) -> None:
    store = facts_of(advisor_sample)
    kernels, model = store[step_kernels], store[layers]
    stage = stages_of(model, marks_of(kernels, store[kernel_nodes], store[fusion_chains]))
    for in_pass, order in ((Pass.FORWARD, 1), (Pass.BACKWARD, -1)):
        for one in range(int(model.layer.max()) + 1):
            own = (model.passes == in_pass) & (model.layer == one) & (model.run >= 0)
            own &= model.run == model.run[own].min()
            inputs, core, output = (
                np.flatnonzero(own & (stage == each)) for each in (Stage.INPUTS, Stage.CORE, Stage.OUTPUT)
            )
            first, last = (inputs, output) if order > 0 else (output, inputs)
            assert len(first) and len(last) and first.max() < core.min() <= core.max() < last.min()
            assert len(inputs) == 3 * len(output)  # queries, keys and values by a product each
    assert set(model.blocks[stage >= 0].tolist()) == {Block.ATTENTION}


@pytest.mark.parametrize(
    ("name", "writes"),
    [
        ("ReshapeAndCacheNdKernel", True),
        ("ScatterPaKvCache", True),
        ("_C_cache_ops::reshape_and_cache_flash", True),
        ("store_kvcache", True),
        ("PagedAttentionMaskNdKernel", False),
        ("KvRmsNormRopeCache", False),
        ("GatherPaKvCache", False),
        ("aten::copy_", False),
    ],
)
def test_types_that_write_a_cache(name: str, writes: bool) -> None:
    assert bool(CACHE_WRITE.fullmatch(name)) is writes


def test_the_passes_of_a_recorded_network_without_layers(profiles: Path) -> None:
    """AlexNet: all time is in one of three passes; only the backward pass has gradients of convolutions."""
    store = facts_of(profiles / "ascend" / "alexnet-ddp-text-level1")
    (view,) = passes.draw(store.view(passes.needs, passes.wants))
    assert isinstance(view, HeatmapView)
    assert [getattr(column, "en", column) for column in view.data.columns] == [
        "forward",
        "backward",
        "optimizer",
        "sum",
    ]
    kernels = store[step_kernels]
    total = sum(line[-1] or 0 for line in view.data.values)
    assert total == pytest.approx(kernels.frame["duration_ns"].sum() / kernels.steps, abs=len(view.data.rows))
    gradients = kernels.frame["type"].astype(str).str.contains("Conv2DBackprop")
    took = kernels.frame["duration_ns"][gradients].sum() / kernels.steps
    (line,) = [
        values
        for row, values in zip(view.data.rows, view.data.values, strict=True)
        if getattr(row, "en", row) == "convolution"
    ]
    assert line[1] == pytest.approx(took, abs=1) and line[2] == 0
    with pytest.raises(Unavailable):
        attention.draw(store.view(attention.needs, attention.wants))


def test_passes_are_not_drawn_where_layers_are(advisor_sample: Path) -> None:
    store = facts_of(advisor_sample)
    assert passes.draw(store.view(passes.needs, passes.wants)) == []


def test_an_update_is_of_no_other_pass() -> None:
    backward, updating = np.array([False, True, True]), np.array([False, False, True])
    assert passes_of(backward, updating).tolist() == [Pass.FORWARD, Pass.BACKWARD, Pass.OPTIMIZER]
