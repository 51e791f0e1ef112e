"""``advisor run``: analyse a profile and write a report."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from advisor_core.cli.colour import coloured
from advisor_core.cli.console import EXIT_INPUT, EXIT_INTERNAL, EXIT_USAGE, epilog, say, stop, tell, tell_rank
from advisor_core.cli.engine import engine_call
from advisor_core.cli.gates import Gates
from advisor_core.cli.options import (
    assignment,
    cache_option,
    cluster_of,
    deep_option,
    deep_ranks,
    jobs_option,
    language_option,
    quiet_option,
    ruleset_option,
    scheduler_option,
    split,
)
from advisor_core.cli.outcome import crashed, remarks
from advisor_core.cli.places import PLACE, on_disk, reached
from advisor_core.cli.progress import begin
from advisor_core.cli.report_files import (
    chosen_renderers,
    earlier_reports,
    folder_for,
    render_all,
    require_page,
    show,
    summary,
    write_all,
)
from advisor_core.cli.settings import cache_bytes, place_of, rule_options, settings_options
from advisor_core.cli.slices import write_slices
from advisor_core.cli.timings import timing_lines

if TYPE_CHECKING:
    from advisor_core.remote.url import Url
    from advisor_core.result.run import RunResult
    from advisor_core.text.base import Scalar

DEFAULT_OUTPUT = Path("advisor-report")
PAGE = "report.html"
"""The page that ``--open`` shows."""


@click.command(epilog=epilog())
@click.argument("places", nargs=-1, required=True, type=PLACE, metavar="PATH...")
@click.option(
    "-o",
    "--output",
    type=click.Path(allow_dash=True),
    help=f"Folder for the report [{DEFAULT_OUTPUT}]; - writes one --format to stdout, and the summary to stderr.",
)
@click.option(
    "--format",
    "formats",
    multiple=True,
    callback=split,
    metavar="NAME,...",
    help="What to write: html, md, json [these three]; timeline, a page to look into; trace, for Perfetto and "
    "MindStudio Insight, with a slice of the recording for each problem; folded, stacks for speedscope and "
    "flamegraph.pl; for programs sarif, junit, github, gitlab, "
    "lines; for a ticket there jira.",
)
@language_option("report and summary")
@ruleset_option
@click.option(
    "--select",
    multiple=True,
    callback=split,
    metavar="ID,...",
    help="Judge only these rules (ids, names or prefixes).",
)
@click.option("--ignore", multiple=True, callback=split, metavar="ID,...", help="Leave these rules out.")
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="ID.param=VALUE",
    help="Change a threshold, in the unit of the rule or with a unit: HD001.idle_share=30%.",
)
@click.option("--rank", type=int, help="Read only this rank.")
@deep_option
@click.option(
    "--role",
    "roles",
    multiple=True,
    metavar="NAME",
    help="Read only this role of a reinforcement learning job: a directory below PATH, such as actor_update; may be "
    "repeated.",
)
@click.option(
    "--phase-mark",
    "phase_marks",
    multiple=True,
    metavar="TEXT=PHASE",
    help="Marks in the trace whose names have TEXT in them are the phase PHASE of an iteration, such as "
    "my_generate=rollout; may be repeated.",
)
@click.option("--step", type=int, help="Look only at this step, by the id that the profile gives it.")
@jobs_option
@scheduler_option
@click.option(
    "--fail-on",
    "conditions",
    multiple=True,
    metavar="CONDITION",
    help="Exit with 1 where it holds: a severity (high: a finding of it or above), 'new high', 'idle > 15 %', "
    "'step_time > 200 ms', 'step_time > baseline + 3 %', 'cannot_answer HD*'; may be repeated.",
)
@click.option(
    "--baseline",
    "baseline_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="What `advisor baseline write` wrote: findings in it are not new, and its step is the baseline.",
)
@click.option(
    "--redact",
    is_flag=True,
    help="Leave out home directories, names of users and hosts, and private addresses, before a report goes to others.",
)
@click.option(
    "--redact-word",
    "redact_words",
    multiple=True,
    metavar="WORD",
    help="With --redact, leave this word out as well, such as the name of a project; may be repeated.",
)
@settings_options(
    lang="lang",
    formats="format",
    output="output",
    conditions="fail_on",
    baseline_file="baseline",
    deep="deep",
    phase_marks="phase_marks",
    redact="redact",
    redact_words="redact_words",
)
@cache_option
@click.option("--timings", is_flag=True, help="Print how long each phase, fact and advisor took.")
@click.option("--open", "open_report", is_flag=True, help="Show report.html with the program of the system for it.")
@quiet_option("no summary")
@click.option("-v", "--verbose", is_flag=True, help="Print notes on the input as well, and how long each phase took.")
def run(
    places: tuple[Path | Url, ...],
    output: str | None,
    formats: tuple[str, ...],
    lang: str,
    rulesets: tuple[Path, ...],
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    settings: tuple[str, ...],
    rank: int | None,
    deep: str | None,
    roles: tuple[str, ...],
    phase_marks: tuple[str, ...],
    step: int | None,
    jobs: int | None,
    scheduler: str | None,
    conditions: tuple[str, ...],
    baseline_file: Path | None,
    redact: bool,
    redact_words: tuple[str, ...],
    no_cache: bool,
    timings: bool,
    open_report: bool,
    quiet: bool,
    verbose: bool,
) -> None:
    """Analyse the profile at PATH and write a report.

    PATH is a *_ascend_pt or *_ascend_ms directory, its ASCEND_PROFILER_OUTPUT, a PROF_* directory of msprof, a
    directory above several of them (a job with several ranks), or a single file of a known kind; or a URL of one of
    these, such as s3://bucket/job, of a kind that fsspec knows. Where every role of a
    reinforcement learning job has a directory of its own below PATH, they are the roles of one report; --role chooses
    some of them. The report goes to ./advisor-report unless -o says otherwise; the input is never written to.
    """
    from advisor_core.run.kept_results import kept_or_run
    from advisor_core.run.nothing_judged import nothing_judged
    from advisor_core.run.prepared import own_problems
    from advisor_core.run.request import Request

    if quiet and verbose:
        stop(EXIT_USAGE, "--quiet and --verbose exclude each other")
    if redact_words and not redact and not place_of("redact_words", "redact_words"):
        stop(EXIT_USAGE, "--redact-word goes with --redact")
    target = folder_for(output, DEFAULT_OUTPUT, formats, on_disk(places))
    if open_report:
        require_page(PAGE, formats, target)
    gates = _gates(conditions, baseline_file)
    renderers = chosen_renderers(formats, place_of("formats", "format") or "--format")
    options = rule_options(
        rulesets,
        select,
        ignore,
        tuple(_override(setting) for setting in settings),
        step=step,
        phase_marks=tuple(assignment("--phase-mark", "TEXT=PHASE", mark) for mark in phase_marks),
        timings=timings,
        cache_bytes=cache_bytes(no_cache),
        timeline=any(getattr(renderer, "timeline", False) for renderer in renderers),
    )
    progress = begin(quiet, lang, tell_rank if redact else tell)
    paths = reached(places, options.cache_bytes, progress)
    request = Request(paths, options, rank, roles, deep_ranks(deep))
    is_kept = True
    with engine_call(), cluster_of(scheduler, jobs, progress) as cluster:

        def measured() -> RunResult:
            from advisor_core.run.pipeline import analysed
            from advisor_core.run.work import Work

            nonlocal is_kept
            is_kept = False
            with progress.of(Work()) as work:
                return analysed(request, jobs=jobs, elsewhere=cluster, progress=progress, work=work)[0]

        result = kept_or_run(request, measured)
    if unusable := nothing_judged(result):
        stop(EXIT_INPUT, unusable)
    if result.timeline is not None:
        files = {renderer.name: renderer.filename for renderer in renderers}
        result = result.model_copy(update={"timeline": result.timeline.model_copy(update={"files": files})})
    if redact:
        result = _redacted(result, redact_words)
    writing = time.perf_counter()
    rendered, failed = render_all(result, renderers, lang)
    writing = time.perf_counter() - writing
    written = write_all(rendered, target)
    if target is not None and any(getattr(renderer, "slices", False) for renderer in renderers):
        if redact:
            tell("warning: no slices of the recording are written: they would hold what --redact leaves out")
        else:
            written += write_slices(result, paths, target, lang, progress, rank=rank, roles=roles)
    for line in remarks(result, lang, at_least="error" if quiet else "info" if verbose else "warning"):
        tell(line)
    if not quiet:
        for left in earlier_reports(target, written):
            tell(f"warning: {left} is of an earlier run and was not written anew")
        say(coloured(summary(result, lang, written), result), err=target is None)
    if open_report:
        show(PAGE, written)
    if verbose:
        if is_kept:
            tell("the same was asked of the same files before: nothing was read or judged (--no-cache asks anew)")
        for name, seconds in result.timings.items():
            if name.endswith("_s"):
                tell(f"{name.removesuffix('_s')}: {seconds:.3f} s")
    if timings:
        for line in timing_lines(result.timings, writing):
            tell(line)
    if failed:
        stop(EXIT_INTERNAL, "\n".join(failed))
    if problems := own_problems(options):
        stop(EXIT_USAGE, "\n".join(map(str, problems)))
    crashes = crashed(result, lang)
    for line in crashes:
        tell(f"error: {line}")
    if conditions and crashes:
        stop(EXIT_INTERNAL, "a rule or plugin crashed, so that there is no verdict (--debug prints the traceback)")
    gates.judge(result)


def _redacted(result: RunResult, words: tuple[str, ...]) -> RunResult:
    from advisor_core.result.redact import RedactError, redact

    try:
        return redact(result, words)
    except RedactError as error:
        stop(EXIT_USAGE, f"--redact-word: {error}")


def _gates(conditions: tuple[str, ...], baseline_file: Path | None) -> Gates:
    baseline_by = place_of("baseline_file", "baseline")
    if baseline_by and not conditions:  # the settings have one for runs with conditions
        return Gates((), None)
    return Gates(
        conditions, baseline_file, place_of("conditions", "fail_on") or "--fail-on", baseline_by or "--baseline"
    )


def _override(setting: str) -> tuple[str, Scalar]:
    name, separator, text = setting.partition("=")
    if not separator or "." not in name:
        stop(EXIT_USAGE, f"--set takes ID.param=VALUE, not {setting!r}")
    return name.strip(), text.strip()
