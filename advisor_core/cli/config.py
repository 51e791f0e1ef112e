"""``advisor config``: the settings that hold, and where each comes from."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from advisor_core.cli.console import epilog, printable, say
from advisor_core.cli.settings import current_settings, settings_options

if TYPE_CHECKING:
    from advisor_core.configuration.settings import Place, Settings

WIDTH = 60
"""Characters of the column of values: a longer value moves what stands behind it."""


@click.group(epilog=epilog())
def config() -> None:
    """Look at the settings that advisor.toml or pyproject.toml give."""


@config.command(epilog=epilog())
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="json: for programs.",
)
@settings_options()
def show(form: str) -> None:
    """Print each setting that holds in the working directory, and the file and line that give it.

    An option of the command line is stronger than a setting; a setting is stronger than the default.
    """
    settings = current_settings()
    if form == "json":
        entries = [
            {
                "key": key,
                "value": value,
                "file": str(place.file) if place else None,
                "line": place.line if place else None,
            }
            for key, value, place in _entries(settings)
        ]
        shown = {"files": [str(file) for file in settings.files], "settings": entries}
        say(json.dumps(shown, indent=2, ensure_ascii=False))
        return
    for file in settings.files:
        say(printable(f"settings file: {file}"))
    if not settings.files:
        say("no settings file")
    rows = [(key, json.dumps(value, ensure_ascii=False), place) for key, value, place in _entries(settings)]
    keys = max(len(key) for key, _, _ in rows)
    values = min(WIDTH, max(len(text) for _, text, _ in rows))
    for key, text, place in rows:
        say(printable(f"{key:{keys}}  {text:{values}}  {place or 'default'}"))


def _entries(settings: Settings) -> Iterator[tuple[str, Any, Place | None]]:
    """Key, value and place of each setting; of thresholds, and of rules with reasons, each by itself."""
    from advisor_core.configuration.model import Configuration

    for key in Configuration.model_fields:
        value = getattr(settings.values, key)
        if key == "set" and value:
            for name, (path, threshold) in settings.values.thresholds().items():
                yield f"set {name}", threshold, settings.places[path]
        elif key in ("select", "ignore", "phase_marks") and isinstance(value, dict) and value:
            for name, said in value.items():
                yield f"{key} {name}", said, settings.places[key, name]
        else:
            yield key, value, settings.given(key)
