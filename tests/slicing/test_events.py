"""A slice holds its window and whole arrows, within its room."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from advisor_core.slicing.events import BEGIN, END, HEADING, OPEN, POINT, SLICE, Events

BYTES = 100


@dataclass(frozen=True)
class One:
    kind: int
    lane: int
    start: int
    ns: int = 0
    arrow: int = -1


def events_of(listed: list[One]) -> Events:
    def column(values: list[int], dtype: type) -> np.ndarray:  # type: ignore[type-arg]
        return np.array(values, dtype)

    return Events(
        kind=column([one.kind for one in listed], np.int8),
        process=column([max(one.lane, 0) // 2 for one in listed], np.int32),
        lane=column([one.lane for one in listed], np.int32),
        arrow=column([one.arrow for one in listed], np.int64),
        start_ns=column([one.start for one in listed], np.int64),
        end_ns=column([one.start + one.ns for one in listed], np.int64),
        bytes=column([BYTES] * len(listed), np.int32),
    )


LAUNCH = [
    One(HEADING, OPEN, -1),
    One(HEADING, 0, -1),
    One(HEADING, 1, -1),
    One(HEADING, 2, -1),
    One(SLICE, 0, 10, 100),  # 4: an operator
    One(SLICE, 0, 20, 5),  # 5: the launch in it
    One(SLICE, 0, 40, 5),  # 6: another
    One(SLICE, 1, 500, 50),  # 7: the kernel of the first
    One(SLICE, 1, 900, 50),  # 8: that of the other
    One(BEGIN, 0, 20, arrow=1),
    One(END, 1, 500, arrow=1),
    One(BEGIN, 0, 40, arrow=2),
    One(END, 1, 900, arrow=2),
    One(BEGIN, 0, 20, arrow=3),  # leads nowhere
    One(SLICE, 2, 0, 5),  # 14: of another thread
    One(POINT, 1, 520),
    One(END, 1, 530, arrow=4),  # comes from nowhere
]


def test_a_kernel_comes_with_its_launch_and_no_other() -> None:
    chosen = events_of(LAUNCH).choose(510, 520, 20, 10_000)
    assert chosen.ordinals.tolist() == [0, 1, 2, 5, 7, 9, 10, 15]
    assert (chosen.start_ns, chosen.end_ns, chosen.arrows, chosen.left_out) == (490, 540, 1, 0)


def test_the_margin_shrinks_before_the_place_does() -> None:
    kernels = [One(SLICE, 1, 10 * number, 5) for number in range(100)]
    chosen = events_of(kernels).choose(500, 519, 400, 20 * BYTES)
    assert chosen.ordinals.tolist() == list(range(45, 57)) and (chosen.start_ns, chosen.end_ns) == (450, 569)
    chosen = events_of(kernels).choose(0, 999, 400, 20 * BYTES)
    assert chosen.ordinals.tolist() == list(range(13)) and chosen.start_ns == 0


def test_of_too_many_at_one_moment_the_longest_are_kept() -> None:
    stacked = [One(HEADING, 0, -1), *(One(SLICE, 0, 0, 10 + number) for number in range(50))]
    chosen = events_of(stacked).choose(5, 6, 0, 11 * BYTES)
    assert chosen.ordinals.tolist() == [0, *range(41, 51)] and chosen.left_out == 40


@st.composite
def recordings(draw: st.DrawFn) -> list[One]:
    kinds = st.sampled_from([SLICE, SLICE, SLICE, POINT, BEGIN, END, HEADING])
    listed = []
    for _ in range(draw(st.integers(1, 40))):
        kind = draw(kinds)
        lane = draw(st.integers(0, 3))
        if kind == HEADING:
            listed.append(One(HEADING, draw(st.sampled_from([OPEN, lane])), -1))
        elif kind == SLICE:
            listed.append(One(SLICE, lane, draw(st.integers(0, 300)), draw(st.integers(0, 80))))
        else:
            listed.append(
                One(kind, lane, draw(st.integers(0, 300)), 0, draw(st.integers(0, 4)) if kind != POINT else -1)
            )
    return listed


@given(recordings(), st.integers(0, 300), st.integers(0, 60), st.integers(0, 60), st.integers(0, 40))
def test_what_a_slice_holds(listed: list[One], start: int, ns: int, margin: int, room: int) -> None:
    chosen = events_of(listed).choose(start, start + ns, margin, room * BYTES)
    kept = {ordinal: listed[ordinal] for ordinal in chosen.ordinals.tolist()}
    assert len(kept) * BYTES <= room * BYTES
    if not chosen.left_out and room:
        for number, one in enumerate(listed):
            if one.kind in (SLICE, POINT) and one.start <= chosen.end_ns and one.start + one.ns >= chosen.start_ns:
                assert number in kept
    ends = [one for one in kept.values() if one.kind in (BEGIN, END)]
    for one in ends:
        assert {other.kind for other in ends if other.arrow == one.arrow} == {BEGIN, END}
        assert any(
            other.kind == SLICE and other.lane == one.lane and other.start <= one.start <= other.start + other.ns
            for other in kept.values()
        )
    assert len({one.arrow for one in ends}) == chosen.arrows
    if kept:
        used = {one.lane for one in kept.values() if one.kind != HEADING}
        assert {one.lane for one in kept.values() if one.kind == HEADING} <= used | {OPEN}
