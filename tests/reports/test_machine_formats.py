"""The formats for programs are read by libraries that others wrote, and say what the result says."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from types import ModuleType

import pytest
from jsonschema import Draft4Validator
from junitparser import JUnitXml, TestSuite
from sarif_pydantic import Sarif

from advisor_core.result.run import RunResult
from reports.machine.junit import JunitRenderer
from reports.machine.lines import GithubRenderer, GitlabRenderer, LinesRenderer
from reports.machine.sarif import SarifRenderer
from reports.outline import Outline

NAMES = ("training", "every_state", "of_roles", "hostile", "many_findings", "nothing_found", "empty")
CASES = pytest.mark.parametrize(("name", "lang"), [(name, lang) for name in NAMES for lang in ("en", "zh")])


def result_of(example: ModuleType, name: str) -> RunResult:
    result = getattr(example, name)()
    assert isinstance(result, RunResult)
    return result


@CASES
def test_sarif_holds_nothing_that_its_model_does_not_know(example: ModuleType, name: str, lang: str) -> None:
    result = result_of(example, name)
    written = json.loads(SarifRenderer().render(result, lang))
    log = Sarif.model_validate(written)
    assert json.loads(log.model_dump_json(by_alias=True, exclude_unset=True)) == written
    (run,) = log.runs
    told = run.results or []
    assert [finding.rule_id for finding in told] == [
        item.finding.rule for root in Outline(result).items for item in root.walk()
    ]
    levels = {"high": "error", "medium": "warning", "low": "note"}
    by_fingerprint = {finding.fingerprint: finding for finding in result.findings}
    for entry in written["runs"][0]["results"]:
        finding = by_fingerprint[entry["partialFingerprints"]["npuAdvisor/v1"]]
        assert entry["level"] == levels[finding.severity]
        assert run.tool.driver.rules[entry["ruleIndex"]].id == finding.rule
        region = entry["locations"][0]["physicalLocation"].get("region", {})
        assert region.get("startLine", 1) >= 1 and region.get("byteOffset", 0) >= 0
        assert not re.search(r"[\s\\]", entry["locations"][0]["physicalLocation"]["artifactLocation"]["uri"])


@pytest.fixture(scope="session")
def sarif_schema() -> Draft4Validator:
    """The schema of OASIS; the test is skipped where it is not at hand."""
    path = os.environ.get("SARIF_SCHEMA")
    if not path:
        pytest.skip("no schema of SARIF: set SARIF_SCHEMA to what .ci/sarif_schema.sh prints")
    schema = json.loads(Path(path).read_text(encoding="utf-8"))
    Draft4Validator.check_schema(schema)
    return Draft4Validator(schema, format_checker=Draft4Validator.FORMAT_CHECKER)


@CASES
def test_sarif_follows_the_schema(example: ModuleType, sarif_schema: Draft4Validator, name: str, lang: str) -> None:
    written = json.loads(SarifRenderer().render(result_of(example, name), lang))
    assert [error.message for error in sarif_schema.iter_errors(written)] == []
    broken = {**written, "runs": [{**written["runs"][0], "results": [{"ruleId": "X"}]}]}
    assert not sarif_schema.is_valid(broken), "a result without a message"


@CASES
def test_junit_counts_every_rule_once(example: ModuleType, name: str, lang: str) -> None:
    result = result_of(example, name)
    suites = list(JUnitXml.fromstring(JunitRenderer().render(result, lang).encode()))
    assert all(isinstance(suite, TestSuite) for suite in suites)
    judged = [outcome for outcome in result.rules if outcome.only_for is None]
    assert sum(suite.tests for suite in suites) == len(judged) == sum(len(list(suite)) for suite in suites)
    for count, states in (
        ("failures", {"fail"}),
        ("errors", {"error"}),
        ("skipped", {"cannot_answer", "not_applicable", "left_out"}),
    ):
        assert sum(getattr(suite, count) for suite in suites) == sum(outcome.state in states for outcome in judged)


@CASES
def test_a_problem_is_one_line(example: ModuleType, name: str, lang: str) -> None:
    result = result_of(example, name)
    lines = LinesRenderer().render(result, lang).splitlines()
    assert [line.split("\t")[0] for line in lines] == [
        item.number for root in Outline(result).items for item in root.walk()
    ]
    assert all(len(line.split("\t")) == 9 and line.replace("\t", "").isprintable() for line in lines)
    annotated = GithubRenderer().render(result, lang).splitlines()
    assert len(annotated) == len(lines)
    for line in annotated:
        assert re.fullmatch(r"::(error|warning|notice) title=[^:,]+::.+", line), line
        assert not re.search(r"%(?!25|0D|0A|3A|2C)", line)


@CASES
def test_gitlab_asks_for_these_fields(example: ModuleType, name: str, lang: str) -> None:
    result = result_of(example, name)
    entries = json.loads(GitlabRenderer().render(result, lang))
    assert len(entries) == len(result.problems)
    for entry in entries:
        assert set(entry) == {"description", "check_name", "fingerprint", "severity", "location"}
        assert entry["severity"] in {"info", "minor", "major", "critical", "blocker"}
        assert entry["location"]["lines"]["begin"] >= 1
    assert len({entry["fingerprint"] for entry in entries}) == len(entries)
