"""Columns that only tables of evidence show are declared by the advisor that shows them, once, and checked.

Every test of a rule that finds something goes through `Advisor.evidence_of` (`tests.advisors.build.outcome`).
"""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
import pytest

from advisor_core.contracts.advisor import Advisor, Interval, Metric, Observations, Params, Scope, advisor
from advisor_core.contracts.columns import Column
from advisor_core.contracts.facts import Facts
from advisor_core.plugins.host import load_host
from advisor_core.text.base import Scalar, Text

TITLE = Text(en="pauses", zh="停顿")
GAP = Column("gap", "int", "ns", "between two tasks", zh="空隙")


def showing(row: Mapping[str, Scalar], units: Mapping[str, str] | None = None) -> tuple[Advisor, Observations]:
    """An advisor that observes ``calls``, declares ``gap`` for its evidence, and shows this row."""

    @advisor("a.b", needs=(), columns=(Column("calls", "int", "count", "calls", zh="次数"),), evidence=(GAP,))
    def measure(facts: Facts, params: Params) -> Observations:
        raise NotImplementedError

    lane = Interval(TITLE, 1, 2, "host")
    return measure, Observations(pd.DataFrame({"calls": [1]}), lambda _: [lane, Metric(TITLE, [row], units or {})])


def test_a_table_has_the_units_of_its_declared_columns() -> None:
    measured, observed = showing({"gap": 5, "calls": 2})
    lane, table = measured.evidence_of(observed, 0)
    assert isinstance(lane, Interval) and isinstance(table, Metric)
    assert table.units == {"gap": "ns", "calls": "count"} and table.rows == [{"gap": 5, "calls": 2}]


def test_a_unit_that_only_the_profile_tells_replaces_the_declared_one() -> None:
    measured, observed = showing({"gap": 5}, {"gap": "B"})
    table = measured.evidence_of(observed, 0)[1]
    assert isinstance(table, Metric) and table.units == {"gap": "B"}


@pytest.mark.parametrize("value", [None, float("nan"), 4.0])
def test_a_value_may_be_unknown_or_whole(value: Scalar) -> None:
    measured, observed = showing({"gap": value})
    assert len(measured.evidence_of(observed, 0)) == 2


@pytest.mark.parametrize(
    ("row", "units", "error"),
    [
        ({"gap": 5, "lead": 1}, {}, "a.b shows lead in its evidence, which it does not declare"),
        ({"gap": 5}, {"lead": "ns"}, "a.b shows lead in its evidence, which it does not declare"),
        ({"gap": "5"}, {}, "a.b declares gap as int, but shows '5'"),
        ({"gap": 0.5}, {}, "a.b declares gap as int, but shows 0.5"),
        ({"gap": True}, {}, "a.b declares gap as int, but shows True"),
    ],
)
def test_a_column_that_is_not_what_was_declared_is_an_error(
    row: dict[str, Scalar], units: dict[str, str], error: str
) -> None:
    measured, observed = showing(row, units)
    with pytest.raises(TypeError, match=error):
        measured.evidence_of(observed, 0)


def test_a_column_is_observed_or_only_shown() -> None:
    with pytest.raises(TypeError, match=r"a\.b declares gap both as observed and as only shown in evidence"):
        Advisor("a.b", "", Scope.RANK, (), (), (), (GAP,), (), lambda facts, params: None, (GAP,))  # type: ignore


def test_a_name_in_evidence_has_one_unit() -> None:
    """That it has one heading too is tested with those of all columns, in `tests.reports.test_headings`."""
    units: dict[str, set[str]] = {}
    for measured in load_host().advisors.values():
        for column in measured.evidence:
            units.setdefault(column.name, set()).add(column.unit)
    assert len(units) > 60
    several = {name for name, found in units.items() if len(found - {""}) > 1}
    assert several == set()
