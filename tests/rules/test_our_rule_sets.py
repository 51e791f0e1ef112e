"""What holds for every rule that comes with the tool."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor_core.rules.files.check import check_rules
from advisor_core.rules.files.ruleset import load_rules
from advisor_core.rules.files.run_cases import read_cases
from advisor_core.testing.rule_cases import check_cases
from tests.advisors.build import ROOT, host

RULES = ROOT / "rulesets" / "ascend"
SETS = [RULES, ROOT / "rulesets" / "gpu"]
each_set = pytest.mark.parametrize("rules", SETS, ids=lambda folder: folder.name)


@each_set
def test_no_reviewer_has_anything_to_say_about_our_rules(rules: Path) -> None:
    """Chinese for every text, no number typed into a condition, a reason where severity looks at something else."""
    assert check_rules([rules], host().advisors, names=host().name_book(), own=True) == []


@each_set
def test_a_rule_stands_where_its_id_and_its_advisor_say(rules: Path) -> None:
    """One rule in a file, and its Chinese under the same name."""
    found = {path.relative_to(rules) for path in rules.rglob("*.yaml")}
    for rule in load_rules([rules], host().advisors):
        place = rule.rule.advisor.split(".")[0].removesuffix("_job")
        assert {path for path in found if path.stem == rule.id and path.parts[0] != "cases"} == {
            (rules / place / f"{rule.id}.yaml").relative_to(rules),
            (rules / "zh" / place / f"{rule.id}.yaml").relative_to(rules),
        }


def test_sets_are_for_the_profiles_of_their_vendor() -> None:
    sets = host().rulesets
    assert {name: ruleset.vendors for name, ruleset in sets.items()} == {"ascend": ("ascend",), "gpu": ("gpu",)}
    assert {vendor for ruleset in sets.values() for vendor in ruleset.vendors} <= set(host().vocabularies)


@each_set
def test_the_cases_of_our_rules_hold(rules: Path) -> None:
    report = check_cases(rules, host())
    assert [str(problem) for problem in report.problems] == []
    assert report.without == ()
    assert report.rules == len(load_rules([rules], host().advisors))


def test_every_rule_for_gpus_has_a_case_of_each_kind() -> None:
    """At fault, in order, and without an answer."""
    for file in read_cases(SETS[1]):
        seen = {case.expect.state for case in file.cases.examples}
        assert {"fail", "pass", "cannot_answer"} <= seen, file.cases.cases


def test_every_rule_has_a_case_at_fault() -> None:
    states = {file.cases.cases: {case.expect.state for case in file.cases.examples} for file in read_cases(RULES)}
    assert {rule for rule, seen in states.items() if "fail" not in seen} == set()
