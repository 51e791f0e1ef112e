"""What is kept is what the tool says today."""

from __future__ import annotations

import json
from typing import Any

import pytest

from advisor_core.plugins.host import load_host
from advisor_core.result.run import SCHEMA_VERSION, RunResult
from advisor_core.rules.files.ruleset import load_rules
from tests.conftest import ROOT
from tests.report_fixtures import stored
from tests.report_fixtures.jobs import JOBS, analysed

ANEW = "run `make report-fixtures`"


def figures(value: Any) -> Any:
    """A part of a result without its wording, which a renderer passes on as it is."""
    if isinstance(value, dict):
        if value.keys() == {"en", "zh"}:
            return None
        return {key: figures(part) for key, part in value.items() if key not in ("labels", "references", "tool")}
    return [figures(part) for part in value] if isinstance(value, list) else value


@pytest.mark.parametrize("name", JOBS)
def test_a_fixture_has_the_schema_of_today(name: str) -> None:
    body = json.loads(stored(name))
    assert body["schema_version"] == SCHEMA_VERSION, ANEW
    assert json.loads(RunResult.model_validate(body).model_dump_json()) == body, ANEW


@pytest.fixture(scope="module")
def names() -> set[tuple[str, str]]:
    """Ids and names of our rules."""
    host = load_host()
    sets = [ROOT / "rulesets" / vendor for vendor in ("ascend", "gpu")]
    return {(rule.id, rule.rule.name) for rule in load_rules(sets, host.advisors, names=host.name_book())}


@pytest.mark.parametrize("name", JOBS)
def test_a_fixture_has_the_rules_of_today(names: set[tuple[str, str]], name: str) -> None:
    kept = {(rule["rule"], rule["name"]) for rule in json.loads(stored(name))["rules"]}
    assert {rule for rule in kept if not rule[0].startswith("HELLO")} == names, ANEW


def test_the_simulator_and_the_rules_still_give_the_same_figures() -> None:
    """Of the job that is simulated fastest, in full: steps, ledger, findings, evidence, states, views."""
    now = json.loads(analysed(JOBS["two_of_four"]).model_dump_json())
    then = json.loads(stored("two_of_four"))
    for part in now:
        assert figures(now[part]) == figures(then[part]), f"{part}: {ANEW}"


def test_the_test_would_notice() -> None:
    finding = {"title": {"en": "slow", "zh": "慢"}, "impact": {"ns_per_step": 5}}
    assert figures(finding) == {"title": None, "impact": {"ns_per_step": 5}}
