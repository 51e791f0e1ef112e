"""Who wrote what a kernel reads."""

from __future__ import annotations

import numpy as np

from advisor_core.api.testing import Scene
from advisors.fusion.reads import Reads, kernel_reads
from tests.advisors.network_structure.scenes import scene_of

X = "4,8 BF16"


def reads(scene: Scene) -> Reads:
    return scene.store()[kernel_reads]


def edges(found: Reads) -> list[tuple[int, int, bool]]:
    return list(zip(found.writer.tolist(), found.reader.tolist(), found.first.tolist(), strict=True))


def test_the_nearest_writer_of_that_size_and_type_holds() -> None:
    scene = scene_of(
        ("Mul", 5, ("2,2 BF16",), (X,)),
        ("Mul", 5, ("2,2 BF16",), ("4,8 FLOAT",)),
        ("Mul", 5, ("2,2 BF16",), ("8,4 BF16",)),
        ("Add", 5, ("3,3 BF16", "32 BF16"), ("5,5 BF16",)),
    )
    assert edges(reads(scene)) == [(2, 3, False)]


def test_a_kernel_that_writes_where_it_reads_did_not_write_what_it_reads() -> None:
    scene = scene_of(("Mul", 5, ("2,2 BF16",), (X,)), ("Add", 5, (X, X), (X,)), ("Add", 5, (X,), (X,)))
    assert edges(reads(scene)) == [(0, 1, True), (0, 1, False), (1, 2, True)]


def test_no_tensor_comes_over_a_collective() -> None:
    scene = Scene().step(1, -10, 1000)
    scene.tensors(0, 5, "Mul", ("2,2 BF16",), (X,)).collective(6, 20).tensors(40, 5, "Add", (X,), ("3,3 BF16",))
    assert edges(reads(scene)) == []


def test_only_these_readers() -> None:
    scene = scene_of(
        ("Mul", 5, ("2,2 BF16",), (X,)),
        ("Add", 5, (X,), ("3,5 BF16",)),
        ("Sub", 5, (X,), ("3,11 BF16",)),
        ("Sub", 5, ("3,11 BF16",), ("3,13 BF16",)),
    )
    found = reads(scene)
    subs = np.array([False, False, True, True, False])
    assert found.only(subs).tolist() == [False, False, True, False, False]
