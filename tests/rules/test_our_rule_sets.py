"""What holds for every rule that comes with the tool."""

from __future__ import annotations

from advisor_core.rules.files.check import check_rules
from advisor_core.rules.files.ruleset import load_rules
from advisor_core.rules.files.run_cases import read_cases
from advisor_core.testing.rule_cases import check_cases
from tests.advisors.build import ROOT, host

RULES = ROOT / "rulesets" / "ascend"


def test_no_reviewer_has_anything_to_say_about_our_rules() -> None:
    """Chinese for every text, no number typed into a condition, a reason where severity looks at something else."""
    assert check_rules([RULES], host().advisors, names=host().name_book(), own=True) == []


def test_a_rule_stands_where_its_id_and_its_advisor_say() -> None:
    """One rule in a file, and its Chinese under the same name."""
    found = {path.relative_to(RULES) for path in RULES.rglob("*.yaml")}
    for rule in load_rules([RULES], host().advisors):
        place = rule.rule.advisor.split(".")[0].removesuffix("_job")
        assert {path for path in found if path.stem == rule.id and path.parts[0] != "cases"} == {
            (RULES / place / f"{rule.id}.yaml").relative_to(RULES),
            (RULES / "zh" / place / f"{rule.id}.yaml").relative_to(RULES),
        }


def test_the_cases_of_our_rules_hold() -> None:
    report = check_cases(RULES, host())
    assert [str(problem) for problem in report.problems] == []
    assert report.without == ()
    assert report.rules == len(load_rules([RULES], host().advisors))


def test_every_rule_has_a_case_at_fault() -> None:
    states = {file.cases.cases: {case.expect.state for case in file.cases.examples} for file in read_cases(RULES)}
    assert {rule for rule, seen in states.items() if "fail" not in seen} == set()
