"""CO022: what a second micro-batch could hide of the communication that layers wait for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from advisor_core.api.testing import Scene, judge_rule, measure
from advisor_core.facts.communication.calls import collective_calls
from advisor_core.facts.steps.timeline import timeline
from advisors.communication.calls import calls_in_steps
from advisors.communication.micro_batches import micro_batches, waited
from advisors.layers.blocks import Pass
from advisors.layers.layers import Layers
from advisors.step_kernels import step_kernels
from tests.advisors.real import real_rank

MOVING = 400.0


def recorded(operation: str = "allReduce", *, backward: str = "", waits: float = 0.0) -> Scene:
    """Four products of 300 us in one run of layers, each followed by a collective of 400 us that nothing covers and
    that waits for ``waits`` of it; before the last one only 100 us are computed. Then one of ``backward``."""
    scene, now = Scene(), 0.0
    for number in range(4):
        length = 100 if number == 3 else 300
        scene.kernel(now, length)
        now += length
        scene.collective(now, MOVING, planes(now, waits), operation=operation)
        now += MOVING
    scene.kernel(now, 300)
    if backward:
        scene.collective(now + 300, MOVING, planes(now + 300, 0), operation=backward).kernel(now + 700, 300)
    return scene


def planes(now: float, waits: float) -> list[tuple[float, float, int | None]]:
    return [(now, now + waits, 1), (now + waits, now + MOVING, None)] if waits else [(now, now + MOVING, None)]


def layers_of(count: int, *, run: list[int] | None = None) -> Layers:
    """All kernels in layers of two kernels, of one run in the forward pass unless ``run`` says 1: a backward pass."""
    runs = np.zeros(count, dtype=np.int64) if run is None else np.array(run)
    numbers, none = np.arange(count) // 2, np.zeros(count, dtype=np.int64)
    passes = np.where(runs == 1, Pass.BACKWARD, Pass.FORWARD)
    return Layers(pd.DataFrame(), pd.DataFrame(), none, numbers, passes, none, runs)


def hideable(scene: Scene, model: Layers) -> list[int]:
    store = scene.store()
    found = waited(calls_in_steps(store.view((collective_calls,), ())), store[step_kernels], model, store[timeline])
    return [int(ns) // 1_000 for ns in found.hideable_ns]


def test_of_each_collective_no_more_is_hidden_than_the_layer_computes_before_it() -> None:
    assert hideable(recorded(), layers_of(5)) == [300, 300, 300, 100]


def test_waiting_for_a_rank_is_not_hidden() -> None:
    assert hideable(recorded(waits=250), layers_of(5)) == [150, 150, 150, 100]


def test_what_stands_behind_the_last_kernel_of_a_pass_is_not_inside_a_layer() -> None:
    assert hideable(recorded(), layers_of(5, run=[0, 0, 0, 0, -1])) == [300, 300, 300]


def test_a_group_that_only_gathers_in_a_forward_pass_brings_parameters() -> None:
    assert hideable(recorded("allGather"), layers_of(5)) == []


def test_gradients_that_only_the_backward_pass_reduces_are_left_out() -> None:
    scene = recorded("allGather", backward="reduceScatter")
    assert hideable(scene, layers_of(6, run=[0, 0, 0, 0, 1, 1])) == []


def test_what_is_sent_to_the_next_stage_of_a_pipeline_is_left_out() -> None:
    assert hideable(recorded("send"), layers_of(5)) == []


def test_two_layers_of_a_recorded_gpt(profiles: Path) -> None:
    """Lines 50, 64, 85 and 99 of the file: 3,360, 2,834, 6,329 and 2,804 us behind 3,925, 6,101, 3,363 and 6,016 us of
    computing; a second stream computes beside them for 993 us."""
    store = real_rank(profiles, "gpt3-kernel-details-only_ascend_pt", 0)
    seen = measure(micro_batches, store).frame.iloc[0]
    assert (seen["calls"], seen["layers"], seen["collective_kinds"]) == (4, 2, "hcom_allReduce")
    assert seen["uncovered_ns"] == 15_327_140 - 993_340 and seen["unknown_share"] == 1
    assert 12_361_000 - 993_000 <= seen["hideable_ns"] <= 12_362_000 and seen["again_ns"] == 0
    found = judge_rule("CO022", store)
    assert found.state == "fail" and found.first.severity == "low"
    assert not any("--moe-fb-overlap" in advice.text.en for advice in found.first.advice)


@pytest.mark.parametrize("name", ["alexnet-ddp-text-level1", "alexnet-ddp-db-level1"])
def test_a_job_that_reduces_gradients_only_has_no_layer_that_waits(profiles: Path, name: str) -> None:
    assert judge_rule("CO022", real_rank(profiles, name, 0)).state in ("not_applicable", "cannot_answer")
