"""Steps that replay a graph beside steps that do the same work eagerly, and what HD002 advises then."""

from __future__ import annotations

import pytest

from advisor_core.api.testing import Scene, judge_rule
from advisors.host_dispatch.graph_steps import replay_mode


def steps(*modes: str, work_us: float = 100) -> Scene:
    """Four kernels in each step. ``graph``: 10 us apart, all of a graph; ``eager``: 600 us apart, launched when the
    host gets to them; ``pieces``: as eager, with every other kernel of a graph; ``prefill``: eager, kernels ten times
    as long."""
    made, start = Scene(), 0.0
    for number, mode in enumerate(modes):
        apart = 10 if mode == "graph" else 600
        length = work_us * (10 if mode == "prefill" else 1)
        made.step(number, start - 20, 4 * (length + apart))
        for place in range(4):
            made.kernel(start, length, step=number, op="aten::mm")
            in_graph = mode == "graph" or (mode == "pieces" and place % 2 == 0)
            made.rows["kernels"][-1]["model"] = 3 if in_graph else -1
            start += length + apart
    return made


@pytest.mark.parametrize(
    ("modes", "expected"),
    [
        (("eager", "eager"), "none"),
        (("graph", "graph"), "whole"),
        (("graph", "eager", "graph"), "some_steps"),
        (("pieces", "pieces"), "pieces"),
    ],
)
def test_which_parts_are_replayed(modes: tuple[str, ...], expected: str) -> None:
    assert replay_mode(steps(*modes).store()) == expected


def test_eager_steps_beside_replayed_ones_of_the_same_work() -> None:
    found = judge_rule("HD015", steps("graph", "eager", "graph", "graph").store())
    seen = found.first.observation
    assert found.state == "fail" and (seen["eager_steps"], seen["replayed_steps"]) == (1, 3)
    # 4 x (100 + 600) against 4 x (100 + 10) us, the last step without its last gap
    assert seen["eager_ns"] == 2_800_000 and seen["replayed_ns"] == pytest.approx((440_000 * 2 + 430_000) / 3)
    assert seen["saved_ns"] == pytest.approx((seen["eager_ns"] - seen["replayed_ns"]) / 4)


@pytest.mark.parametrize("modes", [("graph", "prefill", "graph"), ("graph", "graph"), ("eager", "eager"), ("pieces",)])
def test_other_work_or_one_mode_alone_is_no_finding(modes: tuple[str, ...]) -> None:
    assert judge_rule("HD015", steps(*modes).store()).state == "not_applicable"


@pytest.mark.parametrize(
    ("modes", "advised"),
    [(("eager", "eager"), True), (("pieces", "pieces"), True), (("graph", "eager", "graph"), False)],
)
def test_full_graphs_are_advised_unless_whole_steps_are_replayed(modes: tuple[str, ...], advised: bool) -> None:
    """A replay somewhere is no proof that decode runs as a graph as a whole."""
    texts = [one.text.en for one in judge_rule("HD002", steps(*modes).store()).first.advice]
    assert any("FULL_DECODE_ONLY" in text for text in texts) is advised
