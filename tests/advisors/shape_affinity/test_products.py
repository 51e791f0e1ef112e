"""M, N and K of matrix products, from their shapes."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor_core.api.testing import Scene
from advisors.roofline.products import matrix_products, product_of
from tests.advisors.shape_affinity.scenes import CHIP, times, until_the_end


@given(
    st.lists(st.integers(1, 9), max_size=2),
    st.integers(1, 99),
    st.integers(1, 99),
    st.integers(1, 99),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
def test_products_are_read_back_from_their_shapes(
    batch: list[int], m: int, n: int, k: int, flip_left: bool, flip_right: bool, plain_right: bool
) -> None:
    """Whichever operand is stored transposed, and with a batch or without; a plain right operand makes it one."""

    def text(*axes: int) -> str:
        return ",".join(map(str, axes))

    left = text(*batch, *((k, m) if flip_left else (m, k)))
    right = text(*(() if plain_right else batch), *((n, k) if flip_right else (k, n)))
    found = product_of(f"{left};{right};7", "ND;ND;ND", text(*batch, m, n))
    assert found is not None and found.flops == 2 * math.prod(batch) * m * n * k
    merged = plain_right or not batch
    assert (found.m, found.batch) == ((math.prod(batch) * m, 1) if merged else (m, math.prod(batch)))
    assert (found.n, found.k) == (n, k)
    assert found.left_tail == (m if flip_left else k) and found.right_tail == (k if flip_right else n)
    assert found.right_axis == ("" if n == k else "k" if flip_right else "n")


@pytest.mark.parametrize(
    ("shapes", "formats", "out"),
    [
        ("8,16", "ND", "8,4"),
        ("8,16;16", "ND;ND", "8"),
        ("8,16;17,4", "ND;ND", "8,4"),
        ("", "", ""),
        ("0,16;16,4", "ND;ND", "0,4"),
        ("1,1,16,16;1,1,16,16", "FRACTAL_NZ;FRACTAL_NZ", "8,4"),
        ("8,2,64,16;8,1,16,32", "ND;ND", "8,2,64,32"),  # a batch that is repeated
    ],
)
def test_shapes_that_do_not_tell_are_left_alone(shapes: str, formats: str, out: str) -> None:
    assert product_of(shapes, formats, out) is None


@pytest.mark.parametrize("type_", ["GroupedMatmul", "MatmulAllReduce", "AllGatherMatmul", "MatmulReduceScatter"])
def test_products_of_several_ranks_or_groups_are_no_plain_products(type_: str) -> None:
    scene = until_the_end(times(Scene(), 0, 1000, "128,7168", "7168,1536", "128,1536", type_=type_))
    assert len(scene.store(chip=CHIP)[matrix_products]) == 0
