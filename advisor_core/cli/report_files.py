"""Writing a report: each format into its file of a folder, or one of them to stdout."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from advisor_core.cli.console import EXIT_USAGE, stop

if TYPE_CHECKING:
    from advisor_core.contracts.registry import Renderer
    from advisor_core.result.run import RunResult


def chosen_renderers(formats: tuple[str, ...]) -> list[Renderer]:
    """The renderers of ``formats``, or all."""
    known = _renderers()
    for name in formats:
        if name not in known:
            stop(EXIT_USAGE, f"--format {name!r} is not known; there are {', '.join(known)}")
    return [known[name] for name in formats or known]


def _renderers() -> Mapping[str, Renderer]:
    from advisor_core.run.rank import installed_host

    return installed_host().renderers


def render_all(result: RunResult, renderers: Sequence[Renderer], lang: str) -> tuple[dict[str, bytes], list[str]]:
    """File names and contents, and what went wrong with the formats that a renderer could not give."""
    from advisor_core.contracts.isolation import quiet

    rendered: dict[str, bytes] = {}
    failed = []
    for renderer in renderers:
        try:
            with quiet():
                rendered[renderer.filename] = str(renderer.render(result, lang)).encode("utf-8")
        except Exception as error:
            failed.append(f"the format {renderer.name} could not be written: {type(error).__name__}: {error}")
    return rendered, failed


def write_all(rendered: Mapping[str, bytes], target: Path | None) -> list[Path]:
    """Write the contents into the folder ``target`` and return the files; without a folder, write them to stdout."""
    if target is None:
        for content in rendered.values():
            click.echo(content, nl=False)
        return []
    try:
        target.mkdir(parents=True, exist_ok=True)
        for name, content in rendered.items():
            _replace(target / name, content)
    except OSError as error:
        stop(EXIT_USAGE, f"cannot write the report to {target}: {error.strerror or error}")
    return [target / name for name in rendered]


def _replace(path: Path, content: bytes) -> None:
    """Write a file whole or not at all, and never through a link into what it points at."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        beside.write_bytes(content)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def earlier_reports(target: Path | None, written: Sequence[Path]) -> list[Path]:
    """Reports of other formats in the folder, which this run did not write."""
    if target is None:
        return []
    files = (target / renderer.filename for renderer in _renderers().values())
    return sorted({file for file in files if file not in written and file.is_file()})


def summary(result: RunResult, lang: str, written: Sequence[Path]) -> str:
    """The summary of the first renderer that has one for a terminal, or just where the report is."""
    for renderer in _renderers().values():
        summarise = getattr(renderer, "summary", None)
        if summarise is not None:
            return str(summarise(result, lang, written))
    return "\n".join(map(str, written))
