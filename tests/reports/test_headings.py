"""Headings: every column that a report can show has one in English and in Chinese, where the column is declared."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor_core.contracts.columns import Column
from advisor_core.contracts.labels import HEADING
from advisor_core.contracts.tables import SCHEMAS
from advisor_core.plugins.host import load_host
from advisor_core.result.run import RunResult
from advisor_core.run.compose_headings import compose_headings, declared_headings
from advisor_core.text.base import Text
from advisor_core.text.headings import heading_key
from reports.labels import Labels
from reports.tables import heading
from tests.once import ResultOf


def declared() -> list[Column]:
    """The columns that built-in advisors observe or show in their evidence, and those of the canonical tables."""
    advisors = [advisor for advisor in load_host().advisors.values() if not advisor.name.startswith("hello")]
    measured = [column for advisor in advisors for column in advisor.shown().values()]
    return [*measured, *(column for schema in SCHEMAS.values() for column in schema.columns)]


def test_every_declared_column_has_both_headings() -> None:
    assert len(declared()) > 400
    assert [column.name for column in declared() if not column.zh or not column.heading.en] == []


def test_a_name_has_one_heading() -> None:
    headings: dict[str, set[str]] = {}
    for column in declared():
        headings.setdefault(column.key, set()).add(column.zh)
    assert {key: found for key, found in headings.items() if len(found) > 1} == {}


@pytest.fixture(scope="module")
def sample_result(result_of: ResultOf, advisor_sample: Path) -> RunResult:

    return result_of(advisor_sample)


def test_what_a_report_shows_has_both_headings(sample_result: RunResult) -> None:
    labels = Labels("zh", sample_result.labels)
    shown = {
        (name, item.units.get(name))
        for finding in sample_result.findings
        for item in finding.evidence
        for row in item.rows
        for name in row
    } | {(name, finding.units.get(name)) for finding in sample_result.findings for name in finding.observation}
    assert len(shown) > 100
    known = {name for name, unit in shown if f"{HEADING}{heading_key(name, unit)}" in labels}
    assert {name for name, _ in shown} - known == {"offset"}, "which has the label of a place"


def test_a_result_has_the_headings_of_what_it_shows_and_no_others(sample_result: RunResult) -> None:
    headings = {key for key in sample_result.labels if key.startswith(HEADING)}
    assert headings < set(declared_headings(load_host())) | set(load_host().texts())
    assert "heading.idle" in headings and "heading.rows_ratio" not in headings, "the sample has no experts"
    nothing = sample_result.model_copy(update={"findings": [], "ledger": [], "labels": {}})
    assert len(compose_headings(load_host(), nothing)) < len(headings) / 4


def test_a_column_without_a_chinese_heading_has_the_english_one() -> None:
    assert Column("my_own_ns", "float", "ns", "mine").heading == Text(en="my own", zh="my own")
    assert heading("my_own_ns", "ns", Labels("zh")) == "my own"
    assert heading("my_own_ns", "ns", Labels("zh", {"heading.my_own": Text(en="my own", zh="我的")})) == "我的"
