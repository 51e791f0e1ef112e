"""One line for each problem: for grep and cut, as annotations of GitHub actions, and for GitLab's code quality."""

from __future__ import annotations

import json

from advisor_core.api.renderers import RunResult, Severity
from reports.labels import Labels, one_line
from reports.machine.told import advice, place, title, told

_ANNOTATED: dict[Severity, str] = {"high": "error", "medium": "warning", "low": "notice"}
_QUALITY: dict[Severity, str] = {"high": "critical", "medium": "major", "low": "minor"}


class LinesRenderer:
    """``findings.txt``: number, severity, rule, name, ranks, ns and share of the step, basis, title; between them
    tabs. Times are ns, shares are ratios, so that other programs can compute with them."""

    def render(self, result: RunResult, lang: str) -> str:
        t = Labels.of_result(result, lang)
        lines = []
        for item in told(result):
            finding, impact = item.finding, item.finding.impact
            ranks = ",".join(map(str, finding.ranks))
            cells = [item.number, finding.severity, finding.rule, finding.name, ranks, str(impact.ns_per_step)]
            cells += [f"{impact.share_of_step:.6f}", impact.basis, title(finding, t)]
            lines.append("\t".join(map(one_line, cells)))
        return "".join(f"{line}\n" for line in lines)


class GithubRenderer:
    """``github.txt``: workflow commands; printed to the log of a job they become annotations of it.

    Source: GitHub, "Workflow commands for GitHub Actions" (``::warning title={title}::{message}``; what to escape).
    """

    def render(self, result: RunResult, lang: str) -> str:
        t = Labels.of_result(result, lang)
        return "".join(
            f"::{_ANNOTATED[item.finding.severity]} title={_property(f'{item.number} {title(item.finding, t)}')}::"
            f"{_data(advice(item.finding, t))}\n"
            for item in told(result)
        )


class GitlabRenderer:
    """``gl-code-quality-report.json``: an artifact that merge requests show.

    Source: GitLab, "Code Quality report format". Its entries need a file and a line; evidence that is no line of a file
    stands at line 1.
    """

    def render(self, result: RunResult, lang: str) -> str:
        t = Labels.of_result(result, lang)
        entries = []
        for item in told(result):
            finding = item.finding
            source = place(finding)
            path = source.file if source else next((given.path for given in result.inputs), "")
            entries.append(
                {
                    "description": f"{item.number} {title(finding, t)}",
                    "check_name": finding.rule,
                    "fingerprint": finding.fingerprint,
                    "severity": _QUALITY[finding.severity],
                    "location": {"path": path, "lines": {"begin": (source and source.line) or 1}},
                }
            )
        return json.dumps(entries, ensure_ascii=False, indent=1) + "\n"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
