"""Changes of the graph of a job against the simulated truth: another mode of the queue, a graph, more micro-batches."""

from __future__ import annotations

from dataclasses import replace

import pytest

from advisor_core.sample.scenarios import SCENARIOS, Scenario
from tests.diagnosis.counterfactuals.jobs import cases
from tests.diagnosis.counterfactuals.predictions import Prediction
from tests.diagnosis.truth import step_ns


def small_pipeline() -> Scenario:
    """Two stages with four micro-batches, cut from eight."""
    (job,) = [case.scenario for case in cases(["pipeline-four"]) if case.dose == 1 and not case.unshared]
    shape = replace(job.job.training.shape, layers=2, hidden=1024, heads=8, kv_heads=4, ffn=2816, vocab=32000)
    training = replace(job.job.training, shape=shape, stage_layers=(1, 1), micro_batches=8)
    assert job.job.layout is not None
    layout, ranks = replace(job.job.layout, pipeline=2), job.job.ranks[:2]
    return replace(job, job=replace(job.job, training=training, layout=layout, ranks=ranks), causes=job.causes[:1])


def queue() -> Scenario:
    """A rank whose operators take long before the queue."""
    job = SCENARIOS["task-queue-one"]
    return replace(job, job=replace(job.job, ranks=job.job.ranks[:1], layout=None))


def decode() -> Scenario:
    (job,) = [case.scenario for case in cases(["decode-eager"]) if case.dose == 1 and not case.unshared]
    return job


@pytest.mark.parametrize(
    ("scenario", "cause", "rule"),
    [
        (queue(), "workspace-on-main-thread", "HD021"),
        (decode(), "eager-decode", "HD022"),
        (small_pipeline(), "pipeline-bubble", "CO013"),
    ],
    ids=["queue", "graph", "pipeline"],
)
def test_the_step_after_a_change_is_that_of_the_simulated_job(scenario: Scenario, cause: str, rule: str) -> None:
    """Within 5 % of the step, the goal of the counterfactuals, and in the range that is promised."""
    prediction = Prediction(scenario, 0)
    gone = [one for one in scenario.causes if one.name == cause]
    truth = step_ns(scenario.cured(*gone), 0)
    assert rule in {finding.rule for finding in prediction.result.findings}
    predicted, promised = prediction.step_ns(gone), prediction.range_ns(gone)
    assert predicted is not None and promised is not None
    assert predicted == pytest.approx(truth, rel=0.05)
    assert promised[0] <= truth <= promised[1]
    assert prediction.reported_ns - predicted > 0.5 * (prediction.reported_ns - truth) > 0
