"""``report.sarif``: the findings as SARIF 2.1.0, which code scanning of GitHub, GitLab and IDEs read.

Source: OASIS, Static Analysis Results Interchange Format 2.1.0. A row of a database has no line in SARIF: it stands in
the properties of the location.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from advisor_core.api.renderers import Finding, RunResult, Severity, Source
from reports.labels import Labels
from reports.machine.told import paragraphs, place, sentence, told
from reports.problems import Item

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVELS: dict[Severity, str] = {"high": "error", "medium": "warning", "low": "note"}
_NOTIFIED = {"error": "error", "warning": "warning", "info": "note"}

Json = dict[str, Any]


class SarifRenderer:
    """Writes one run with a result for each problem, and diagnostics as notifications of the tool."""

    def render(self, result: RunResult, lang: str) -> str:
        t = Labels.of_result(result, lang)
        items = list(told(result))
        rules = list(dict.fromkeys((item.finding.rule, item.finding.name) for item in items))
        driver: Json = {
            "name": result.tool.name,
            "version": result.tool.version,
            "rules": [{"id": rule, "name": name} for rule, name in rules],
        }
        run: Json = {
            "tool": {"driver": driver},
            "results": [_result(item, rules, result, t) for item in items],
            "invocations": [
                {
                    "executionSuccessful": not any(rule.state == "error" for rule in result.rules),
                    "toolExecutionNotifications": [
                        {
                            "level": _NOTIFIED[diagnostic.severity],
                            "message": {"text": f"{diagnostic.source}: {sentence(t.of(diagnostic.message))}"},
                        }
                        for diagnostic in result.diagnostics
                    ],
                }
            ],
        }
        log = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
        return json.dumps(log, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def _result(item: Item, rules: Sequence[tuple[str, str]], result: RunResult, t: Labels) -> Json:
    finding = item.finding
    return {
        "ruleId": finding.rule,
        "ruleIndex": rules.index((finding.rule, finding.name)),
        "level": _LEVELS[finding.severity],
        "message": {"text": f"{item.number} " + "\n".join(paragraphs(finding, t))},
        "locations": [_location(finding, result)],
        "partialFingerprints": {"npuAdvisor/v1": finding.fingerprint},
        "properties": {
            "problem": item.number,
            "ranks": finding.ranks,
            "nsPerStep": finding.impact.ns_per_step,
            "shareOfStep": finding.impact.share_of_step,
            "basis": finding.impact.basis,
        },
    }


def _location(finding: Finding, result: RunResult) -> Json:
    source = place(finding)
    if source is None:
        return {"physicalLocation": {"artifactLocation": {"uri": _uri(result.inputs[0].path if result.inputs else "")}}}
    location: Json = {"physicalLocation": {"artifactLocation": {"uri": _uri(source.file)}, **_region(source)}}
    if source.rowid is not None:
        location["properties"] = {"table": source.table, "rowid": source.rowid}
    return location


def _region(source: Source) -> Json:
    if source.line is not None:
        return {"region": {"startLine": source.line}}
    if source.offset is not None:
        return {"region": {"byteOffset": source.offset}}
    return {}


def _uri(path: str) -> str:
    return quote(path.replace("\\", "/")) or "."
