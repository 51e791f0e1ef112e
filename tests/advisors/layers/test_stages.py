"""Stages of convolutional networks, whose first block has other sizes."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisors.layers.stacks import StepSequence, stacks
from advisors.layers.stages import longest_common, with_first_blocks

BLOCK = ("conv", "bn", "relu", "conv", "bn", "relu", "conv", "bn", "add", "relu")
WIDENING = (*BLOCK[:8], "conv", "bn", "add", "relu")
"""A block of ResNet, and the first of a stage."""

WITHOUT_SUM = tuple(kind for kind in BLOCK if kind != "add")


def network(
    *stages: int, first: tuple[str, ...] = WIDENING, same_width: bool = False, several: int = 1
) -> StepSequence:
    """Forward passes of stages of so many blocks behind a stem. Kernels have a signature of type, stage, place in the
    block and whether they are of the first block, whose products have sizes of their own; with ``same_width`` the last
    convolution of the first block of the first stage and the one beside it have those of the blocks behind it, as in
    ResNet, where the stem is as wide as the blocks inside."""
    kernels = [("conv", "stem"), ("bn", "stem"), ("relu", "stem"), ("pool", "stem")]
    written = [-1] * len(kernels)
    for stage, blocks in enumerate(stages):
        for block in range(blocks):
            types = first if block == 0 else BLOCK
            for place, kind in enumerate(types):
                alike = same_width and stage == 0 == block and place > 5
                like = place - 2 if alike and place > 7 else place
                count = several if block and place == 3 else 1
                kernels += [(kind, f"{stage} {like} {block == 0 and not alike}")] * count
                written += [stage] * count
    kernels += [("mean", "head"), ("matmul", "head")]
    types = np.unique([kind for kind, _ in kernels], return_inverse=True)[1]
    signature = np.unique([" ".join(one) for one in kernels], return_inverse=True)[1]
    heavy = np.array([kind in ("conv", "matmul") for kind, _ in kernels])
    convolution = np.array([kind == "conv" for kind, _ in kernels])
    none = np.zeros(len(kernels), dtype=np.bool_)
    return StepSequence(signature, types, heavy, none, convolution, np.array([*written, -1, -1]), shaped=True)


def counts(sequence: StepSequence) -> list[int]:
    end = len(sequence.type)
    return [len(stack.starts) for stack in with_first_blocks(sequence, stacks(sequence, end), end)]


@pytest.mark.parametrize("first", [WIDENING, WITHOUT_SUM])
@pytest.mark.parametrize("stages", [(3, 4, 6, 3), (3, 3, 9, 3), (2, 2, 3, 4)])
def test_the_first_block_is_of_the_stage(stages: tuple[int, ...], first: tuple[str, ...]) -> None:
    assert counts(network(*stages, first=first)) == list(stages)


@pytest.mark.parametrize("stages", [(3, 4, 6, 3), (4, 2, 3)])
def test_equal_blocks_that_seem_to_begin_in_the_first_one_are_turned(stages: tuple[int, ...]) -> None:
    sequence = network(*stages, same_width=True)
    assert counts(sequence) == list(stages)
    found = with_first_blocks(sequence, stacks(sequence, len(sequence.type)), len(sequence.type))
    assert found[0].starts[:2].tolist() == [4, 4 + len(WIDENING)]


@pytest.mark.parametrize("several", [2, 4])
def test_a_convolution_of_several_kernels_is_one_product(several: int) -> None:
    sequence = network(3, 4, 6, 3, several=several)
    assert counts(sequence) == [3, 4, 6, 3]
    assert (sequence.heavy & ~sequence.goes_on).sum() == network(3, 4, 6, 3).heavy.sum()


def test_stages_follow_one_another_and_leave_stem_and_head_outside() -> None:
    sequence = network(3, 4, 3)
    found = with_first_blocks(sequence, stacks(sequence, len(sequence.type)), len(sequence.type))
    assert found[0].starts[0] == 4
    assert found[-1].ends[-1] == len(sequence.type) - 2
    for one, other in pairwise(found):
        assert one.ends[-1] == other.starts[0]


def test_a_stretch_that_writes_another_shape_is_no_first_block() -> None:
    sequence = network(4, 4)
    changed = sequence.written.copy()
    last_of_first = 4 + len(WIDENING) - 1
    changed[last_of_first] = 99
    other = StepSequence(
        sequence.signature,
        sequence.type,
        sequence.heavy,
        sequence.attention,
        sequence.convolution,
        changed,
        shaped=True,
    )
    assert counts(other) == [3, 4]


letters = st.lists(st.integers(0, 3), max_size=12)


@given(letters, letters)
def test_the_longest_common_subsequence(left: list[int], right: list[int]) -> None:
    table = [[0] * (len(right) + 1) for _ in range(len(left) + 1)]
    for row, one in enumerate(left):
        for column, other in enumerate(right):
            longer = max(table[row][column + 1], table[row + 1][column])
            table[row + 1][column + 1] = table[row][column] + 1 if one == other else longer
    assert longest_common(left, right) == table[-1][-1]
