"""The example's own test, as a plugin author would write it."""

from __future__ import annotations

from importlib.metadata import entry_points

import pytest
from advisor_plugin_hello.short_kernels import kernel_lengths, short_kernels

from advisor_core.api.testing import Scene, fact_store, judge_rule, measure, table


def test_counts_short_kernels() -> None:
    rows = [{"start_us": 10 * n, "duration_us": length, "core": "AI_CORE"} for n, length in enumerate((1, 2, 9, 3))]
    store = fact_store(facts=[kernel_lengths], kernels=table("kernels", rows))
    observed = measure(short_kernels, store, short=5_000)
    measured = observed.frame.iloc[0]
    assert (measured["kernels"], measured["short_share"], measured["short_ns"]) == (4, 0.75, 6_000)
    durations, kernels = short_kernels.evidence_of(observed, 0)
    assert durations.rows[0] == {"length_ns": 1_000, "count": 1} and durations.units["length_ns"] == "ns"
    assert kernels.rows.tolist() == [0, 1, 3]


def recording(*lengths: float) -> Scene:
    """Two steps with a kernel of each length, in us, and an AllReduce, which does not compute."""
    scene = Scene().step(1, 0, 1_000).step(2, 1_000, 1_000)
    for step in (1, 2):
        begin = 1_000 * (step - 1) + 20
        for number, length in enumerate(lengths):
            scene.kernel(begin + 100 * number, length, "Add", step=step)
        scene.collective(begin + 900, 1, step=step)
    return scene


def test_counts_per_step_and_leaves_collectives_out() -> None:
    store = recording(2, 50, 3).store(facts=[kernel_lengths])
    measured = measure(short_kernels, store, short=5_000).frame.iloc[0]
    assert (measured["kernels"], measured["short_ns"]) == (3, 5_000)


def installed() -> bool:
    return any(point.value == "advisor_plugin_hello" for point in entry_points(group="npu_advisor.v1"))


@pytest.mark.skipif(not installed(), reason="rules of installed plugins are judged only")
def test_the_rule_fires_on_short_kernels_only() -> None:
    judged = judge_rule("HELLO001", recording(2, 50, 3).store())
    assert (judged.state, judged.first.impact_ns) == ("fail", 5_000)
    assert judged.first.title.en.startswith("66.7 %") and len(judged.evidence()) == 2
    assert judge_rule("HELLO001", recording(20, 50, 30).store()).state == "pass"
