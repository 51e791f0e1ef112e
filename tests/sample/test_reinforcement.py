"""An iteration of reinforcement learning: its phases are marked, and each role can be a profile of its own."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import pytest

from advisor_core.sample import write_sample
from advisor_core.sample.job import simulate
from advisor_core.sample.roles import ROLES, roles
from advisor_core.sample.timeline import Mark, Timeline
from tests.sample.export import Export, ns
from tests.sample.small import small

Written = Callable[..., list[Path]]
HEALTHY = small("healthy-rl")
LONG = 48
"""Tokens of a response, of which decoding takes the larger part of a rollout."""
PHASES = ("generate_sequences", "compute_log_prob", "compute_ref_log_prob", "reward", "adv", "update_actor")


@pytest.fixture(scope="module")
def healthy() -> list[Timeline]:
    return simulate(HEALTHY, 0)


def phases(timeline: Timeline, name: str = "") -> list[Mark]:
    wanted = [name] if name else PHASES
    return sorted((mark for mark in timeline.marks if mark.message in wanted), key=lambda mark: mark.start)


def busy(timeline: Timeline, mark: Mark) -> float:
    """Share of a phase in which a kernel runs; kernels of one stream never overlap."""
    return sum(max(0, min(kernel.end, mark.end) - max(kernel.start, mark.start)) for kernel in timeline.kernels) / (
        mark.end - mark.start
    )


def test_phases_follow_each_other_within_a_step(healthy: list[Timeline]) -> None:
    for timeline in healthy:
        whole = [mark for mark in timeline.marks if mark.message == "step"]
        assert len(whole) == len(timeline.steps) == 2
        assert tuple(mark.message for mark in phases(timeline)) == 2 * PHASES
        assert all(before.end <= after.start for before, after in pairwise(phases(timeline)))
        for step, mark in zip(timeline.steps, whole, strict=True):
            assert step.start <= mark.start and mark.end <= step.end
        inside = [
            any(mark.start <= kernel.start and kernel.end <= mark.end for mark in phases(timeline))
            for kernel in timeline.kernels
        ]
        assert all(inside)


def test_healthy_phases_keep_the_device_busy(healthy: list[Timeline]) -> None:
    for timeline in healthy:
        for name in ("generate_sequences", "compute_log_prob", "compute_ref_log_prob"):
            assert all(busy(timeline, mark) > 0.95 for mark in phases(timeline, name))
        assert all(busy(timeline, mark) == 0 for mark in phases(timeline, "reward"))


def test_the_cache_grows_with_every_pass(healthy: list[Timeline]) -> None:
    kernels = [kernel for kernel in healthy[0].kernels if kernel.kernel and "InferAttention" in kernel.kernel.type]
    job = HEALTHY.training
    per_pass = job.shape.layers
    first, last = kernels[per_pass], kernels[per_pass * job.response]
    assert first.kernel is not None and last.kernel is not None
    assert first.kernel.inputs[1].shape[1] == last.kernel.inputs[1].shape[1] == 256  # blocks of 128
    ratio = last.kernel.work.read / first.kernel.work.read  # type: ignore[union-attr]
    assert ratio == pytest.approx((job.shape.sequence) / (job.shape.sequence - job.response + 1))


def test_a_long_tail_makes_the_others_wait_between_the_phases() -> None:
    timelines = simulate(small("long-tail-rollout", tokens=LONG), 0)
    lengths = [[mark.end - mark.start for mark in phases(timeline, "generate_sequences")] for timeline in timelines]
    others = [length for rank, two in enumerate(lengths) if rank != 2 for length in two]
    assert min(lengths[2]) > 1.5 * max(others)
    starts = [phases(timeline, "compute_log_prob")[0].start for timeline in timelines]
    assert max(starts) - min(starts) < 0.02 * min(others)
    assert [mark.message for mark in phases(timelines[2])] == [mark.message for mark in phases(timelines[0])]


def test_a_slow_reward_leaves_the_device_idle() -> None:
    for timeline in simulate(small("slow-reward"), 0):
        for reward, step in zip(phases(timeline, "reward"), timeline.steps, strict=True):
            assert reward.end - reward.start > 0.1 * (step.end - step.start)
            assert busy(timeline, reward) == 0


def test_a_slow_rollout_is_launched_too_slowly(healthy: list[Timeline]) -> None:
    (slow, _), quick = simulate(small("slow-rollout", tokens=LONG), 0), healthy[0]
    for name, less in (("generate_sequences", 0.5), ("compute_log_prob", 1.1)):
        assert busy(slow, phases(slow, name)[0]) < less * busy(quick, phases(quick, name)[0])
    assert busy(slow, phases(slow, "compute_log_prob")[0]) > 0.95


def test_both_formats_have_the_marks(written: Written, healthy: list[Timeline]) -> None:
    expected = [
        [(mark.message, mark.start, mark.end) for mark in sorted(t.marks, key=lambda m: m.start)] for t in healthy
    ]
    for root, marks in zip(written(HEALTHY), expected, strict=True):
        events = [e for e in Export(root).trace if e.get("args", {}).get("event_type") == "start/end"]
        times = [(e["name"], ns(e["ts"]), ns(e["ts"]) + round(e["dur"] * 1000)) for e in events]
        assert times == marks
        (lane,) = {e["pid"] for e in events}
        (name,) = (e["args"]["name"] for e in Export(root).trace if e["pid"] == lane and e["name"] == "process_name")
        assert "mstx" not in name.lower()
    for root, marks in zip(written(HEALTHY, format="db"), expected, strict=True):
        (path,) = (root / "ASCEND_PROFILER_OUTPUT").glob("ascend_pytorch_profiler*.db")
        with closing(sqlite3.connect(path)) as database:
            rows = database.execute(
                "SELECT value, startNs, endNs FROM MSTX_EVENTS JOIN STRING_IDS ON message = id ORDER BY startNs"
            ).fetchall()
        assert rows == marks


def test_other_jobs_have_no_marks(written: Written) -> None:
    (root,) = written("healthy-training-single")
    assert not [e for e in Export(root).trace if "event_type" in e.get("args", {})]


def test_a_role_has_what_its_stage_did_and_nothing_else(healthy: list[Timeline]) -> None:
    for timeline in healthy:
        cut = dict(roles(timeline))
        assert list(cut) == list(ROLES.values())
        last = {ROLES[mark.message]: mark for mark in phases(timeline) if mark.message in ROLES}
        for role, part in cut.items():
            mark = last[role]
            wanted = [kernel.start for kernel in timeline.kernels if mark.start <= kernel.start < mark.end]
            assert [kernel.start for kernel in part.kernels] == wanted
            assert (part.start, part.end) == (mark.start, mark.end)
            known = {id(span) for span in part.spans}
            assert all(span.parent is None or id(span.parent) in known for span in part.spans)
            assert all(task.launch is None or id(task.launch.span) in known for task in part.tasks)
        assert not cut["rollout"].collectives and cut["actor_update"].collectives


@pytest.mark.parametrize("format_", ["text", "db"])
def test_roles_are_directories(tmp_path: Path, format_: str) -> None:
    written = write_sample(tmp_path, scenario=HEALTHY, discrete=True, format=format_)
    assert sorted(path.relative_to(tmp_path).parts[0] for path in written) == sorted(2 * list(ROLES.values()))
    assert all(path.name.endswith("_ascend_pt") for path in written)


def test_only_reinforcement_learning_has_roles(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="has roles"):
        write_sample(tmp_path, scenario="healthy-decode", discrete=True)
