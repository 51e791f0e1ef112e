"""A renderer: the titles of the findings, a line each."""

from __future__ import annotations

from advisor_core.api.renderers import RunResult


class Titles:
    """``advisor run PROFILE --format titles`` writes titles.txt."""

    name = "titles"
    filename = "titles.txt"

    def render(self, result: RunResult, lang: str) -> str:
        """A pure function of the result: it opens no file, and gives the same text for the same result."""
        return "".join(f"{finding.rule} {finding.title.of(lang)}\n" for finding in result.findings)
