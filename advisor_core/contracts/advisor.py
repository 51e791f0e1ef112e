"""The advisor type: a measurement with its declared inputs and columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import pandas as pd

from advisor_core.contracts.facts import Facts
from advisor_core.contracts.tables import Dtype, Int64Array
from advisor_core.text.base import Scalar, Text


class Scope(StrEnum):
    """``rank``: sees the facts of one rank. ``job``: sees the shared facts of all ranks."""

    RANK = "rank"
    JOB = "job"


@dataclass(frozen=True)
class Column:
    """A measured column: what rules may judge and texts may quote."""

    name: str
    dtype: Dtype
    unit: str
    meaning: str


@dataclass(frozen=True)
class Rows:
    """Evidence: rows of a canonical table, by their 0-based number in the frame."""

    title: Text
    table: str
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
    """Evidence: numbers computed from the profile, one mapping per row, with the unit of each column."""

    title: Text
    rows: Sequence[Mapping[str, Scalar]]
    units: Mapping[str, str]


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
    """

    frame: pd.DataFrame
    evidence: Callable[[int], Sequence[Reference]]
    ranks: Callable[[int], Sequence[int]] | None = None


Params = Mapping[str, Any]


@dataclass(frozen=True)
class Advisor:
    """A measurement, by name ``module.measure``. ``params``: the rule parameters that it reads."""

    name: str
    meaning: str
    scope: Scope
    needs: tuple[str, ...]
    wants: tuple[str, ...]
    about: tuple[Column, ...]
    columns: tuple[Column, ...]
    params: tuple[str, ...]
    measure: Callable[[Facts, Params], Observations] = field(repr=False)

    def declared(self) -> dict[str, Column]:
        """Every name a condition or a text may use, ``about`` included."""
        return {column.name: column for column in (*self.about, *self.columns)}


def advisor(
    name: str,
    *,
    needs: Iterable[str],
    columns: Iterable[Column],
    about: Iterable[Column] = (),
    wants: Iterable[str] = (),
    params: Iterable[str] = (),
    scope: Scope = Scope.RANK,
) -> Callable[[Callable[[Facts, Params], Observations]], Advisor]:
    """Declare the decorated function as the advisor ``name``; its docstring's first line is its meaning.

    A *rank* advisor gets the facts of one rank. A *job* advisor gets, for each needed fact (which must be shared),
    a mapping of rank to value, for the ranks that have it.
    """

    def declare(measure: Callable[[Facts, Params], Observations]) -> Advisor:
        lines = (measure.__doc__ or "").strip().splitlines()
        return Advisor(
            name,
            lines[0] if lines else "",
            scope,
            tuple(needs),
            tuple(wants),
            tuple(about),
            tuple(columns),
            tuple(params),
            measure,
        )

    return declare
