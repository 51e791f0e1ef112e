"""Kernels that are slower beside transfers: what is measured, and what becomes of them when transfers go."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor_core.api.testing import Scene
from advisor_core.facts.device.work import work
from advisor_core.facts.replay.changes import Merging
from advisor_core.facts.replay.contention import contention, slowed_share
from advisor_core.job.job_graph import JobGraph
from advisor_core.job.job_replay import Cures, JobReplay
from tests.job.jobs import modelled


def test_the_slowdown_is_that_of_kernels_of_one_kind_in_both_states() -> None:
    """100 us alone, 125 beside transfers: a fifth of the time beside them; another kind was never beside any."""
    kind = np.array([0] * 8 + [1] * 8)
    took = np.array([100, 101, 99, 100, 125, 126, 124, 125, *[50] * 8])
    beside = np.array([0, 0, 0, 0, 125, 126, 124, 125, *[0] * 8])
    share = slowed_share(kind, took, beside)
    assert share[:8] == pytest.approx(0.2) and np.isnan(share[8:]).all()


def test_too_few_kernels_or_too_much_spread_tell_nothing() -> None:
    few = slowed_share(
        np.zeros(7, dtype=int), np.array([100, 100, 100, 125, 125, 125, 125]), np.array([0] * 3 + [125] * 4)
    )
    assert np.isnan(few).all()
    spread = slowed_share(
        np.zeros(8, dtype=int),
        np.array([80, 100, 120, 140, 90, 110, 130, 150]),
        np.array([0] * 4 + [90, 110, 130, 150]),
    )
    assert (spread == 0).all()


@given(st.lists(st.integers(100, 1000), min_size=8, max_size=40), st.integers(1, 1000))
def test_kernels_that_are_never_beside_transfers_have_no_number(took: list[int], factor: int) -> None:
    durations = np.array(took)
    kinds = np.zeros(len(took), dtype=int)
    assert np.isnan(slowed_share(kinds, durations, np.zeros_like(durations))).all()
    half = np.arange(len(took)) % 2 * durations
    share = slowed_share(kinds, durations, half)
    scaled = slowed_share(kinds, durations * factor, half * factor)
    assert np.allclose(share, scaled, equal_nan=True) and (np.isnan(share) | (share >= 0)).all()


def beside(transfer_us: int) -> Scene:
    """Four kernels of 100 us, then four of 125 us beside a transfer."""
    scene = Scene().step(1, -200, 2000)
    for number in range(4):
        scene.tensors(100 * number, 100, "Add", ["8,8 BF16"], launched=-100 + number)
    planes = [(400.0, 400.0 + transfer_us, None)]
    scene.collective(400, transfer_us, planes, launched=-90)
    for number in range(4):
        scene.tensors(400 + 125 * number, 125, "Add", ["8,8 BF16"], launched=-80 + number)
    return scene


def test_it_is_measured_where_planes_tell_when_data_moves() -> None:
    store = beside(500).store()
    slowed = store[contention]["slowed"].to_numpy()
    talks = store[work]["communication"].to_numpy()
    assert slowed[~talks] == pytest.approx(0.2) and np.isnan(slowed[talks]).all()
    assert beside(500).store("communication_tasks").get(contention) is None


def job(slowed: float | None) -> JobGraph:
    """The scene on two ranks, whose kernels are slower beside transfers by this share."""
    scenes = [beside(500), beside(500)]
    scenes[1].rank = 1
    found = modelled(scenes)
    if slowed is None:
        return found
    models = tuple(replace(model, slowed=np.full(len(model.operators), slowed)) for model in found.models)
    return replace(found, models=models)


def less(found: JobGraph, to_ns: int) -> Cures:
    """The transfer takes so long."""
    changes = {}
    for model in found.models:
        (row,) = model.nodes.row[model.replay.recorded.talks]
        changes[model.rank] = Merging.none(np.array([row]), np.array([500_000.0]), np.array([float(to_ns)]))
    return Cures(changes)


def test_without_transfers_kernels_take_as_long_as_alone() -> None:
    """500 us beside the transfer become 400 when it goes; half of it leaves half of them slower."""
    found = job(0.2)
    replayed = JobReplay(found, {"gone": less(found, 0), "half": less(found, 250_000)})
    unchanged = replayed.step_ns()
    assert unchanged == JobReplay(job(None), {}).step_ns()
    assert unchanged - replayed.step_ns(["gone"]) == pytest.approx(100_000, abs=5_000)
    assert 40_000 < unchanged - replayed.step_ns(["half"]) < 60_000


def test_what_was_not_measured_stays() -> None:
    found = job(None)
    replayed = JobReplay(found, {"gone": less(found, 0)})
    assert replayed.step_ns() - replayed.step_ns(["gone"]) <= 2_000
