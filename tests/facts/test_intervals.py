"""Interval arithmetic against sets of moments."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from advisor_core.facts import intervals

SPAN = 40
pairs = st.lists(st.tuples(st.integers(0, SPAN), st.integers(0, 12)), max_size=12)


def arrays(rows: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    starts = np.array([start for start, _ in rows], dtype=np.int64)
    return starts, starts + np.array([length for _, length in rows], dtype=np.int64)


def moments(layer: intervals.Layer) -> dict[int, int]:
    return {
        t: int(i) for a, b, i in zip(layer.starts, layer.ends, layer.ids, strict=True) for t in range(int(a), int(b))
    }


def covering(rows: list[tuple[int, int]], t: int) -> list[int]:
    return [n for n, (start, length) in enumerate(rows) if start <= t < start + length]


@given(pairs)
def test_union_covers_the_same_moments_once(rows: list[tuple[int, int]]) -> None:
    layer = intervals.union(*arrays(rows))
    assert set(moments(layer)) == {t for t in range(2 * SPAN) if covering(rows, t)}
    assert (layer.starts[1:] > layer.ends[:-1]).all()


@given(pairs)
def test_earliest_start_wins(rows: list[tuple[int, int]]) -> None:
    owner = moments(intervals.earliest_start_wins(*arrays(rows)))
    for t in range(2 * SPAN):
        inside = covering(rows, t)
        assert (t in owner) == bool(inside)
        if inside:
            assert rows[owner[t]][0] == min(rows[n][0] for n in inside)


@given(pairs)
def test_latest_end_wins(rows: list[tuple[int, int]]) -> None:
    owner = moments(intervals.latest_end_wins(*arrays(rows), np.arange(len(rows))))
    for t in range(2 * SPAN):
        inside = covering(rows, t)
        assert (t in owner) == bool(inside)
        if inside:
            assert owner[t] == max(inside, key=lambda n: (sum(rows[n]), -n))


@given(pairs, pairs)
def test_without_leaves_the_moments_of_one_only(rows: list[tuple[int, int]], others: list[tuple[int, int]]) -> None:
    layer = intervals.union(*arrays(rows)).without(intervals.union(*arrays(others)))
    assert set(moments(layer)) == {t for t in range(2 * SPAN) if covering(rows, t) and not covering(others, t)}
    assert (layer.starts[1:] > layer.ends[:-1]).all()


@given(pairs, st.lists(st.integers(-5, 60), min_size=1))
def test_measure_counts_covered_moments(rows: list[tuple[int, int]], times: list[int]) -> None:
    layer = intervals.union(*arrays(rows))
    covered = set(moments(layer))
    assert layer.measure(np.array(times)).tolist() == [sum(t < limit for t in covered) for limit in times]


@given(pairs, pairs, st.integers(0, 20), st.integers(21, 60))
def test_pieces_tile_the_window_and_know_their_layers(
    first: list[tuple[int, int]], second: list[tuple[int, int]], start: int, end: int
) -> None:
    layers = [intervals.union(*arrays(first)), intervals.earliest_start_wins(*arrays(second))]
    pieces = intervals.cut(start, end, layers)
    assert pieces.starts[0] == start and pieces.ends[-1] == end
    assert (pieces.starts[1:] == pieces.ends[:-1]).all()
    for layer, ids in zip(layers, pieces.ids, strict=True):
        owner = moments(layer)
        for a, b, found in zip(pieces.starts, pieces.ends, ids, strict=True):
            assert {owner.get(t, intervals.NOTHING) for t in range(int(a), int(b))} == {int(found)}


@given(st.lists(pairs, max_size=4))
def test_first_of_names_the_first_layer_that_covers(rows: list[list[tuple[int, int]]]) -> None:
    layers = [intervals.union(*arrays(r)) for r in rows]
    owner = moments(intervals.first_of(layers))
    for t in range(2 * SPAN):
        expected = next((n for n, r in enumerate(rows) if covering(r, t)), None)
        assert owner.get(t) == expected


@given(pairs)
def test_complement_is_the_rest(rows: list[tuple[int, int]]) -> None:
    layer = intervals.union(*arrays(rows))
    rest = intervals.complement(layer, 3, 50)
    assert set(moments(rest)) == set(range(3, 50)) - set(moments(layer))
    assert rest.ids.tolist() == list(range(len(rest)))
