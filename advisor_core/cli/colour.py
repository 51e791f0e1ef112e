"""Colours of a summary. They only repeat what words say; ``click.echo`` leaves them out where no terminal is."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from advisor_core.result.finding import Severity
    from advisor_core.result.run import RunResult

_COLOURS: dict[Severity, str] = {"high": "red", "medium": "yellow", "low": "cyan"}
_HEADLINE = re.compile(r"^(?P<before>\s*)(?P<number>F\d+[a-z]*) (?P<tag>\[[^\]\n]+\])", re.MULTILINE)
"""The beginning of the line of a problem in the summary of a run."""


def wanted() -> bool | None:
    """False where the user wants no colour (``NO_COLOR`` of no-color.org) or the terminal has none; else ``None``: as
    the stream is a terminal or not."""
    return False if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" else None


def coloured(summary: str, result: RunResult) -> str:
    """The summary with the severity of each problem in its colour."""
    severities = {result.numbers[finding.fingerprint]: finding.severity for finding in result.findings}

    def mark(found: re.Match[str]) -> str:
        severity = severities.get(found["number"])
        tag = click.style(found["tag"], fg=_COLOURS[severity]) if severity else found["tag"]
        return f"{found['before']}{found['number']} {tag}"

    return _HEADLINE.sub(mark, summary)
