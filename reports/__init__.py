"""The built-in renderers, as a plugin like any third party's."""

from __future__ import annotations

from advisor_core.api import Registry, Renderer, hookimpl


@hookimpl
def advisor_register_renderers(registry: Registry[Renderer]) -> None:
    """Add ``html``, ``md`` and ``json``, what programs read: ``sarif``, ``junit``, ``github``, ``gitlab``, ``lines``;
    ``trace`` for viewers of traces, ``timeline`` as a page, ``folded`` for viewers of stacks, and ``jira`` for a
    ticket there."""
    from reports.json_file import JsonRenderer
    from reports.on_demand import Folded, Github, Gitlab, Html, Jira, Junit, Lines, Markdown, Sarif, Timeline, Trace

    registry.add(Html(), Markdown(), JsonRenderer())
    registry.add(Sarif(), Junit(), Github(), Gitlab(), Lines())
    registry.add(Trace(), Timeline(), Folded(), Jira())
