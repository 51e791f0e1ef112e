"""SA009: one number of rows for kernels that want different ones."""

from __future__ import annotations

from math import ceil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor_core.api.testing import Scene
from advisors.shape_affinity.row_parts import RowPart
from tests.advisors.shape_affinity.scenes import CORES, VECTOR, judged, kinds, times, until_the_end

GIB = 1024**3


def norm(scene: Scene, start: float, us: float, rows: str, blocks: int = 48) -> Scene:
    return scene.tensors(start, us, "RmsNorm", [f"{rows} BF16", "7168 BF16"], [f"{rows} BF16"], core=VECTOR).busy(
        blocks
    )


def step(rows: int = 145, *, norm_us: float = 1000, product_us: float = 1000, blocks: int = 24) -> Scene:
    """A norm and a product of as many rows, on 24 cube and 48 vector cores."""
    scene = norm(Scene(), 0, norm_us, f"{rows},7168")
    times(scene, 2000, product_us, f"{rows},7168", "7168,6144", f"{rows},6144", blocks=blocks)
    return until_the_end(scene)


def test_kernels_that_want_different_rows_get_one_number() -> None:
    """145 rows: the norm goes four rounds of 48 cores and wants 192; the product, 24 blocks of 256 columns for each 128
    rows, wants 256. Per row: 13.8 us today, (750 + 500) / 128 = 9.8, 2000 / 192 = 10.4, (1250 + 1000) / 240 = 9.4,
    (1500 + 1000) / 256 = 9.8."""
    found = judged("SA009", step())
    seen = found.first.observation
    assert (seen["rows"], seen["good_rows"], seen["multiple"]) == (145, 240, 1)
    assert seen["proposals"] == "RmsNorm: 192, MatMulV3 (N 6144): 256"
    assert seen["total_ns"] == 2_000_000 and seen["kernels"] == 2 and seen["fitting_rows"] == 0
    now, then = (145 / 192 + 145 / 256) / 2, (1 + 240 / 256) / 2
    assert (seen["efficiency"], seen["good_efficiency"]) == (pytest.approx(now), pytest.approx(then))
    assert found.first.impact_ns == pytest.approx(2_000_000 * (then - now), abs=1)
    assert found.first.severity == "high" and kinds(found) == ["investigate", "config"]
    assert [type(reference).__name__ for reference in found.evidence()] == ["Metric", "Rows"]


def test_the_kernel_that_takes_longer_decides_and_nearer_rows_are_taken() -> None:
    """With a product of ten times the time, 128 and 256 rows cost 22.5 us per row, 240 rows 23.4."""
    seen = judged("SA009", step(norm_us=500, product_us=5000)).first.observation
    assert seen["good_rows"] == 128


@pytest.mark.parametrize(
    "scene",
    [
        step(256),  # all rows of the blocks, and 89 % of six rounds
        step(64),  # up to 128 rows a product loads its weights once
        step(norm_us=4),  # too short to count
        step(product_us=9),
        step(blocks=97),  # more blocks than the sizes give: it divides otherwise
        until_the_end(times(norm(Scene(), 0, 900, "145,7168"), 1000, 900, "7168,145", "145,6144", "7168,6144")),
        until_the_end(times(norm(Scene(), 0, 900, "145,7168"), 1000, 900, "130,7168", "7168,6144", "130,6144")),
    ],
    ids=["near-enough", "one-block", "short-norm", "short-product", "divides", "gradient-of-a-weight", "an-expert"],
)
def test_nothing_is_joined(scene: Scene) -> None:
    assert judged("SA009", scene).state in ("pass", "not_applicable")


def test_a_gradient_of_a_weight_is_left_out() -> None:
    """Its left operand is stored with the rows last: it sums over them, so that more rows only take longer."""
    scene = times(step(), 5000, 1000, "145,7168", "145,6144", "7168,6144")
    assert judged("SA009", scene).first.observation["total_ns"] == 2_000_000


def test_heads_that_are_normalised_apart_belong_to_the_rows_before_them() -> None:
    """145 rows of 8 heads are 1160, which 25 rounds of 48 cores take."""
    seen = judged("SA009", norm(step(), 4000, 1000, "145,8,128")).first.observation
    assert seen["total_ns"] == 3_000_000 and seen["good_rows"] == 234  # 39 rounds of heads; 240 are 1.5 % better
    assert seen["efficiency"] == pytest.approx((145 / 192 + 145 / 256 + 1160 / 1200) / 3)


def test_sequences_keep_their_speculated_tokens() -> None:
    """Six sequences of three tokens, one head of key and value: 24 sequences would fill the cores, 48 rows the norm."""
    scene = norm(Scene(), 0, 1000, "18,7168", blocks=18)
    times(scene, 2000, 1000, "18,7168", "7168,6144", "18,6144")
    reads = ["18,8,128 BF16", "900,128,1,128 BF16", "900,128,1,128 BF16", "6,512 INT32"]
    scene.tensors(4000, 1000, "IncreFlashAttention", reads, ["18,8,128 BF16"], core="MIX_AIC").busy(6)
    seen = judged("SA009", until_the_end(scene)).first.observation
    assert (seen["multiple"], seen["good_rows"]) == (3, 72)
    assert seen["proposals"] == "IncreFlashAttention: 72, RmsNorm: 48, MatMulV3 (N 6144): 18"


def test_samples_of_a_length_stay_whole() -> None:
    """Three samples of 512 tokens. N = 1152: 108 blocks of 128 or 60 of 256 on 24 cores, 90 and 83 %; N = 1408: 132 and
    72, three rounds. Whatever is found has whole samples."""
    scene = norm(Scene(), 0, 100, "3,512,7168")
    times(scene, 2000, 3000, "1536,7168", "7168,512", "1536,512")
    times(scene, 6000, 3000, "1536,7168", "7168,1152", "1536,1152")
    found = judged("SA009", until_the_end(scene))
    assert found.observed is not None
    row = found.observed.frame.iloc[0]
    assert row["multiple"] == 512 and row["good_rows"] % 512 == 0


def test_rows_that_the_memory_does_not_hold_are_left_out() -> None:
    """The step adds 10 GiB, 4 of 64 GiB are free: 145 x 1.4 rows fit, so that 240 are too many and 128 are best."""
    scene = step().step(1, 0, 10_000)
    for time, allocated in ((0, 45), (5000, 55), (9000, 45)):
        scene.add(
            "memory_record", component="PTA", time_us=time, allocated_bytes=allocated * GIB, reserved_bytes=58 * GIB
        )
        scene.add("memory_record", component="APP", time_us=time, reserved_bytes=60 * GIB)
    found = judged("SA009", scene)
    assert (found.first.observation["fitting_rows"], found.first.observation["good_rows"]) == (203, 128)
    assert kinds(found) == ["investigate", "investigate", "config"]


def parts(rows: int, cores: int, columns: int, tasks: int) -> list[RowPart]:
    more = {"each": 1, "total_ns": 100.0, "kernels": 1.0, "frame_rows": np.zeros(0, dtype=np.int64)}
    return [
        RowPart("a", "product", rows, cores, columns, 1, **more),  # type: ignore[arg-type]
        RowPart("b", "norm", rows, 2 * cores, 0, tasks, **more),  # type: ignore[arg-type]
    ]


@given(st.integers(1, 3000), CORES, st.integers(1, 8192), st.integers(1, 16), st.integers(1, 3000))
def test_time_follows_the_rounds_of_cores(rows: int, cores: int, columns: int, tasks: int, other: int) -> None:
    """Of a norm rounds of rows; of a product the cheaper of two block sizes, rounds times their width."""
    product, norms = parts(rows, cores, columns, tasks)

    def cost(size: int) -> int:
        return min(ceil(ceil(size / 128) * ceil(columns / base) / cores) * base for base in (256, 128))

    assert product.time_ns(np.array([other]))[0] == pytest.approx(100 * cost(other) / cost(rows))
    rounds = ceil(other * tasks / (2 * cores)) / ceil(rows * tasks / (2 * cores))
    assert norms.time_ns(np.array([other]))[0] == pytest.approx(100 * rounds)
    for part in (product, norms):
        assert 0 < part.used(np.array([other]))[0] <= 1
        assert part.time_ns(np.array([rows]))[0] == pytest.approx(100)
    assert norms.used(np.array([norms.step]))[0] == pytest.approx(1)
