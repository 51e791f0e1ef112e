"""``advisor plugins``: what was found, and what went wrong with it."""

from __future__ import annotations

import click

from advisor_core.cli.console import say


@click.command()
@click.option("--json", "as_json", is_flag=True, help="For programs.")
def plugins(as_json: bool) -> None:
    """Plugins that were found: name, version, hooks, and what went wrong with each that did not load."""
    import dataclasses
    import json

    from advisor_core.plugins.host import load_host

    found = load_host().plugins
    if as_json:
        say(json.dumps([dataclasses.asdict(plugin) for plugin in found], indent=2))
        return
    for plugin in found:
        state = plugin.problem or ", ".join(hook.removeprefix("advisor_register_") for hook in plugin.hooks)
        mark = "FAILED" if plugin.problem else "ok"
        say(f"{plugin.name:20} {plugin.distribution} {plugin.version:10} {mark:7} {state}")
