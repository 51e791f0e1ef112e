"""Tokens and images that a rank reads, by the shapes of the kernels that read them first."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor_core.api.renderers import TableView
from advisor_core.api.testing import GPU, Scene
from advisor_core.loaders.discover import discover
from advisor_core.run.rank import fact_store
from advisors.roofline.quantities import quantities
from tests.advisors.build import host
from tests.advisors.shape_affinity.scenes import CHIP, VECTOR

IDS = "2,1024 INT64"
TABLE = "50000,512 BF16"


def rows(scene: Scene) -> list[list[object]]:
    facts = scene.store(chip=CHIP).view(quantities.needs, quantities.wants)
    drawn = quantities.draw(facts)
    if not drawn:
        return []
    (found,) = drawn
    assert isinstance(found, TableView)
    return [[getattr(cell, "en", cell) for cell in row] for row in found.data.rows]


def lookup(
    scene: Scene, at: float, table: str = TABLE, ids: str = IDS, out: str = "2,1024,512 BF16", step: int = 1
) -> Scene:
    return scene.tensors(at, 20, "GatherV2", [table, ids, "1 INT64"], [out], core=VECTOR, step=step)


def test_tokens_of_two_micro_batches_and_their_rate() -> None:
    """2,048 tokens twice in 510 us: positions and the gradient of the table are none of them."""
    scene = lookup(lookup(Scene().step(1, 0, 1000), 10), 500)
    lookup(scene, 40, table="1024,512 BF16")
    scene.tensors(300, 50, "EmbeddingDenseGrad", ["2,1024,512 BF16", IDS], [TABLE], core=VECTOR)
    (row,) = rows(scene)
    assert (row[0], row[2]) == ("tokens", 4096)
    assert row[-2:] == [pytest.approx(4096 / 510e-6), "lookups in a table of 50000 x 512"]


def test_steps_that_read_different_numbers() -> None:
    scene = lookup(Scene().step(1, 0, 1000), 10).step(2, 1000, 1000)
    lookup(scene, 1010, ids="1,500 INT64", out="1,500,512 BF16", step=2)
    (row,) = rows(scene)
    assert row[2:4] == [(2048 + 500) / 2, "500–2048"]


def test_tokens_that_are_sorted_are_not_looked_up() -> None:
    """Of a stage without an embedding: the rows of what a product gave are gathered by expert."""
    scene = Scene().step(1, 0, 1000)
    scene.tensors(10, 100, "MatMulV2", ["4096,512 BF16", "512,512 BF16"], ["4096,512 BF16"])
    lookup(scene, 200, table="4096,512 BF16", ids="8192 INT32", out="8192,512 BF16")
    assert rows(scene) == []


def test_labels_of_classes_are_no_tokens() -> None:
    assert rows(lookup(Scene().step(1, 0, 1000), 10, "1001,1152 BF16", "16 INT64", "16,1152 BF16")) == []


@pytest.mark.parametrize(
    ("image", "format_", "weight", "told"),
    [
        ("32,3,224,224", "NCHW", "64,3,7,7", ["images", 32.0]),
        ("8,1,28,28", "NCHW", "16,1,3,3", ["images", 8.0]),
        ("32,64,56,56", "NCHW", "64,64,3,3", []),  # not the first convolution of a model
        ("2,4,64,64", "NCHW", "320,4,3,3", []),  # latent images
    ],
)
def test_images(image: str, format_: str, weight: str, told: list[object]) -> None:
    scene = Scene(words=GPU).step(1, 0, 1000)
    scene.tensors(10, 100, "aten::cudnn_convolution", [f"{image} FLOAT", f"{weight} FLOAT"], ["32,64,112,112 FLOAT"])
    found = rows(scene)
    assert ([found[0][0], found[0][2]] if found else []) == told


REAL = {
    "kineto/bert-small-h100.json.gz": ("tokens", 141, 36_081),
    "kineto/sglang_Qwen3-8B_prefilldecode.json.gz": ("tokens", 15_360, 31_093),
    "ascend/gpt3-kernel-details-only_ascend_pt": ("tokens", 4 * 1024, 20_019),
    "ascend/alexnet-ddp-text-level1/rank0_ascend_pt": ("images", 32, 234),
    "kineto/resnet50-workers-0": ("images", 32, 220),
}
"""By hand: integers of the lookup, axis 0 of the images; over the time of the step. The mark of the engine of the
second says toks=15360."""


@pytest.mark.parametrize("name", REAL)
def test_real_recordings(profiles: Path, name: str) -> None:
    loaders = host().loaders
    source = discover(list(loaders.values()), profiles / name)[0]
    store = fact_store(host(), loaders[source.loader].load(source))
    (view,) = quantities.draw(store.view(quantities.needs, quantities.wants))
    assert isinstance(view, TableView)
    (row,) = view.data.rows
    assert (row[0].en, row[2], round(row[3])) == REAL[name]  # type: ignore[union-attr, arg-type]
