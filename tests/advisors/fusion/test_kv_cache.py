"""Rows of keys and values put into a cache, by kernels that take the whole of it."""

from __future__ import annotations

import pytest

from advisor_core.api.testing import Scene, judge_rule
from tests.advisors.fusion.chains import YARDSTICK, Kernel, found_in, scene_of

CACHE, ROW, GROWN = "8,8,500,64 BF16", "8,8,1,64 BF16", "8,8,501,64 BF16"  # 4.1 MB, 8.2 kB

JOINED: Kernel = ("ConcatD", 10, (CACHE, ROW), (GROWN,))
COPIED: Kernel = ("InplaceIndexCopy", 10, (CACHE, "1 INT64", ROW), (CACHE,))


@pytest.mark.parametrize("kernel", [JOINED, COPIED], ids=["joined", "written by a copy"])
def test_only_the_row_has_to_be_written(kernel: Kernel) -> None:
    scene = scene_of([YARDSTICK, kernel, kernel])
    assert found_in(scene) == [("kv_cache_write", False, 1)] * 2
    found = judge_rule("NS045", scene.store()).first
    # 8,192 bytes, read and written, for keys and for values, at 1 TB/s.
    assert found.observation["fused_ns"] == pytest.approx(2 * 2 * 8.192)
    assert found.observation["saving_ns"] == pytest.approx(20_000 - 2 * 2 * 8.192, abs=2)


@pytest.mark.parametrize("kernel", [JOINED, COPIED], ids=["joined", "written by a copy"])
def test_a_kernel_that_takes_as_long_as_the_shortest_saves_nothing(kernel: Kernel) -> None:
    """It writes the row alone, or the cache is small: there is no other kernel that would be shorter."""
    scene = Scene().step(1, -10, 100)
    for number in range(3):
        scene.tensors(20.0 * number, 3, "Relu", ("9,9 BF16",), ("9,9 BF16",), core="AI_VECTOR_CORE")
        name, _, reads, writes = kernel
        scene.tensors(20.0 * number + 10, 3, name, reads, writes)
    assert found_in(scene) == [("kv_cache_write", False, 1)] * 3
    assert judge_rule("NS045", scene.store()).state == "pass"


@pytest.mark.parametrize(
    ("reads", "writes"),
    [
        (("8,8,1,32 BF16", "8,8,1,32 BF16"), "8,8,1,64 BF16"),
        (("8,77,64 BF16", "8,500,64 BF16"), "8,577,64 BF16"),
        (("8,1,64 BF16", "8,500,64 BF16"), "8,501,64 BF16"),
        (("8,500 INT64", "8,1 INT64"), "8,501 INT64"),
        (("1,320,32,32 BF16", "1,640,32,32 BF16"), "1,960,32,32 BF16"),
    ],
    ids=["halves", "text and image", "the first of a sequence", "words", "channels"],
)
def test_other_tensors_are_joined_too(reads: tuple[str, str], writes: str) -> None:
    assert found_in(scene_of([("ConcatD", 10, reads, (writes,))])) == []
