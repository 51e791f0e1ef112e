"""The renderers, each imported when it is first asked for a report: a command without one, and a further process that
reads ranks, have no use for templates, Markdown, charts and XML."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from advisor_core.api.renderers import ComparisonResult, RunResult


class Html:
    """Of `reports.html`."""

    name = "html"
    filename = "report.html"

    def render(self, result: RunResult, lang: str) -> str:
        from reports.html import HtmlRenderer

        return HtmlRenderer().render(result, lang)

    def render_comparison(self, result: ComparisonResult, lang: str) -> str:
        from reports.html import HtmlRenderer

        return HtmlRenderer().render_comparison(result, lang)


class Markdown:
    """Of `reports.markdown`."""

    name = "md"
    filename = "report.md"

    def render(self, result: RunResult, lang: str) -> str:
        from reports.markdown import MarkdownRenderer

        return MarkdownRenderer().render(result, lang)

    def render_comparison(self, result: ComparisonResult, lang: str) -> str:
        from reports.markdown import MarkdownRenderer

        return MarkdownRenderer().render_comparison(result, lang)

    def summary(self, result: RunResult, lang: str, written: Sequence[Path]) -> str:
        """The lines on a terminal."""
        from reports.markdown import MarkdownRenderer

        return MarkdownRenderer().summary(result, lang, written)

    def comparison_summary(self, result: ComparisonResult, lang: str, written: Sequence[Path]) -> str:
        """The lines on a terminal, of a comparison."""
        from reports.markdown import MarkdownRenderer

        return MarkdownRenderer().comparison_summary(result, lang, written)


class Jira:
    """Of `reports.jira`."""

    name = "jira"
    filename = "jira.txt"
    on_request = True

    def render(self, result: RunResult, lang: str) -> str:
        from reports.jira import JiraRenderer

        return JiraRenderer().render(result, lang)


class Trace:
    """Of `reports.timeline.trace`."""

    name = "trace"
    filename = "report.trace.json"
    on_request = True
    timeline = True
    slices = True

    def render(self, result: RunResult, lang: str) -> str:
        from reports.timeline.trace import TraceRenderer

        return TraceRenderer().render(result, lang)


class Timeline:
    """Of `reports.timeline.page`."""

    name = "timeline"
    filename = "timeline.html"
    on_request = True
    timeline = True

    def render(self, result: RunResult, lang: str) -> str:
        from reports.timeline.page import TimelineRenderer

        return TimelineRenderer().render(result, lang)


class Sarif:
    """Of `reports.machine.sarif`."""

    name = "sarif"
    filename = "report.sarif"
    on_request = True

    def render(self, result: RunResult, lang: str) -> str:
        from reports.machine.sarif import SarifRenderer

        return SarifRenderer().render(result, lang)


class Junit:
    """Of `reports.machine.junit`."""

    name = "junit"
    filename = "report.junit.xml"
    on_request = True

    def render(self, result: RunResult, lang: str) -> str:
        from reports.machine.junit import JunitRenderer

        return JunitRenderer().render(result, lang)


class Github:
    """Of `reports.machine.lines`."""

    name = "github"
    filename = "github.txt"
    on_request = True

    def render(self, result: RunResult, lang: str) -> str:
        from reports.machine.lines import GithubRenderer

        return GithubRenderer().render(result, lang)


class Gitlab:
    """Of `reports.machine.lines`."""

    name = "gitlab"
    filename = "gl-code-quality-report.json"
    on_request = True

    def render(self, result: RunResult, lang: str) -> str:
        from reports.machine.lines import GitlabRenderer

        return GitlabRenderer().render(result, lang)


class Lines:
    """Of `reports.machine.lines`."""

    name = "lines"
    filename = "findings.txt"
    on_request = True

    def render(self, result: RunResult, lang: str) -> str:
        from reports.machine.lines import LinesRenderer

        return LinesRenderer().render(result, lang)
