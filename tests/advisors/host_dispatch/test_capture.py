"""HD022: steps that launch the same kernels one by one."""

from __future__ import annotations

import numpy as np
import pytest

from advisor_core.api.facts import Capturing
from advisor_core.api.testing import Scene, judge_rule
from tests.advisors.cures import cure_of
from tests.facts.test_parts import DECODE, PREFILL

TURNS = 12


def decode(*, other: bool = False, model: int | None = None) -> Scene:
    """Two steps of twelve kernels of 10 us, of which the third is attention; the host launches one every 50 us. The
    second step has a call that waits for the device before its last two kernels. ``other``: it runs another kernel;
    ``model``: the kernels belong to a graph of this number."""
    scene = Scene()
    for number in range(2):
        begun = 700.0 * number
        scene.step(number + 1, begun, 700)
        for turn in range(TURNS):
            start = begun + 60 + 50 * turn
            kind = "PagedAttentionMaskKernel" if turn == 2 else "Add" if other and number and not turn else "MatMulV2"
            scene.kernel(start, 10, kind, launched=start - 10, op="aten::mm", step=number + 1)
            if model is not None:
                scene.rows["kernels"][-1]["model"] = model
    scene.event("runtime", "AscendCL@aclrtSynchronizeStream", 700 + 60 + 50 * 10 - 40, 5)
    return scene


def test_what_repeats_is_a_graph_between_calls_that_wait() -> None:
    found = judge_rule("HD022", decode().store())
    seen = found.first.observation
    assert (seen["steps_alike"], seen["attention_tasks"], seen["launches"]) == (2, 1, 11), "two tasks are no graph"
    cure = cure_of(found)
    assert isinstance(cure, Capturing) and len(np.unique(cure.graph)) == 2
    assert cure.tasks.tolist() == [*range(TURNS), *range(TURNS, 2 * TURNS - 2)]
    assert np.flatnonzero(cure.given).tolist() == [2, TURNS + 2]


def test_at_the_least_attention_parts_the_graph_and_at_the_most_needs_nothing() -> None:
    cure = cure_of(judge_rule("HD022", decode().store()))
    least, most = cure.bound("least"), cure.bound("most")
    assert isinstance(least, Capturing) and isinstance(most, Capturing)
    assert 2 not in least.tasks and len(np.unique(least.graph)) == 4 and not most.given.any()
    assert least.call_ns.sum() == 4 * 60_000 and most.call_ns.sum() == 2 * 30_000


def test_steps_of_other_kernels_and_graphs_are_no_candidates() -> None:
    assert judge_rule("HD022", decode(other=True).store()).state == "not_applicable"
    assert judge_rule("HD022", decode(model=7).store()).state == "not_applicable"


def test_steps_that_run_eagerly_beside_replayed_ones_would_be_graphs() -> None:
    scene = decode()
    for row in scene.rows["kernels"][:TURNS]:
        row["model"] = 7
    assert judge_rule("HD022", scene.store()).state == "not_applicable", "another rule speaks of the rest"
    observed = judge_rule("HD015", scene.store()).observed
    assert observed is not None and observed.cure is not None
    cure = observed.cure(0)
    assert isinstance(cure, Capturing) and cure.tasks.tolist() == [*range(TURNS, 2 * TURNS - 2)]


def in_turns(prefill_us: float, pause_us: float = 100) -> Scene:
    """Two steps, each with a prefill of seven long kernels that are launched in time, and two passes of decode whose
    kernels of 10 us are launched one every 50 us; ``pause_us`` behind them."""
    scene, now = Scene(), 0.0
    for number in range(2):
        begun, step = now, number + 1
        for type_, shapes in PREFILL:
            reads = [f"{shape} BF16" for shape in shapes.split(";")]
            scene.tensors(now, prefill_us, type_, reads, reads[:1], launched=begun - 10, step=step)
            now += prefill_us
        for type_, shapes in 2 * DECODE:
            reads = [f"{shape} BF16" for shape in shapes.split(";")]
            scene.tensors(now + 40, 10, type_, reads, reads[:1], launched=now + 30, op="aten::mm", step=step)
            now += 50
        now += pause_us
        scene.step(step, begun - 20 * (not number), now - begun + 20 * (not number))
    return scene


def test_decode_is_judged_by_its_own_time() -> None:
    found = judge_rule("HD022", in_turns(1000).store())
    seen = found.first.observation
    assert found.state == "fail" and seen["recorded_part"] == "decode" and seen["steps_alike"] == 2
    assert seen["launches"] == 14, "those of decode"
    decode_ns = 14 * 50_000 - 40_000 + 100_000 / 2  # from its first kernel on; the last step ends with its last kernel
    assert seen["saved_share"] == pytest.approx(float(str(seen["saved_ns"])) / decode_ns, rel=0.05)
    assert float(str(seen["saved_share"])) > 0.3 and found.first.severity == "high"
    assert "as one graph decode would be" in found.first.title.en
    cure = cure_of(found)
    assert isinstance(cure, Capturing) and len(cure.tasks) == 28


def test_a_border_that_lies_a_kernel_off_does_not_hide_what_repeats() -> None:
    """Without a pause behind decode nothing tells with which kernel it ends."""
    found = judge_rule("HD022", in_turns(1000, pause_us=0).store())
    assert found.first.observation["recorded_part"] == "decode" and found.first.observation["launches"] == 13


def test_a_decode_that_is_no_matter_of_the_step_is_of_no_severity() -> None:
    """It saves half of its own time, and less than 3 % of that of the step."""
    found = judge_rule("HD022", in_turns(4000).store())
    assert found.first.severity == "low" and float(str(found.first.observation["saved_share"])) > 0.3


def test_what_trains_is_no_graph_of_the_engine() -> None:
    scene = in_turns(100)
    training = [index for index, row in enumerate(scene.rows["kernels"]) if row["duration_us"] == 100]
    scene.event("mstx", "update_actor", -5, 700).event("mstx", "update_actor", 1490, 710)
    cure = cure_of(judge_rule("HD022", scene.store()))
    assert isinstance(cure, Capturing) and not set(cure.tasks.tolist()) & set(training)


def test_a_part_that_saves_nothing_of_note_is_no_finding() -> None:
    """Half of decode, and less than 1 % of the step."""
    found = judge_rule("HD022", in_turns(20_000).store())
    assert found.state == "pass" and found.observed is not None
    assert found.observed.frame["saved_share"].iloc[0] < 0.01
