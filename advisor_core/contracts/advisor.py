"""The advisor type: a measurement with its declared inputs and columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

import pandas as pd

from advisor_core.contracts.columns import Column, conform, fits
from advisor_core.contracts.cure import Cure
from advisor_core.contracts.facts import Fact, Facts, JobFacts
from advisor_core.contracts.keys import AnyKey
from advisor_core.contracts.tables import Int64Array, TableSchema
from advisor_core.text.base import Scalar, Text


class Scope(StrEnum):
    """``rank``: sees the facts of one rank. ``job``: sees the shared facts of all ranks."""

    RANK = "rank"
    JOB = "job"


@dataclass(frozen=True)
class Rows:
    """Evidence: rows of a canonical table, by their 0-based number in the frame."""

    title: Text
    table: TableSchema
    rows: Int64Array
    columns: tuple[str, ...]


@dataclass(frozen=True)
class Interval:
    """Evidence: a stretch of a lane; times in ns since the epoch."""

    title: Text
    start_ns: int
    end_ns: int
    lane: str


@dataclass(frozen=True)
class Metric:
    """Evidence: a table of numbers computed from the profile, one mapping of column name to value per row.

    The columns are those that the advisor declares, observed ones or those of ``evidence=``: unit and heading come from
    there. ``units``: of a column whose unit only the profile tells, in place of the declared one."""

    title: Text
    rows: Sequence[Mapping[str, Scalar]]
    units: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Setting:
    """Evidence: a recorded setting. ``file`` is where it was read, relative to the input."""

    title: Text
    name: str
    value: Scalar
    file: str


@dataclass(frozen=True)
class Stack:
    """Evidence: a call stack, innermost frame first."""

    title: Text
    frames: tuple[str, ...]


Reference = Rows | Interval | Metric | Setting | Stack


@dataclass(frozen=True)
class Observations:
    """The measurements of an advisor, one row per subject.

    ``frame`` has the declared ``about`` and ``columns``; NaN and ``None`` mean that the value is not known.
    ``evidence`` gives the references of one row; it is called only for rows that become findings.
    ``ranks``, for job advisors: the ranks that lose the time of one row, the one that loses most first. A finding
    claims time of the first, and is linked with findings of all of them.
    ``cure`` gives what following the advice on one row would change, ``None`` where that is not known; like
    ``evidence`` it is called for findings only.
    """

    frame: pd.DataFrame
    evidence: Callable[[int], Sequence[Reference]]
    ranks: Callable[[int], Sequence[int]] | None = None
    cure: Callable[[int], Cure | None] | None = None


Params = Mapping[str, Any]


@dataclass(frozen=True)
class Advisor:
    """A measurement, by name ``module.measure``. ``params``: the rule parameters that it reads. ``measure`` takes
    `Facts` in the scope of a rank and `JobFacts` in that of a job, which `advisor` and `job_advisor` see to.
    ``evidence``: the columns that only its tables of evidence show; rules cannot use them. Raises TypeError where one
    of them is declared as an observed column too."""

    name: str
    meaning: str
    scope: Scope
    needs: tuple[AnyKey, ...]
    wants: tuple[AnyKey, ...]
    about: tuple[Column, ...]
    columns: tuple[Column, ...]
    params: tuple[str, ...]
    measure: Callable[[Any, Params], Observations] = field(repr=False)
    evidence: tuple[Column, ...] = ()

    def __post_init__(self) -> None:
        twice = sorted(self.declared().keys() & {column.name for column in self.evidence})
        if twice:
            raise TypeError(f"{self.name} declares {', '.join(twice)} both as observed and as only shown in evidence")

    def declared(self) -> dict[str, Column]:
        """Every name a condition or a text may use, ``about`` included."""
        return {column.name: column for column in (*self.about, *self.columns)}

    def shown(self) -> dict[str, Column]:
        """Every column that a report can show: the declared ones and those of its evidence."""
        return self.declared() | {column.name: column for column in self.evidence}

    def conform(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The declared columns of an observed frame. Raises TypeError where it is not what was declared."""
        return conform(frame, (*self.about, *self.columns), self.name)

    def evidence_of(self, observed: Observations, row: int) -> list[Reference]:
        """The references of one row, each `Metric` with the units of its columns. Raises TypeError that names the
        advisor and the column where a table has a column that is not declared, or a value of another type."""
        columns = self.shown()
        return [
            self._with_units(reference, columns) if isinstance(reference, Metric) else reference
            for reference in observed.evidence(row)
        ]

    def _with_units(self, metric: Metric, columns: Mapping[str, Column]) -> Metric:
        names = dict.fromkeys(name for row in metric.rows for name in row)
        undeclared = [name for name in (*names, *metric.units) if name not in columns]
        if undeclared:
            raise TypeError(f"{self.name} shows {', '.join(undeclared)} in its evidence, which it does not declare")
        for row in metric.rows:
            for name, value in row.items():
                if not fits(value, columns[name].dtype):
                    raise TypeError(f"{self.name} declares {name} as {columns[name].dtype}, but shows {value!r}")
        units = {name: metric.units.get(name, columns[name].unit) for name in names}
        return replace(metric, units={name: unit for name, unit in units.items() if unit})


def advisor(
    name: str,
    *,
    needs: Iterable[AnyKey],
    columns: Iterable[Column],
    about: Iterable[Column] = (),
    wants: Iterable[AnyKey] = (),
    params: Iterable[str] = (),
    evidence: Iterable[Column] = (),
) -> Callable[[Callable[[Facts, Params], Observations]], Advisor]:
    """Declare the decorated function as the advisor ``name`` of a rank: it gets the facts of one rank. Its docstring's
    first line is its meaning. ``columns`` and ``about`` are what it observes, ``evidence`` the columns that only the
    tables of its evidence show."""
    given = tuple(needs), tuple(wants), tuple(about), tuple(columns), tuple(params)
    shown = tuple(evidence)

    def declare(measure: Callable[[Facts, Params], Observations]) -> Advisor:
        return Advisor(name, _meaning(measure), Scope.RANK, *given, measure, shown)

    return declare


def job_advisor(
    name: str,
    *,
    needs: Iterable[Fact[object]],
    columns: Iterable[Column],
    about: Iterable[Column] = (),
    wants: Iterable[Fact[object]] = (),
    params: Iterable[str] = (),
    evidence: Iterable[Column] = (),
) -> Callable[[Callable[[JobFacts, Params], Observations]], Advisor]:
    """As `advisor`, of a job: it gets the shared facts of all ranks. Raises TypeError for a fact that is not shared."""
    given = tuple(needs), tuple(wants), tuple(about), tuple(columns), tuple(params)
    shown = tuple(evidence)
    for key in (*given[0], *given[1]):
        if not (isinstance(key, Fact) and key.shared):
            raise TypeError(f"{name} is an advisor of a job, and {key.name!r} is not a shared fact")

    def declare(measure: Callable[[JobFacts, Params], Observations]) -> Advisor:
        return Advisor(name, _meaning(measure), Scope.JOB, *given, measure, shown)

    return declare


def _meaning(measure: Callable[..., Observations]) -> str:
    lines = (measure.__doc__ or "").strip().splitlines()
    return lines[0] if lines else ""
