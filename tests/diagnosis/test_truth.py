"""How long runs are simulated for: until the mean step is known well enough."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from advisor_core.sample.scenarios import SCENARIOS
from tests.diagnosis import truth
from tests.diagnosis.truth import LongRun


@pytest.mark.parametrize(("count", "quantile"), [(4, 3.182), (9, 2.306), (21, 2.086), (121, 1.980)])
def test_the_margin_of_a_mean_is_that_of_students_distribution(count: int, quantile: float) -> None:
    steps = np.resize([90.0, 110.0], count)
    found = LongRun.of(steps)
    assert found.step_ns == steps.mean()
    assert found.margin_ns == pytest.approx(quantile * steps.std(ddof=1) / count**0.5, rel=0.01)


def test_steps_that_differ_in_each_run_alike_need_no_further_runs() -> None:
    random = np.random.default_rng(0)
    by_step, by_run = np.array([90.0, 110.0, 95.0, 105.0]), [random.normal(100, 5, 4) for _ in range(4)]
    assert truth._differ([by_step + random.normal(0, 1, 4) for _ in range(3)])
    assert not truth._differ([by_step] * 2)  # too few to tell
    assert not truth._differ(by_run)


def test_a_step_is_known_well_where_a_loader_limits_and_where_nothing_varies(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = []

    def times(scenario: object, draws: object) -> object:
        for one in simulated(scenario, draws):  # type: ignore[arg-type]
            counts[-1] += 1
            yield one

    simulated = truth.times
    monkeypatch.setattr(truth, "times", times)
    for name in ("slow-data-loader", "healthy-prefill"):
        counts.append(0)
        scenario = SCENARIOS[name]
        found = truth._simulated(replace(scenario, name=f"{name}-judged"), 0)
        assert found.precise
    assert counts[0] >= counts[1] == 3  # a pair, and one for how long they have to be
