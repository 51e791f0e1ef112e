"""How much quicker a host that keeps pace with the device would have to be."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor_core.api.facts import union
from advisor_core.api.testing import Scene, judge_rule
from advisors.host_dispatch.pace import excess_share
from tests.advisors.cures import cure_of, saved


def _layer(*spans: tuple[int, int]):  # type: ignore[no-untyped-def]
    return union(*(np.array(ends, dtype=np.int64) for ends in zip(*spans, strict=True)))


def test_the_lead_of_a_stretch_is_gone_behind_a_call_that_waits() -> None:
    """100 for 40 of the device, then 100 for 400: as a whole the host is quicker, in the first stretch it is not."""
    host, device = _layer((0, 100), (100, 200)), _layer((60, 100), (100, 500))
    assert excess_share(host, device, np.array([0, 500])) == 0
    assert excess_share(host, device, np.array([0, 100, 500])) == pytest.approx(0.6)


@given(
    st.lists(st.tuples(st.integers(0, 900), st.integers(1, 100)), min_size=1),
    st.lists(st.tuples(st.integers(0, 900), st.integers(1, 100)), min_size=1),
    st.lists(st.integers(1, 999), unique=True),
)
def test_a_further_border_never_makes_the_host_need_less(
    host: list[tuple[int, int]], device: list[tuple[int, int]], cuts: list[int]
) -> None:
    """The share is one of the host's time, and what goes of it is what the host takes longer, stretch by stretch."""
    slow, busy = (_layer(*((at, at + ns) for at, ns in spans)) for spans in (host, device))
    whole, borders = np.array([0, 1000]), np.array([0, *sorted(cuts), 1000])
    assert 0 <= excess_share(slow, busy, whole) <= 1 and 0 <= excess_share(slow, busy, borders) <= 1
    assert excess_share(slow, busy, borders) >= excess_share(slow, busy, whole) - 1e-12


def rollout_and_reward() -> Scene:
    """Ten operators of 100 us with kernels of 40 us, a read that waits for them, then a reward of 5 ms for which the
    device gets nothing, and a kernel of 2 ms behind it."""
    scene = Scene().step(1, -20, 10_000).event("user_annotation", "reward", 1100, 5000)
    for number in range(1, 11):
        scene.event("cpu_op", "aten::mul", (number - 1) * 100, 100)
        scene.kernel(number * 100 + 10, 40, launched=number * 100, op="aten::mul")
    scene.event("cpu_op", "aten::item", 1005, 50).event("runtime", "AscendCL@aclrtSynchronizeStream", 1006, 48)
    scene.event("cpu_op", "aten::mul", 6100, 100)
    return scene.kernel(6210, 2000, launched=6200, op="aten::mul")


def test_a_phase_in_which_nothing_is_handed_over_is_no_dispatch() -> None:
    """The finding about late launches wins the idle time between the kernels, whatever becomes of the reward."""
    store = rollout_and_reward().store()
    cure = cure_of(judge_rule("HD002", store))
    assert all(saved(store, cure.bound(at)) < 1_100_000 for at in ("least", "usual", "most"))
    assert saved(store, cure) >= 9 * 50_000
