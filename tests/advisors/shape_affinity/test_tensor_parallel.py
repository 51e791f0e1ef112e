"""SA010: products that are divided between ranks."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor_core.api.testing import Scene, judge_rule
from tests.advisors.real import real_rank
from tests.advisors.shape_affinity.scenes import VECTOR, judged, kinds, times, until_the_end


def layer(scene: Scene, start: float, inner: int, *, reduce: bool = True, up: int = 0) -> Scene:
    """A feed-forward network: 4096 rows, 4096 wide, ``inner`` on this rank; then the sum of the results."""
    columns = up or inner
    times(scene, start, 1000, "4096,4096", f"{columns},4096", f"4096,{columns}")
    scene.tensors(start + 1000, 20, "Gelu", [f"4096,{inner} BF16"], [f"4096,{inner} BF16"], core=VECTOR)
    times(scene, start + 1020, 1000, f"4096,{inner}", f"4096,{inner}", "4096,4096")
    if reduce:
        scene.collective(start + 2020, 400, operation="allReduce")
    return scene.tensors(start + 2500, 20, "Add", ["4096,4096 BF16"] * 2, ["4096,4096 BF16"], core=VECTOR)


def model(inner: int, *, reduce: bool = True, up: int = 0) -> Scene:
    return until_the_end(layer(layer(Scene(), 0, inner, reduce=reduce, up=up), 3000, inner, reduce=reduce, up=up))


def test_a_size_with_axes_that_load_well_is_found() -> None:
    """11,008 on eight ranks: 1376 numbers are 2752 bytes, 5.4 x 512; 10.8 and 21.5 on four and two ranks, 43 on one."""
    found = judged("SA010", model(1376))
    seen = found.first.observation
    assert (seen["divided_axes"], seen["guessed"], seen["bad"]) == ("K 1376, N 1376", "", "K 1376")
    assert seen["good_factor"] == 1 / 8 and seen["total_ns"] == 4_000_000 and seen["kernels"] == 4
    # Today 32 x 11 blocks of 128 columns on 24 cores, 15 rounds; whole, 32 x 86, 115 rounds. The other product
    # sums over eight times as much, and loads a tenth quicker.
    columns = 115 / 15 / 8
    sums = 8 * 0.9 / 8
    assert seen["gain_ns"] == pytest.approx(2_000_000 * (1 - columns) + 2_000_000 * (1 - sums), abs=1)
    assert kinds(found) == ["investigate", "config"]


def test_columns_by_place_alone_are_called_a_guess() -> None:
    seen = judged("SA010", model(1376, up=1632)).observed
    assert seen is not None
    row = seen.frame.iloc[0]
    assert (row["divided_axes"], row["guessed"]) == ("K 1376", "N 1632")


@pytest.mark.parametrize(
    ("scene", "state"),
    [
        (model(1376, reduce=False), "not_applicable"),  # nothing is summed between ranks
        (model(1536), "pass"),  # 6 x 512 bytes
    ],
)
def test_other_products_are_silent(scene: Scene, state: str) -> None:
    assert judged("SA010", scene).state == state


def test_a_recorded_model_on_eight_ranks(profiles: Path) -> None:
    """GPT-3, 12,288 wide, on eight ranks: 1536 of the attention, 4608 = 3 x 1536 of queries, keys and values, 6144 of
    the feed-forward network. All load well and fill the cores; the size of the group is not recorded."""
    found = judge_rule("SA010", real_rank(profiles, "gpt3-kernel-details-only_ascend_pt", 0))
    assert found.state == "pass" and found.observed is not None
    row = found.observed.frame.iloc[0]
    assert (row["divided_axes"], row["guessed"], row["bad"]) == ("K 1536, K 6144, N 4608, N 6144", "", "")
    assert row["ranks"] is None and row["good_ranks"] is None, "said as unknown"
    assert (row["good_factor"], row["kernels"]) == (1, 8)
    data_parallel = judge_rule("SA010", real_rank(profiles, "alexnet-ddp-text-level1", 0))
    assert data_parallel.state == "not_applicable"
