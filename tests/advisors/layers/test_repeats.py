"""Units that repeat, in sequences whose units are known."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisors.layers.repeats import Repeat, best_repeat
from advisors.layers.stacks import Stack, StepSequence, stacks

EMBEDDING, HEAD, EXPERT = 900, 950, 500


def _best(values: list[int], rare: int | None = None, *, mirrored: bool = False) -> Repeat | None:
    sequence = np.array(values, dtype=np.int64)
    marked = sequence == rare if rare is not None else np.zeros(len(sequence), dtype=np.bool_)
    return best_repeat(sequence, sequence, 0, len(sequence), marked, mirrored=mirrored)


@given(
    unit=st.lists(st.integers(0, 30), min_size=4, max_size=20, unique=True),
    times=st.integers(2, 12),
    before=st.lists(st.integers(100, 200), max_size=8, unique=True),
    behind=st.lists(st.integers(300, 400), max_size=8, unique=True),
    mirrored=st.booleans(),
)
def test_equal_units_are_found_to_the_element(
    unit: list[int], times: int, before: list[int], behind: list[int], mirrored: bool
) -> None:
    found = _best([*before, *(unit * times), *behind], mirrored=mirrored)
    assert found is not None
    assert found.starts.tolist() == [len(before) + number * len(unit) for number in range(times)]
    assert found.end == len(before) + times * len(unit)
    assert found.share == 1.0


@given(
    times=st.integers(3, 8),
    experts=st.lists(st.integers(1, 6), min_size=8, max_size=8),
)
def test_units_with_loops_of_any_length_are_found(times: int, experts: list[int]) -> None:
    """As layers do whose routing decides how many experts run: attention, then a loop, then what closes the layer."""
    values = [EMBEDDING, EMBEDDING + 1]
    starts = []
    for layer in range(times):
        starts.append(len(values))
        values += [1, 2, 3, 4, 5]
        for _ in range(experts[layer]):
            values += [EXPERT + layer * 10 + experts[layer], 20, 21]
        values += [6, 7]
    end = len(values)
    values += [HEAD, HEAD + 1]
    found = _best(values, rare=3)
    assert found is not None
    assert found.starts.tolist() == starts
    assert found.end == end


def test_what_lies_between_two_passes_over_the_layers_is_in_none() -> None:
    layer = [1, 2, 3, 4, 5, 6]
    found = _best([*(layer * 3), 70, 71, *(layer * 3), 80, 81])
    assert found is not None
    assert len(found.starts) == 6
    assert (found.ends - found.starts).tolist() == [6] * 6
    assert found.starts.tolist() == [0, 6, 12, 20, 26, 32]


@pytest.mark.parametrize("values", [[], [1], [1, 2, 3, 4], [5, 5, 5, 5]])
def test_where_nothing_takes_turns_there_is_no_unit(values: list[int]) -> None:
    assert _best(values) is None


def _stacks(values: list[int], attention: int, backward: int | None = None) -> list[Stack]:
    sequence = np.array(values, dtype=np.int64)
    heavy = np.isin(sequence, [attention, attention + 1, attention + 2])
    none = np.zeros(len(sequence), dtype=np.bool_)
    kernels = StepSequence(sequence, sequence, heavy, sequence == attention, none, sequence, shaped=True)
    return stacks(kernels, len(values) if backward is None else backward)


def test_layers_are_found_inside_of_passes_that_repeat() -> None:
    """Two tokens of three layers: the tokens repeat as well."""
    layer = [1, 40, 41, 2, 42, 3]
    token = [80, 81, *(layer * 3), 82, 83, 84]
    found = _stacks(token * 2, attention=40)
    assert [len(stack.starts) for stack in found] == [3, 3] or [len(stack.starts) for stack in found] == [6]
    starts = [start for stack in found for start in stack.starts.tolist()]
    assert starts == [2, 8, 14, 25, 31, 37]


def test_experts_inside_of_a_layer_are_no_layers() -> None:
    """Each layer has one attention and eight equal experts with products of their own."""
    expert = [41, 7, 42, 8]
    layer = [1, 40, 41, *(expert * 8), 9]
    found = _stacks([80, *(layer * 4), 81], attention=40)
    (stack,) = found
    assert len(stack.starts) == 4
    assert set((stack.ends - stack.starts).tolist()) == {len(layer)}


def test_a_whole_network_that_runs_twice_is_no_layer() -> None:
    network = [41, 1, 42, 2, 41, 3, 42, 4]
    assert _stacks(network * 2, attention=40) == []


def test_stacks_of_one_pass_lie_one_after_the_other() -> None:
    """Encoder and decoder."""
    encoder, decoder = [1, 40, 41, 2, 42], [11, 12, 40, 13, 41, 14, 42, 15]
    found = _stacks([80, *(encoder * 4), 81, *(decoder * 6), 82], attention=40)
    assert [len(stack.starts) for stack in found] == [4, 6]
    assert found[0].ends[-1] <= found[1].starts[0]
