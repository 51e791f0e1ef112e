"""Judge the rows of an advisor by a rule. A pure function: no profile, no files."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from advisor_core.result.finding import Advice, Confidence, Severity
from advisor_core.rules.advising import Candidate, advise
from advisor_core.rules.applicability import Job, conditions
from advisor_core.rules.compiled import CompiledAdvice, CompiledException, CompiledRule
from advisor_core.rules.language.evaluate import Evaluator, Explanation, Values, explain
from advisor_core.rules.language.expression import Expression
from advisor_core.rules.places import Place, kind_and_part
from advisor_core.text.base import Scalar, Text
from advisor_core.text.messages import message

State = Literal["fail", "pass", "not_applicable", "cannot_answer"]

_MAX_NS = 2.0**53

OF_PART = ("profile.kind", "profile.phase")
"""The names that differ from part to part of a recording."""


@dataclass(frozen=True)
class Context:
    """The names that conditions may use beside the columns of a row. ``profile``: the names of `names.PROFILE_NAMES`.
    ``fired``: rules judged before, ``None`` for those that could not answer. ``job``: recorded variables, and what
    decides which advice holds. ``places``: of a recording of several parts, where the time of a row of an advisor lies,
    nothing where that is not known.
    """

    profile: Mapping[str, Scalar] = field(default_factory=dict)
    fired: Mapping[str, bool | None] = field(default_factory=dict)
    job: Job = field(default_factory=Job)
    places: Callable[[int], tuple[Place, ...]] | None = None


@dataclass(frozen=True)
class Judged:
    """A row at fault, with its texts filled in. ``row``: its 0-based number in the frame. ``idle_ns``: part of
    ``impact_ns`` that is idle time, ``None`` where the rule does not tell. ``observation``: the declared columns,
    ``None`` where not known. ``withheld``: advice that is left out, with the reason. ``signs``: those that held.
    ``advice_numbers``: the place of each advice in the rule, from 1; 0 for what stands in where all is left out.
    ``places``: as of `Context`."""

    row: int
    severity: Severity
    confidence: Confidence
    impact_ns: int
    idle_ns: int | None
    observation: dict[str, Scalar]
    title: Text
    why: Text
    verify: Text
    not_a_problem_if: Text | None
    caveat: Text | None
    advice: tuple[Advice, ...]
    withheld: tuple[Text, ...] = ()
    signs: tuple[str, ...] = ()
    advice_numbers: tuple[int, ...] = ()
    places: tuple[Place, ...] = ()


@dataclass(frozen=True)
class Verdict:
    """``rows``: at fault, largest impact first, at most the rule's ``limit``; ``dropped_rows`` and ``dropped_ns`` are
    those beyond it. ``unknown_rows``: could not be judged, because of ``unknown_columns``. ``reason``: why there is
    no answer, or nothing to judge; plain text."""

    state: State
    rows: tuple[Judged, ...] = ()
    dropped_rows: int = 0
    dropped_ns: int = 0
    unknown_rows: int = 0
    unknown_columns: tuple[str, ...] = ()
    reason: Text | None = None


def judge(compiled: CompiledRule, frame: pd.DataFrame, context: Context | None = None) -> Verdict:
    """Judge every row of what the rule's advisor measured (``Observations.frame``)."""
    if len(frame) == 0:
        return Verdict("not_applicable", reason=message("rule.no_rows"))
    context = context or Context()
    judging = _Judging(compiled, frame, constants(compiled, context), context)
    applies = judging.condition(compiled.applies)
    when = judging.all.evaluate(compiled.when)
    if applies is not None and applies.false.all():
        condition = compiled.applies.source if compiled.applies else ""
        return Verdict("not_applicable", reason=message("rule.does_not_apply", condition=condition))
    fails = when.true if applies is None else when.true & applies.true
    # Not applying, or being in order, is an answer whatever is unknown about the other.
    answered = fails | when.false if applies is None else fails | when.false | applies.false
    unknown = np.flatnonzero(~answered)
    names = judging.unknown_names([compiled.applies, compiled.when], unknown)
    if fails.any():
        rows, dropped = judging.rows(np.flatnonzero(fails))
        return Verdict("fail", rows, len(dropped), int(dropped.sum()), len(unknown), names)
    if len(unknown):
        values = {"names": ", ".join(names), "rows": len(unknown), "total": len(frame)}
        reason = message("rule.unknown" if names else "rule.undefined", **values)
        return Verdict("cannot_answer", unknown_rows=len(unknown), unknown_columns=names, reason=reason)
    return Verdict("pass")


def constants(compiled: CompiledRule, context: Context) -> dict[str, Scalar]:
    """The values that are the same for every row, by the name that conditions use for them."""
    return {
        **{f"params.{name}": value for name, value in compiled.params.items()},
        **{f"env.{name}": value for name, value in context.job.variables.items()},
        **{f"profile.{name}": value for name, value in context.profile.items()},
        **{f"fired.{name}": value for name, value in context.fired.items()},
    }


def explain_row(
    compiled: CompiledRule, observation: Mapping[str, Scalar], context: Context | None = None
) -> dict[str, Explanation]:
    """Every condition of the rule with the values it had for one row: ``applies``, ``when``, ``severity.high`` ..."""
    parts: dict[str, Expression | None] = {"applies": compiled.applies, "when": compiled.when}
    parts.update({f"severity.{level}": condition for level, condition in compiled.severity})
    parts["impact"] = compiled.impact
    parts["impact.idle"] = compiled.idle
    for number, advice in enumerate(compiled.advice):
        parts[f"advice[{number}].when"] = advice.when
        parts[f"advice[{number}].unless"] = advice.unless
    for number, exception in enumerate(compiled.exceptions):
        parts[f"exceptions[{number}].when"] = exception.when
    known_constants = constants(compiled, context or Context())
    return {name: explain(part, observation, known_constants) for name, part in parts.items() if part is not None}


def _nanoseconds(amounts: Values) -> npt.NDArray[np.int64]:
    """Whole ns, 0 where not known."""
    known_amounts = np.where(amounts.known, amounts.values, 0.0)
    return np.asarray(np.rint(np.clip(known_amounts, 0.0, _MAX_NS)).astype(np.int64))


class _Judging:
    def __init__(
        self, compiled: CompiledRule, frame: pd.DataFrame, values: Mapping[str, Scalar], context: Context
    ) -> None:
        self.compiled = compiled
        self.frame = frame
        self.constants = values
        self.job = context.job
        self.places = context.places
        self.by_row = self._by_row()
        self.all = Evaluator(frame, values, self.by_row)

    def _by_row(self) -> dict[str, list[str | None]]:
        """The kind of run that conditions read, of each row by the part that it lies in."""
        if self.places is None or not self.compiled.reads(OF_PART):
            return {}
        told = [kind_and_part(self.places(row)) for row in range(len(self.frame))]
        of_all = [self.constants.get(name) for name in OF_PART]
        return {
            name: [values[number] or (None if whole is None else str(whole)) for values in told]
            for number, (name, whole) in enumerate(zip(OF_PART, of_all, strict=True))
        }

    def condition(self, expression: Expression | None) -> Values | None:
        """The condition for all rows; ``None`` for no condition."""
        return None if expression is None else self.all.evaluate(expression)

    def unknown_names(self, expressions: Sequence[Expression | None], rows: npt.NDArray[np.intp]) -> tuple[str, ...]:
        """The names whose values are missing in some of the rows."""
        if not len(rows):
            return ()
        symbols = [symbol for expression in expressions if expression for symbol in expression.symbols]
        return tuple(dict.fromkeys(symbol.key for symbol in symbols if not self.all.knows(symbol)[rows].all()))

    def rows(self, failing: npt.NDArray[np.intp]) -> tuple[tuple[Judged, ...], npt.NDArray[np.int64]]:
        """The rows that become findings, and the impacts of those that do not."""
        impact = self.all.evaluate(self.compiled.impact).at(failing)
        nanoseconds = _nanoseconds(impact)
        order = np.argsort(-nanoseconds, kind="stable")
        shown, dropped = order[: self.compiled.rule.limit], order[self.compiled.rule.limit :]
        places = failing[shown]
        idle = None if self.compiled.idle is None else _nanoseconds(self.all.evaluate(self.compiled.idle).at(places))
        severities = [(level, self.all.evaluate(condition).true) for level, condition in self.compiled.severity]
        signs = [(name, self.all.evaluate(sign).true) for name, sign in self.compiled.signs.items()]
        advice = [(item, self.condition(item.when), self.condition(item.unless)) for item in self.compiled.advice]
        exceptions = [(item, self.condition(item.when)) for item in self.compiled.exceptions]
        judged = tuple(
            self.row(
                int(row),
                next((level for level, holds in severities if holds[row]), "low"),
                int(nanoseconds[shown[number]]),
                bool(impact.known[shown[number]]),
                None if idle is None else int(idle[number]),
                [(item, _at(when, row), _at(unless, row)) for item, when, unless in advice],
                [item for item, when in exceptions if _at(when, row) is not False],
                tuple(name for name, holds in signs if holds[row]),
            )
            for number, row in enumerate(places)
        )
        return judged, nanoseconds[dropped]

    def row(
        self,
        row: int,
        severity: Severity,
        impact_ns: int,
        impact_known: bool,
        idle_ns: int | None,
        advice: list[tuple[CompiledAdvice, bool | None, bool | None]],
        exceptions: list[CompiledException],
        signs: tuple[str, ...],
    ) -> Judged:
        compiled = self.compiled
        observation = self.observation(row)
        values = {**self.constants, **{name: told[row] for name, told in self.by_row.items()}, **observation}
        places = self.places(row) if self.places is not None else ()
        candidates = [Candidate(*item) for item in advice if item[1] is not False and item[2] is not True]
        job = replace(self.job, places=places)
        given, withheld = advise(candidates, values, job, compiled.names)
        of_job = [item for item in exceptions if conditions(item.holds_for, job, compiled.names.title_of) is not None]
        excuses = [item.render(values) for item in (compiled.not_a_problem_if, *(item.text for item in of_job)) if item]
        return Judged(
            row=row,
            severity=severity,
            confidence=compiled.rule.confidence if impact_known else "low",
            impact_ns=impact_ns,
            idle_ns=idle_ns,
            observation=observation,
            title=compiled.title.render(values),
            why=compiled.why.render(values),
            verify=compiled.verify.render(values),
            not_a_problem_if=_any_of(excuses) if excuses else None,
            caveat=compiled.caveat.render(values) if compiled.caveat else None,
            advice=tuple(item for _, item in given),
            withheld=withheld,
            signs=signs,
            advice_numbers=tuple(number for number, _ in given),
            places=places,
        )

    def observation(self, row: int) -> dict[str, Scalar]:
        """The declared columns of a row as plain values, without optional ones that are not known."""
        declared = self.compiled.advisor.declared()
        values = {
            name: _scalar(self.all.held[name][row] if name in self.all.held else None, column.dtype)
            for name, column in declared.items()
        }
        return {name: value for name, value in values.items() if value is not None or not declared[name].optional}


def _any_of(cases: Sequence[Text]) -> Text:
    """Cases of which each is enough, as one text."""
    return Text(en=" Or ".join(case.en for case in cases), zh="或者".join(case.zh for case in cases))


def _at(values: Values | None, row: int) -> bool | None:
    """Whether a condition holds for a row; ``None`` where that is not known, or there is no condition."""
    return bool(values.values[row]) if values is not None and values.known[row] else None


def _scalar(value: Any, dtype: str) -> Scalar:
    """A cell as a plain value; ``None`` for what is not known."""
    if value is None or value is pd.NA or value is pd.NaT:
        return None
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if dtype == "text":
        return str(value)
    if dtype == "bool":
        return bool(value)
    return int(value) if dtype == "int" and value == int(value) else value
