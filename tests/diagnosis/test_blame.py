"""What a finding promises is what its cure would win, not what its symptom takes: against the simulated truth."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest

from advisor_core.sample.causes import Cause
from advisor_core.sample.scenarios import Scenario, jobs_from
from tests.diagnosis.counterfactuals.predictions import Prediction
from tests.diagnosis.truth import step_ns

HERE = Path(__file__).parent
JOBS = {job.name: job for job in jobs_from(HERE / "blame.yaml")}


@cache
def predicted(name: str) -> Prediction:
    return Prediction(JOBS[name], 0)


def assert_step(job: Scenario, without: Sequence[Cause], within: float) -> None:
    found = predicted(job.name).step_ns(without)
    assert found == pytest.approx(step_ns(job.cured(*without), 0), rel=within)


def test_a_norm_is_worth_the_launches_that_go_where_the_host_is_slow() -> None:
    """The kernels of the norm take a few ms; without them the slow host launches much less."""
    job = JOBS["norm-behind-a-slow-host"]
    _, norm = job.causes
    assert_step(job, [norm], 0.05)
    assert_step(job, job.causes, 0.05)


def test_a_throttled_stage_beside_uneven_stages_wins_little_alone() -> None:
    job = JOBS["throttled-beside-uneven"]
    clock, _ = job.causes
    assert_step(job, [clock], 0.02)
    assert_step(job, job.causes, 0.06)


def test_no_rank_is_blamed_for_the_drain_of_a_pipeline() -> None:
    findings = predicted("draining").result.findings
    assert {"CO013"} <= {finding.rule for finding in findings}
    assert not {"CO010", "CO015"} & {finding.rule for finding in findings}
