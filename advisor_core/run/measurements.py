"""Measurements of advisors, and the parts of them that findings show: each asked for once, and remembered.

The memory is plain data without the tables that it was taken from. So it can be kept: another threshold or another
rule is then judged on it, and the rank is read again only for what nobody has asked for before.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pandas as pd

from advisor_core.contracts.advisor import Advisor, Observations, Reference
from advisor_core.contracts.cure import Cure
from advisor_core.contracts.isolation import working
from advisor_core.contracts.keys import AnyKey
from advisor_core.contracts.missing import Missing, Unanswered
from advisor_core.contracts.stopwatch import Stopwatch
from advisor_core.contracts.tables import Table
from advisor_core.facts.steps.judged_parts import PART
from advisor_core.plugins.crash import crash
from advisor_core.plugins.host import Host
from advisor_core.result.evidence import Evidence
from advisor_core.result.run import State
from advisor_core.rules.compiled import CompiledRule
from advisor_core.rules.places import Place
from advisor_core.run.fact_source import FactSource
from advisor_core.run.finding_places import PartTimes, claimed_paths, part_times
from advisor_core.run.resolve_evidence import resolve, scalar
from advisor_core.text.base import Text
from advisor_core.text.messages import message

Asked = tuple[str, str]
"""An advisor and its parameters, as JSON."""


@dataclass(frozen=True)
class RuleState:
    """The state of one rule for one rank, or for the job. ``options``: as of `Missing`."""

    state: State
    reason: Text | None = None
    collect: Text | None = None
    options: tuple[str, ...] = ()


@dataclass
class Told:
    """The answers so far: the frame of each advisor, or the state of rules where it has no answer; evidence and cure by
    row; doubts about an advisor; why a value is missing, by the name of its key; where the time of a row lies, by the
    paths of the ledger that its rule claims, and whether the recording has ``several`` parts at all."""

    frames: dict[Asked, pd.DataFrame | RuleState] = field(default_factory=dict)
    evidence: dict[tuple[Asked, int], list[Evidence]] = field(default_factory=dict)
    cures: dict[tuple[Asked, int], Cure | None] = field(default_factory=dict)
    caveats: dict[str, tuple[Text, ...]] = field(default_factory=dict)
    missing: dict[str, Missing | None] = field(default_factory=dict)
    places: dict[tuple[Asked, int, tuple[str, ...]], tuple[Place, ...]] = field(default_factory=dict)
    several: bool | None = None

    def failed(self) -> bool:
        """Whether an advisor raised by mistake."""
        return any(isinstance(one, RuleState) and one.state == "error" for one in self.frames.values())

    def answers(self) -> int:
        """The number of them, which only grows."""
        held = self.frames, self.evidence, self.cures, self.caveats, self.missing, self.places
        return sum(len(answers) for answers in held) + (self.several is not None)


Source = Callable[[], tuple[FactSource, Mapping[str, Table]]]
"""Facts and tables of a rank; of a job, which has no tables, facts."""


_written = json.JSONEncoder(sort_keys=True, default=str).encode
"""Made once: `json.dumps` makes one for each call with these options."""


def asked(advisor: Advisor, params: Mapping[str, Any]) -> Asked:
    """The name of a measurement."""
    return advisor.name, _written(params)


class Measurements:
    """The measurements of a rank or a job. ``source`` is asked where ``told`` does not answer, and only then."""

    def __init__(self, host: Host, source: Source, told: Told | None = None, watch: Stopwatch | None = None) -> None:
        self._host = host
        self._source = source
        self.told = told or Told()
        self.watch = watch or Stopwatch()
        self._measured: dict[Asked, Observations | RuleState] = {}
        self._shown: dict[tuple[Asked, int], Sequence[Reference]] = {}

    def frame(self, advisor: Advisor, params: Mapping[str, Any]) -> pd.DataFrame | RuleState:
        """The rows of an advisor, or the state of the rules that name it where it has no answer."""
        name = asked(advisor, params)
        if name not in self.told.frames:
            measured = self._observed(advisor, params)
            self.told.frames[name] = measured if isinstance(measured, RuleState) else measured.frame
        return self.told.frames[name]

    def evidence(self, advisor: Advisor, params: Mapping[str, Any], row: int, rank: int | None) -> list[Evidence]:
        """The evidence of a row. Raises what the advisor raises."""
        place = asked(advisor, params), row
        if place not in self.told.evidence:
            self.told.evidence[place] = resolve(self._references(advisor, params, row), self._source()[1], rank)
        return list(self.told.evidence[place])

    def places(self, rule: CompiledRule, row: int) -> tuple[Place, ...]:
        """The places of the time of a row of a rule's advisor, the largest first; nothing in a recording of one part,
        or where that is not known."""
        if self.told.several is None:
            self.told.several = self._parts is not None
        if not self.told.several:
            return ()
        frame = self.frame(rule.advisor, rule.measure_params)
        assert not isinstance(frame, RuleState), "only rows have a place"
        paths = claimed_paths(rule, {str(name): scalar(frame[name].iloc[row]) for name in frame})
        about = asked(rule.advisor, rule.measure_params), row, paths
        if about not in self.told.places:
            parts = self._parts
            assert parts is not None, "several parts were told before"
            references = self._references(rule.advisor, rule.measure_params, row)
            cure = self.cure(rule.advisor, rule.measure_params, row)
            found = parts.place(part) if (part := _part_of(rule.advisor, frame, row)) is not None else None
            self.told.places[about] = found or parts.places(references, self._source()[1], paths, cure)
        return self.told.places[about]

    @functools.cached_property
    def _parts(self) -> PartTimes | None:
        return part_times(self._source()[0])

    def cure(self, advisor: Advisor, params: Mapping[str, Any], row: int) -> Cure | None:
        """The change that following the advice on a row would make."""
        place = asked(advisor, params), row
        if place not in self.told.cures:
            observed = self._rows(advisor, params)
            self.told.cures[place] = observed.cure(row) if observed.cure is not None else None
        return self.told.cures[place]

    def ranks(self, advisor: Advisor, params: Mapping[str, Any], row: int) -> list[int]:
        """The ranks that lose the time of a row, of a job."""
        observed = self._rows(advisor, params)
        return [int(rank) for rank in observed.ranks(row)] if observed.ranks is not None else []

    def caveats(self, advisor: Advisor) -> tuple[Text, ...]:
        """Contradictions between other files of the recording and what an advisor measured."""
        if advisor.name not in self.told.caveats:
            self.told.caveats[advisor.name] = self._source()[0].caveats(advisor.needs)
        return self.told.caveats[advisor.name]

    def missing(self, key: AnyKey) -> Missing | None:
        """The reason why a value is not known, ``None`` where it is."""
        if key.name not in self.told.missing:
            self.told.missing[key.name] = self._source()[0].missing(key)
        return self.told.missing[key.name]

    def _references(self, advisor: Advisor, params: Mapping[str, Any], row: int) -> Sequence[Reference]:
        place = asked(advisor, params), row
        if place not in self._shown:
            self._shown[place] = advisor.evidence_of(self._rows(advisor, params), row)
        return self._shown[place]

    def _rows(self, advisor: Advisor, params: Mapping[str, Any]) -> Observations:
        measured = self._observed(advisor, params)
        assert not isinstance(measured, RuleState), "only rows have evidence"
        return measured

    def _observed(self, advisor: Advisor, params: Mapping[str, Any]) -> Observations | RuleState:
        name = asked(advisor, params)
        if name not in self._measured:
            self._measured[name] = _measure(self._host, advisor, self._source()[0], params)
        return self._measured[name]


def _part_of(advisor: Advisor, frame: pd.DataFrame, row: int) -> str | None:
    """The part of the recording that a row is about by itself, ``None`` where it is about all of it."""
    value = scalar(frame[PART.name].iloc[row]) if PART in advisor.about else None
    return None if value is None else str(value)


_STATES: dict[str, State] = {"not_applicable": "not_applicable", "failed": "error", "unavailable": "cannot_answer"}
"""The state of a rule whose advisor has no answer, by kind of `Missing`."""


def _measure(host: Host, advisor: Advisor, facts: FactSource, params: Mapping[str, Any]) -> Observations | RuleState:
    try:
        view = facts.view(advisor.needs, advisor.wants)
        with working(host.advisors.owner(advisor.name), f"which measures {advisor.name}"):
            observed = advisor.measure(view, params)
        return replace(observed, frame=advisor.conform(observed.frame))
    except Unanswered as stopped:
        return RuleState(_STATES[stopped.missing.kind], stopped.reason, stopped.collect, stopped.options)
    except Exception as error:
        return raised(host, advisor, advisor.name, error)


def raised(host: Host, advisor: Advisor, what: str, error: Exception) -> RuleState:
    """The state of a rule whose measurement or judgement raised by mistake."""
    plugin = str(host.advisors.owner(advisor.name))
    return RuleState("error", message("engine.plugin_raised", what=what, plugin=plugin, error=crash(error)))
