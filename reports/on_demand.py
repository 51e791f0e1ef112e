"""The renderers, each imported when it is first asked for a report: a command without one, and a further process that
reads ranks, have no use for templates, Markdown, charts and XML."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from advisor_core.api.renderers import ComparisonResult, RunResult
    from reports.html import HtmlRenderer
    from reports.markdown import MarkdownRenderer


class _Renders(Protocol):
    def render(self, result: RunResult, lang: str) -> str: ...


class _OnDemand(ABC):
    @abstractmethod
    def _imported(self) -> _Renders:
        """The renderer itself."""

    def render(self, result: RunResult, lang: str) -> str:
        return self._imported().render(result, lang)


class Html(_OnDemand):
    """Of `reports.html`."""

    name = "html"
    filename = "report.html"

    def _imported(self) -> HtmlRenderer:
        from reports.html import HtmlRenderer

        return HtmlRenderer()

    def render_comparison(self, result: ComparisonResult, lang: str) -> str:
        return self._imported().render_comparison(result, lang)


class Markdown(_OnDemand):
    """Of `reports.markdown`."""

    name = "md"
    filename = "report.md"

    def _imported(self) -> MarkdownRenderer:
        from reports.markdown import MarkdownRenderer

        return MarkdownRenderer()

    def render_comparison(self, result: ComparisonResult, lang: str) -> str:
        return self._imported().render_comparison(result, lang)

    def summary(self, result: RunResult, lang: str, written: Sequence[Path]) -> str:
        """The lines on a terminal."""
        return self._imported().summary(result, lang, written)

    def comparison_summary(self, result: ComparisonResult, lang: str, written: Sequence[Path]) -> str:
        """The lines on a terminal, of a comparison."""
        return self._imported().comparison_summary(result, lang, written)


class Jira(_OnDemand):
    """Of `reports.jira`."""

    name = "jira"
    filename = "jira.txt"
    on_request = True

    def _imported(self) -> _Renders:
        from reports.jira import JiraRenderer

        return JiraRenderer()


class Trace(_OnDemand):
    """Of `reports.timeline.trace`."""

    name = "trace"
    filename = "report.trace.json"
    on_request = True
    timeline = True
    slices = True

    def _imported(self) -> _Renders:
        from reports.timeline.trace import TraceRenderer

        return TraceRenderer()


class Timeline(_OnDemand):
    """Of `reports.timeline.page`."""

    name = "timeline"
    filename = "timeline.html"
    on_request = True
    timeline = True

    def _imported(self) -> _Renders:
        from reports.timeline.page import TimelineRenderer

        return TimelineRenderer()


class Folded(_OnDemand):
    """Of `reports.folded`."""

    name = "folded"
    filename = "stacks.folded"
    on_request = True

    def _imported(self) -> _Renders:
        from reports.folded import FoldedRenderer

        return FoldedRenderer()


class Sarif(_OnDemand):
    """Of `reports.machine.sarif`."""

    name = "sarif"
    filename = "report.sarif"
    on_request = True

    def _imported(self) -> _Renders:
        from reports.machine.sarif import SarifRenderer

        return SarifRenderer()


class Junit(_OnDemand):
    """Of `reports.machine.junit`."""

    name = "junit"
    filename = "report.junit.xml"
    on_request = True

    def _imported(self) -> _Renders:
        from reports.machine.junit import JunitRenderer

        return JunitRenderer()


class Github(_OnDemand):
    """Of `reports.machine.lines`."""

    name = "github"
    filename = "github.txt"
    on_request = True

    def _imported(self) -> _Renders:
        from reports.machine.lines import GithubRenderer

        return GithubRenderer()


class Gitlab(_OnDemand):
    """Of `reports.machine.lines`."""

    name = "gitlab"
    filename = "gl-code-quality-report.json"
    on_request = True

    def _imported(self) -> _Renders:
        from reports.machine.lines import GitlabRenderer

        return GitlabRenderer()


class Lines(_OnDemand):
    """Of `reports.machine.lines`."""

    name = "lines"
    filename = "findings.txt"
    on_request = True

    def _imported(self) -> _Renders:
        from reports.machine.lines import LinesRenderer

        return LinesRenderer()
