"""The built-in renderers, as a plugin like any third party's."""

from __future__ import annotations

from advisor_core.api import Registry, Renderer, hookimpl


@hookimpl
def advisor_register_renderers(registry: Registry[Renderer]) -> None:
    """Add ``html``, ``md`` and ``json``."""
    from reports.html import HtmlRenderer
    from reports.json_file import JsonRenderer
    from reports.markdown import MarkdownRenderer

    registry.add(HtmlRenderer(), MarkdownRenderer(), JsonRenderer())
