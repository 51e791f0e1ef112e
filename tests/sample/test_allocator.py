"""The model of the caching allocator: what it reserves follows from sizes, order and room."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor_core.sample.job import simulate
from advisor_core.sample.machine.allocator import MIB, Allocator, Block
from advisor_core.sample.scenarios import SCENARIOS

ROOM = 1 << 40
KIB = 1024


@pytest.mark.parametrize(
    ("nbytes", "reserved"),
    [(0, 2 * MIB), (100 * KIB, 2 * MIB), (2 * MIB, 20 * MIB), (9 * MIB, 20 * MIB), (11 * MIB, 12 * MIB)],
)
def test_a_request_that_nothing_fits_takes_a_segment_of_its_class(nbytes: int, reserved: int) -> None:
    allocator = Allocator(0, ROOM)
    block, calls = allocator.allocate(nbytes)
    assert calls == ["malloc"]
    assert allocator.reserved == reserved
    assert allocator.allocated == block.size >= nbytes + 32


def test_memory_that_came_back_is_used_again_without_the_driver() -> None:
    allocator = Allocator(0, ROOM)
    blocks = [allocator.allocate(5 * MIB)[0] for _ in range(3)]
    assert allocator.reserved == 20 * MIB
    for block in blocks:
        assert allocator.free(block) == []
    # The three have merged: one request may take all of what they were.
    _, calls = allocator.allocate(18 * MIB)
    assert calls == []
    assert allocator.reserved == 20 * MIB


def test_a_hole_between_used_blocks_does_not_serve_a_larger_request() -> None:
    allocator = Allocator(0, ROOM)
    blocks = [allocator.allocate(6 * MIB)[0] for _ in range(3)]
    allocator.free(blocks[1])
    _, calls = allocator.allocate(7 * MIB)
    assert calls == ["malloc"]
    assert allocator.reserved == 40 * MIB


def test_a_full_device_makes_it_give_back_what_is_wholly_free() -> None:
    allocator = Allocator(0, 100 * MIB)
    allocator.allocate(30 * MIB)
    loose, _ = allocator.allocate(40 * MIB)
    allocator.free(loose)
    _, calls = allocator.allocate(60 * MIB)
    assert calls == ["synchronize", "free", "malloc"]
    assert allocator.reserved == (32 + 62) * MIB
    with pytest.raises(MemoryError):
        allocator.allocate(40 * MIB)


def test_growing_segments_serve_every_size_with_one_reserve() -> None:
    reserves = {}
    for expandable in (False, True):
        allocator = Allocator(0, ROOM, expandable=expandable)
        for mib in (40, 44, 48, 52, 56):
            block, _ = allocator.allocate(mib * MIB)
            allocator.free(block)
        reserves[expandable] = allocator.reserved
    assert reserves[True] == 60 * MIB
    assert reserves[False] == sum(mib + 2 for mib in (40, 44, 48, 52, 56)) * MIB


def test_what_is_not_cached_goes_back_at_once() -> None:
    allocator = Allocator(0, ROOM, uncached=10 * MIB)
    block, calls = allocator.allocate(12 * MIB)
    assert calls == ["malloc"]
    assert allocator.free(block) == ["free"]
    assert allocator.reserved == allocator.allocated == 0


@given(
    st.booleans(),
    st.lists(st.tuples(st.integers(0, 60 * MIB), st.integers(0, 1 << 30), st.booleans()), max_size=60),
)
def test_totals_hold_whatever_comes_and_goes(expandable: bool, wishes: list[tuple[int, int, bool]]) -> None:
    allocator = Allocator(3 * MIB, ROOM, expandable=expandable)
    live: list[Block] = []
    for nbytes, which, frees in wishes:
        if frees and live:
            allocator.free(live.pop(which % len(live)))
        else:
            before = allocator.reserved
            block, calls = allocator.allocate(nbytes)
            live.append(block)
            assert block.size >= nbytes
            assert (allocator.reserved > before) == ("malloc" in calls)
        assert allocator.allocated == 3 * MIB + sum(block.size for block in live)
        assert allocator.reserved >= allocator.allocated
        assert len({id(block) for block in live}) == len(live)


@pytest.mark.parametrize("name", ["healthy-compact", "healthy-varying-lengths", "fragmentation", "leak"])
def test_the_profile_begins_with_a_warm_cache(name: str) -> None:
    """The first profiled step is like the ones before it, and needs nothing that they did not need."""
    (timeline, *_) = simulate(SCENARIOS[name], 0)
    first = timeline.steps[0]
    assert {one.reserved_at_start for one in timeline.allocations if one.start < first.end} == {timeline.reserved_bytes}


def test_sizes_that_vary_fragment_the_memory_unless_segments_grow() -> None:
    grown = {}
    for name in ("fragmentation", "healthy-varying-lengths"):
        (timeline,) = simulate(SCENARIOS[name], 0)
        peak = max(one.total_at_start for one in timeline.allocations)
        grown[name] = max(one.reserved_at_start for one in timeline.allocations) / peak
    assert grown["fragmentation"] > 1.5
    assert grown["healthy-varying-lengths"] < 1.1


def test_a_device_without_room_makes_the_job_call_the_driver() -> None:
    (roomy,), (short,) = (simulate(SCENARIOS[name], 0) for name in ("fragmentation", "fragmentation-near-the-limit"))
    frees = [sum(call.name.endswith("aclrtFree") for call in timeline.cann) for timeline in (roomy, short)]
    assert frees[0] == 0 < frees[1]
    assert short.end - short.start > roomy.end - roomy.start
