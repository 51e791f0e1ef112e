"""Runs a case: what is true of every set of cures, what the report of the recording predicts, and how they agree."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from advisor_core.sample.causes import Cause
from tests.diagnosis.counterfactuals.jobs import Case
from tests.diagnosis.counterfactuals.predictions import Prediction, Range
from tests.diagnosis.truth import long_run, step_ns

SEED = 0
WORTH_SAVING = 0.03
"""Of the step: the error of a saving is judged from here on."""
REPRESENTATIVE = 0.02
"""A recording whose replayed step is so near to that of a long run is like one. Our choice: the goal of the median."""
MOST_STEPS = 40
"""A job is recorded again with as many steps as the report asks for, and at most so many: more take minutes each."""


@dataclass(frozen=True)
class Counterfactual:
    """A set of cures of a job. Times are ns per step of a long run: ``step_ns`` of the job as it is, ``true_ns`` of the
    cured job on the same machine, ``margin_ns`` how far that may be off with a confidence of 95 %; ``reported_ns`` what
    the replay takes for the step of the recording; ``steps_wanted``: how many steps the report
    asks to record for a better prediction, ``None`` where it asks for none; ``unpromised_ns``: where there is no
    prediction, what the causes without a finding win on top of the others. ``again_ns``, ``again_range_ns``: of a
    recording of as many steps as asked for, at most `MOST_STEPS`; ``None`` where none are."""

    job: str
    part: str
    unshared: bool
    dose: float
    cures: tuple[str, ...]
    of: int
    step_ns: float
    true_ns: float
    margin_ns: float
    reported_ns: float
    predicted_ns: float | None
    range_ns: Range | None
    steps_wanted: int | None = None
    unpromised_ns: float | None = None
    again_ns: float | None = None
    again_range_ns: Range | None = None

    @property
    def kind(self) -> str:
        """How many causes are taken away."""
        if len(self.cures) == self.of and self.of > 1:
            return "all"
        return "alone" if len(self.cures) == 1 else "two"

    @property
    def saved_ns(self) -> float:
        """What the cures save."""
        return self.step_ns - self.true_ns

    @property
    def sampling_error(self) -> float:
        """Of the step of the recording as it is, over that of a long run: nothing that a prediction does about it."""
        return (self.reported_ns - self.step_ns) / self.step_ns

    @property
    def representative(self) -> bool:
        """Whether the recorded steps are like those of a long run."""
        return abs(self.sampling_error) <= REPRESENTATIVE

    @property
    def step_error(self) -> float | None:
        """Of the predicted step, over the true one."""
        return None if self.predicted_ns is None else (self.predicted_ns - self.true_ns) / self.true_ns

    @property
    def rightly_silent(self) -> bool | None:
        """Whether what the report does not promise wins nothing that is worth it; ``None`` of a prediction."""
        return None if self.unpromised_ns is None else self.unpromised_ns < WORTH_SAVING * self.step_ns

    @property
    def saving_error(self) -> float | None:
        """Of the predicted saving, over the true one, where that is worth it."""
        if self.predicted_ns is None or self.saved_ns < WORTH_SAVING * self.step_ns:
            return None
        return (self.reported_ns - self.predicted_ns - self.saved_ns) / self.saved_ns

    @property
    def noise(self) -> float:
        """How far the truth may be off: no prediction can be better."""
        return self.margin_ns / self.true_ns

    @property
    def inside(self) -> bool | None:
        """Whether the truth is in the range that is promised."""
        return None if self.range_ns is None else self.range_ns[0] <= self.true_ns <= self.range_ns[1]

    @property
    def error_as_asked(self) -> float | None:
        """As `step_error`, with as many recorded steps as the report asks for."""
        return self.step_error if self.again_ns is None else (self.again_ns - self.true_ns) / self.true_ns

    @property
    def inside_as_asked(self) -> bool | None:
        """As `inside`, with as many recorded steps as the report asks for."""
        again = self.again_range_ns
        return self.inside if again is None else again[0] <= self.true_ns <= again[1]

    @property
    def width(self) -> float | None:
        """Of the promised range, over the true saving, where that is worth it: a range that says nothing is wide."""
        if self.range_ns is None or self.saved_ns < WORTH_SAVING * self.step_ns:
            return None
        return (self.range_ns[1] - self.range_ns[0]) / self.saved_ns


Predict = Callable[[Prediction, Sequence[Cause]], float | None]


def measured(case: Case, predict: Predict = Prediction.step_ns) -> list[Counterfactual]:
    """All sets of cures of one case."""
    scenario = case.scenario
    prediction = Prediction(scenario, SEED)
    step = step_ns(scenario, SEED)
    wanted = {cures: prediction.steps_wanted(cures) for cures in case.cures}
    again = _recorded_again(case, wanted.values())
    found = []
    for cures in case.cures:
        cured = scenario.cured(*cures)
        promised, true = prediction.promised(cures), long_run(cured, SEED)
        found.append(
            Counterfactual(
                scenario.name,
                case.part,
                case.unshared,
                case.dose,
                tuple(cause.name for cause in cures),
                len(scenario.causes),
                step,
                true.step_ns,
                true.margin_ns,
                prediction.reported_ns,
                predict(prediction, cures),
                prediction.range_ns(cures),
                wanted[cures],
                step_ns(scenario.cured(*promised), SEED) - true.step_ns if promised != cures else None,
                again.step_ns(cures) if again and wanted[cures] else None,
                again.range_ns(cures) if again and wanted[cures] else None,
            )
        )
    return found


def _recorded_again(case: Case, wanted: Iterable[int | None]) -> Prediction | None:
    """What a recording of the same job says that has as many steps as are asked for; ``None`` where none are. Of whole
    causes only: what few steps of a job are worth does not depend on the dose of its causes."""
    most = min(max(filter(None, wanted), default=0), MOST_STEPS)
    job = case.scenario.job
    if case.dose < 1 or most <= case.scenario.steps:
        return None
    more = replace(case.scenario, job=replace(job, training=replace(job.training, steps=most)))
    return Prediction(more, SEED)
