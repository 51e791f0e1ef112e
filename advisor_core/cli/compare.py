"""``advisor compare``: two runs of the same work, or several, and what became of their steps."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from advisor_core.cli.console import EXIT_INPUT, EXIT_INTERNAL, epilog, say, stop
from advisor_core.cli.engine import engine_call
from advisor_core.cli.options import (
    cache_option,
    deep_option,
    deep_ranks,
    jobs_option,
    language_option,
    quiet_option,
    ruleset_option,
    split,
)
from advisor_core.cli.places import PLACE, as_paths, content, on_disk, reached
from advisor_core.cli.progress import Progress, begin
from advisor_core.cli.report_files import (
    comparison_renderers,
    comparison_summary,
    folder_for,
    render_comparison,
    require_page,
    show,
    write_all,
)
from advisor_core.cli.result_file import read_result
from advisor_core.cli.settings import cache_bytes, rule_options, settings_options

if TYPE_CHECKING:
    from advisor_core.gates.baseline import Baseline
    from advisor_core.remote.url import Url
    from advisor_core.result.run import RunResult
    from advisor_core.run.deep_ranks import DeepRanks
    from advisor_core.run.prepared import RunOptions

DEFAULT_OUTPUT = Path("advisor-compare")
PAGE = "compare.html"
"""The page that ``--open`` shows."""


@click.command(epilog=epilog())
@click.argument("before", type=PLACE, metavar="BEFORE")
@click.argument("after", nargs=-1, required=True, type=PLACE, metavar="AFTER...")
@click.option("-o", "--output", help=f"Folder for compare.html, compare.md and compare.json [{DEFAULT_OUTPUT}].")
@click.option(
    "--format",
    "formats",
    multiple=True,
    callback=split,
    metavar="NAME,...",
    help="What to write: html, md, json [all].",
)
@deep_option
@jobs_option
@language_option("report and summary")
@ruleset_option
@cache_option
@settings_options(lang="lang", deep="deep")
@click.option("--open", "open_report", is_flag=True, help="Show compare.html with the program of the system for it.")
@quiet_option("no summary")
def compare(
    before: Path | Url,
    after: tuple[Path | Url, ...],
    output: str | None,
    formats: tuple[str, ...],
    deep: str | None,
    jobs: int | None,
    lang: str,
    rulesets: tuple[Path, ...],
    no_cache: bool,
    open_report: bool,
    quiet: bool,
) -> None:
    """Say whether the steps of AFTER take longer than those of BEFORE, and why.

    Each is a profile, as for `advisor run`, or the report.json of a run; BEFORE may be what `advisor baseline write`
    wrote, which holds enough for the verdict, the ledger and the findings. With several AFTER each is compared with
    BEFORE. Of a GPU and an NPU it says where their difference comes from instead. The comparison goes to
    ./advisor-compare unless -o says otherwise; -o - writes one format to stdout.
    """
    from advisor_core.compare.compare import CompareError, compare_all
    from advisor_core.compare.names import short_names

    places = (before, *after)
    target = folder_for(output, DEFAULT_OUTPUT, formats, on_disk(places))
    if open_report:
        require_page(PAGE, formats, target)
    renderers = comparison_renderers(formats)
    options = rule_options(rulesets, cache_bytes=cache_bytes(no_cache))
    progress = begin(quiet, lang)
    paths = reached(places, options.cache_bytes, progress)
    accepted = _baseline(paths[0])
    chosen = deep_ranks(deep)
    results = [_result(path, options, chosen, jobs, progress) for path in (paths if accepted is None else paths[1:])]
    try:
        compared = compare_all(short_names(as_paths(places)), results, accepted)
    except CompareError as error:
        stop(EXIT_INPUT, str(error))
    rendered, failed = render_comparison(compared, renderers, lang)
    written = write_all(rendered, target)
    if not quiet:
        say(comparison_summary(compared, lang, written), err=target is None)
    if open_report:
        show(PAGE, written)
    if failed:
        stop(EXIT_INTERNAL, "\n".join(failed))


def _baseline(path: Path) -> Baseline | None:
    """A baseline read back; ``None`` for any other file."""
    from advisor_core.gates.baseline import BaselineError, is_baseline, read_baseline
    from advisor_core.remote.shown import with_urls

    file = content(path)
    try:
        return read_baseline(file) if is_baseline(file) else None
    except BaselineError as error:
        stop(EXIT_INPUT, with_urls(str(error).replace(str(file), str(path))))


def _result(path: Path, options: RunOptions, deep: DeepRanks, jobs: int | None, progress: Progress) -> RunResult:
    """A report.json read back, or the result of a run."""
    from advisor_core.gates.baseline import is_baseline
    from advisor_core.remote.shown import with_urls
    from advisor_core.result.result_file import is_result
    from advisor_core.run.kept_results import kept_or_run
    from advisor_core.run.nothing_judged import nothing_judged
    from advisor_core.run.pipeline import analysed
    from advisor_core.run.request import Request
    from advisor_core.run.work import Work

    request = Request((path,), options, deep=deep)

    def measured() -> RunResult:
        with progress.of(Work()) as work:
            return analysed(request, jobs=jobs, progress=progress, work=work)[0]

    file = content(path)
    if is_result(file):
        return read_result(path)
    if is_baseline(file):
        stop(
            EXIT_INPUT,
            f"{with_urls(str(path))} is no profile; a baseline stands first, and what is compared with it behind",
        )
    with engine_call():
        result = kept_or_run(request, measured)
    if unusable := nothing_judged(result):
        stop(EXIT_INPUT, unusable)
    return result
