"""The side that is judged: what the model of the recorded job says the step would be without some causes.

A cause is taken away by the changes that the findings propose that name it; the step is that of a long run, as in the
plan of the report.
"""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Sequence
from pathlib import Path

from advisor_core.run.pipeline import analysed
from advisor_core.run.prepared import RunOptions, prepared
from advisor_core.run.request import Request
from advisor_core.sample.causes import Cause
from advisor_core.sample.scenarios import Scenario
from tests.diagnosis.diagnosis import refuse_broken, write
from tests.diagnosis.expectations import allowed, names

Range = tuple[float, float]


class Prediction:
    """What the recording of a simulated job says of it without some of its causes. Raises `ValueError` where nothing of
    it can be replayed, and `RuntimeError` where a rule fails: its findings would count as missing."""

    def __init__(self, scenario: Scenario, seed: int, select: tuple[str, ...] | None = None) -> None:
        """``select``: the rules that judge the recording; by default those that may fire because of its causes, and
        those that they ask about. What the others would measure takes a third of the time, and changes no
        prediction."""
        select = _with_those_asked(allowed(scenario.causes)) if select is None else select
        with tempfile.TemporaryDirectory(prefix="counterfactuals-") as folder:
            write(scenario, seed, Path(folder))
            self.result, replayed = analysed(Request((Path(folder),), RunOptions(select=select)), jobs=1)
        refuse_broken(scenario, self.result)
        if replayed is None:
            raise ValueError(f"{scenario.name} cannot be replayed")
        self._replayed = replayed

    @property
    def reported_ns(self) -> float:
        """The step of the recording, as it is replayed without a change."""
        return self._replayed.step_ns()

    def step_ns(self, without: Sequence[Cause]) -> float | None:
        """The step without these causes; ``None`` where no finding with a change names one of them."""
        found = self._found(without)
        return None if found is None else self._replayed.step_ns(found)

    def range_ns(self, without: Sequence[Cause]) -> Range | None:
        """The range that is promised for the same step."""
        found = self._found(without)
        return None if found is None else self._replayed.after_range_ns(found)

    def steps_wanted(self, without: Sequence[Cause]) -> int | None:
        """How many steps the report asks to record for a better promise of the same step; ``None`` where the recorded
        ones are enough, or nothing is promised."""
        found = self._found(without)
        return None if found is None else self._replayed.steps_wanted(found)

    def promised(self, without: Sequence[Cause]) -> tuple[Cause, ...]:
        """Those of these causes that a finding with a change names."""
        return tuple(cause for cause in without if self._changes(cause))

    def _found(self, without: Sequence[Cause]) -> list[str] | None:
        """The changes that take these causes away; ``None`` where one of them has none."""
        changes = [self._changes(cause) for cause in without]
        return list(dict.fromkeys(one for each in changes for one in each)) if all(changes) else None

    def _changes(self, cause: Cause) -> list[str]:
        """The changes of the first rule that names a cause and has one."""
        known = self._replayed.cures
        naming = [one for one in self.result.findings if names(one, cause) and one.fingerprint in known]
        return [one.fingerprint for one in naming if one.rule == naming[0].rule]


def _with_those_asked(rules: Collection[str]) -> tuple[str, ...]:
    """These rules, and all whose state their conditions can read: those that are judged before them."""
    book, found, new = prepared(RunOptions())[1], set[str](), set(rules)
    while new:
        found |= new
        new = {name for rule in new for name in book[rule].after} - found
    return tuple(sorted(found))
