"""Headings of evidence and observations exist in Chinese for everything that the built-in advisors measure and show."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from advisor_core.plugins.host import load_host
from advisor_core.result.run import RunResult
from reports import labels
from reports.labels import Labels
from reports.tables import _PLACES, heading


def untranslated(name: str, unit: str | None) -> bool:
    shown = heading(name, unit, Labels("zh"))
    known = set(labels.columns().values()) | {labels.catalogue()[f"evidence.{place}"]["zh"] for place in _PLACES}
    return shown not in known and f"evidence.{name}" not in labels.catalogue()


def test_every_measured_column_has_a_chinese_heading() -> None:
    advisors = [advisor for advisor in load_host().advisors.values() if not advisor.name.startswith("hello")]
    columns = [column for advisor in advisors for column in advisor.declared().values()]
    assert len(columns) > 200
    assert sorted({column.name for column in columns if untranslated(column.name, column.unit)}) == []


@pytest.fixture(scope="module")
def sample_result(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    from advisor_core.run.pipeline import run
    from advisor_core.run.rank import RunOptions
    from advisor_core.sample import write_sample

    directory = tmp_path_factory.mktemp("sample")
    write_sample(directory)
    return run([Path(directory)], RunOptions())


def test_every_column_of_the_evidence_has_a_chinese_heading(sample_result: RunResult) -> None:
    missing = {
        name
        for finding in sample_result.findings
        for item in finding.evidence
        for row in item.rows
        for name in row
        if untranslated(name, item.units.get(name))
    }
    assert missing == set()


def test_a_foreign_column_keeps_its_name() -> None:
    assert heading("my_own_ns", "ns", Labels("zh")) == "my own"


def test_the_file_is_in_order_without_repetition() -> None:
    text = (Path(labels.__file__).parent / "columns.yaml").read_text(encoding="utf-8")
    names = list(yaml.safe_load(text))
    assert names == sorted(set(names))
    assert len(names) == sum(not line.startswith("#") for line in text.splitlines())
