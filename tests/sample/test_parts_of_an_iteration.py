"""What each part of an iteration of reinforcement learning loses, against the timeline that the simulator wrote."""

from __future__ import annotations

from itertools import pairwise

import pytest

from advisor_core.api.testing import judge_rule
from advisor_core.facts.steps.judged_parts import judged_parts
from advisor_core.facts.store import FactStore
from advisor_core.loaders.ascend_pytorch.loader import AscendPytorchLoader
from advisor_core.run.rank import fact_store
from advisor_core.sample import write_sample
from advisor_core.sample.job import simulate
from advisor_core.sample.scenarios import jobs_from
from advisor_core.sample.timeline import Timeline
from advisor_core.vocabulary.parts import TOLD
from tests.advisors.build import host

JOB = """
name: two-causes-in-two-parts
like: healthy-rl
reinforcement: {response: 12}
causes:
  - slow-rollout
  - slow-reward: {ns: 9000000}
"""
PHASES = {"rollout": "generate_sequences", "update_actor": "update_actor", "reward": "reward"}


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> tuple[Timeline, FactStore]:
    """The first rank, as it was simulated and as its export is read."""
    folder = tmp_path_factory.mktemp("job")
    (folder / "job.yaml").write_text(JOB, encoding="utf-8")
    (scenario,) = jobs_from(folder / "job.yaml")
    written = write_sample(folder / "export", scenario=scenario)
    (source,) = AscendPytorchLoader().discover(written[0])
    return simulate(scenario, 0)[0], fact_store(host(), AscendPytorchLoader().load(source))


def moments(timeline: Timeline, phase: str) -> tuple[float, float, float]:
    """Per step: the time of a phase, and what of it the device is idle and only communicates, moment by moment."""
    marks = [(mark.start, mark.end) for mark in timeline.marks if mark.message == PHASES[phase]]
    computing = [(task.start, task.end) for task in timeline.tasks if task.launch is not None]
    sending = [(call.start, call.end) for call in timeline.collectives]
    edges = sorted({edge for span in (*marks, *computing, *sending) for edge in span})
    whole = idle = sends = 0
    for start, end in pairwise(edges):
        if not any(begin <= start and end <= until for begin, until in marks):
            continue
        computes, communicates = (
            any(begin <= start and end <= until for begin, until in spans) for spans in (computing, sending)
        )
        whole += end - start
        idle += (end - start) * (not computes and not communicates)
        sends += (end - start) * (communicates and not computes)
    steps = len(timeline.steps)
    return whole / steps, idle / steps, sends / steps


@pytest.mark.parametrize("phase", PHASES)
def test_parts_lose_what_they_were_simulated_to(job: tuple[Timeline, FactStore], phase: str) -> None:
    timeline, store = job
    own = [part for part in store[judged_parts] if part.name.endswith(f"({phase})")]
    found = [
        sum(float(part.per_leaf[part.per_leaf.index.str.startswith(trunk)].sum()) for part in own)
        for trunk in ("idle", "communication")
    ]
    step_ns = sum(step.end - step.start for step in timeline.steps) / len(timeline.steps)
    for value, truth in zip([sum(part.wall_ns for part in own), *found], moments(timeline, phase), strict=True):
        assert value == pytest.approx(truth, abs=TOLD * step_ns), "a stretch below that is no part of its own"


def test_each_part_has_its_finding(job: tuple[Timeline, FactStore]) -> None:
    _, store = job
    verdict = judge_rule("HD001", store).verdict
    assert verdict is not None
    parts = {str(row.observation["recorded_part"]) for row in verdict.rows}
    assert "decode (rollout)" in parts and not any(part.startswith("training") for part in parts)
    assert any(part.endswith("(reward)") for part in parts)
