"""Writing a report: each format into its file of a folder, or one of them to stdout."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from advisor_core.cli.console import EXIT_USAGE, stop, tell
from advisor_core.cli.interrupt import whole
from advisor_core.text.whole_file import write_whole

if TYPE_CHECKING:
    from advisor_core.contracts.registry import ComparisonRenderer, Renderer
    from advisor_core.result.comparison import ComparisonResult
    from advisor_core.result.run import RunResult

STDOUT = "-"


def chosen_renderers(formats: tuple[str, ...], given_by: str = "--format") -> list[Renderer]:
    """The renderers of ``formats``; where none is named, all that are not written on request only. ``given_by``: the
    option, or the place in a settings file that stands for it."""
    known = _renderers()
    for name in formats:
        if name not in known:
            stop(EXIT_USAGE, f"{given_by} {name!r} is not known; there are {', '.join(known)}")
    if formats:
        return [known[name] for name in formats]
    return [renderer for renderer in known.values() if not getattr(renderer, "on_request", False)]


def comparison_renderers(formats: tuple[str, ...]) -> list[ComparisonRenderer]:
    """The renderers of ``formats`` that write comparisons, or all that do."""
    from advisor_core.contracts.registry import writes_comparisons

    known = [renderer for renderer in chosen_renderers(formats) if formats or writes_comparisons(renderer)]
    able = [renderer for renderer in known if writes_comparisons(renderer)]
    if len(able) < len(known):
        other = next(renderer.name for renderer in known if not writes_comparisons(renderer))
        stop(EXIT_USAGE, f"--format {other!r} is for reports, not for comparisons")
    return able


def _renderers() -> Mapping[str, Renderer]:
    from advisor_core.run.prepared import installed_host

    return installed_host().renderers


def render_all(result: RunResult, renderers: Sequence[Renderer], lang: str) -> tuple[dict[str, bytes], list[str]]:
    """File names and contents, and what went wrong with the formats that a renderer could not give."""
    return _rendered((one.name, one.filename, partial(one.render, result, lang)) for one in renderers)


def render_comparison(
    result: ComparisonResult, renderers: Sequence[ComparisonRenderer], lang: str
) -> tuple[dict[str, bytes], list[str]]:
    """As `render_all`, of a comparison: the files are called ``compare`` with the endings of reports."""
    return _rendered(
        (one.name, f"compare{Path(one.filename).suffix}", partial(one.render_comparison, result, lang))
        for one in renderers
    )


def _rendered(pages: Iterable[tuple[str, str, Callable[[], str]]]) -> tuple[dict[str, bytes], list[str]]:
    """``pages``: name of the format, name of the file, and what writes it."""
    from advisor_core.contracts.isolation import quiet

    rendered: dict[str, bytes] = {}
    failed = []
    for name, filename, write in pages:
        try:
            with quiet():
                rendered[filename] = str(write()).encode("utf-8")
        except Exception as error:
            failed.append(f"the format {name} could not be written: {type(error).__name__}: {error}")
    return rendered, failed


def folder_for(output: str | None, default: Path, formats: tuple[str, ...], paths: tuple[Path, ...]) -> Path | None:
    """The folder that ``-o`` names; ``None`` for stdout, which takes one format. Stops where it is in the input."""
    if output == STDOUT:
        if len(formats) != 1:
            stop(EXIT_USAGE, f"-o {STDOUT} writes one format: choose it with --format")
        return None
    target = Path(output or default)
    _refuse_inside(target, paths)
    return target


def _refuse_inside(target: Path, paths: tuple[Path, ...]) -> None:
    """The report never goes into the input."""
    resolved = os.path.realpath(target)
    for path in paths:
        if Path(resolved).is_relative_to(os.path.realpath(path)):
            stop(
                EXIT_USAGE,
                f"the report would be written into the input: {target} is inside {path}; choose another place with -o",
            )


def write_all(rendered: Mapping[str, bytes], target: Path | None) -> list[Path]:
    """Write the contents into the folder ``target`` and return the files; without a folder, write them to stdout."""
    if target is None:
        for content in rendered.values():
            click.echo(content, nl=False, file=sys.stdout)  # bytes, whatever the encoding of the console
        return []
    try:
        target.mkdir(parents=True, exist_ok=True)
        with whole():
            for name, content in rendered.items():
                write_whole(target / name, content)
    except OSError as error:
        stop(EXIT_USAGE, f"cannot write the report to {target}: {error.strerror or error}")
    return [target / name for name in rendered]


def require_page(page: str, formats: tuple[str, ...], target: Path | None) -> None:
    """Stop where ``--open`` asks for a page that will not be written."""
    if target is None or (formats and "html" not in formats):
        stop(EXIT_USAGE, f"--open shows {page}, which is not written: leave -o - out, and html in --format")


def show(page: str, written: Sequence[Path]) -> None:
    """Open a page with the program that the system has for it, where it could be written; a warning where there is no
    program."""
    for file in written:
        if file.name == page and click.launch(str(file)) != 0:
            tell(f"warning: no program was found that shows {file}")


def earlier_reports(target: Path | None, written: Sequence[Path]) -> list[Path]:
    """Reports of other formats in the folder, which this run did not write."""
    if target is None:
        return []
    files = (target / renderer.filename for renderer in _renderers().values())
    return sorted({file for file in files if file not in written and file.is_file()})


def comparison_summary(result: ComparisonResult, lang: str, written: Sequence[Path]) -> str:
    """As `summary`, of a comparison."""
    return _first_summary("comparison_summary", result, lang, written)


def summary(result: RunResult, lang: str, written: Sequence[Path]) -> str:
    """The summary of the first renderer that has one for a terminal, or just where the report is."""
    return _first_summary("summary", result, lang, written)


def _first_summary(name: str, result: object, lang: str, written: Sequence[Path]) -> str:
    for renderer in _renderers().values():
        summarise = getattr(renderer, name, None)
        if summarise is not None:
            return str(summarise(result, lang, written))
    return "\n".join(map(str, written))
