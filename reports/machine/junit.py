"""``report.junit.xml``: every rule as a test case, as pipelines show test results.

The form is that of JUnit's Ant task, which Jenkins, GitLab and GitHub actions read: a rule that found a problem failed,
one without an answer, or that does not apply, was skipped, one that crashed has an error.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from xml.etree import ElementTree

from advisor_core.api.renderers import Finding, RuleOutcome, RunResult
from reports.labels import Labels
from reports.machine.told import paragraphs, sentence, title

_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot hold."""


class JunitRenderer:
    """Writes a suite for each role, or for the whole job; rules for other devices are left out."""

    def render(self, result: RunResult, lang: str) -> str:
        t = Labels.of_result(result, lang)
        findings: dict[tuple[str | None, str], list[Finding]] = defaultdict(list)
        for finding in result.findings:
            findings[finding.role, finding.rule].append(finding)
        by_role: dict[str | None, list[RuleOutcome]] = defaultdict(list)
        for outcome in result.rules:
            if outcome.only_for is None:
                by_role[outcome.role].append(outcome)
        suites = ElementTree.Element("testsuites", name=result.tool.name)
        for role, outcomes in by_role.items():
            suite = ElementTree.SubElement(suites, "testsuite", name=_xml(role or result.tool.name))
            for outcome in outcomes:
                _case(suite, outcome, findings[role, outcome.rule], t)
            cases = list(suite)
            suite.set("tests", str(len(cases)))
            for kind, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
                suite.set(kind, str(sum(case.find(tag) is not None for case in cases)))
        ElementTree.indent(suites, " ")
        return ElementTree.tostring(suites, "unicode", xml_declaration=True) + "\n"


def _case(suite: ElementTree.Element, outcome: RuleOutcome, found: Sequence[Finding], t: Labels) -> None:
    case = ElementTree.SubElement(
        suite, "testcase", classname=_xml(outcome.ruleset or "rules"), name=_xml(f"{outcome.rule} {outcome.name}")
    )
    reason = _xml(sentence(t.of(outcome.reason))) if outcome.reason else t(f"state.{outcome.state}")
    match outcome.state:
        case "pass":
            return
        case "fail":
            message = _xml(title(found[0], t)) if found else reason
            failure = ElementTree.SubElement(case, "failure", type=outcome.severity or "", message=message)
            failure.text = _xml("\n".join(text for finding in found for text in paragraphs(finding, t)))
        case "error":
            ElementTree.SubElement(case, "error", message=reason)
        case _:
            ElementTree.SubElement(case, "skipped", message=reason)


def _xml(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)
