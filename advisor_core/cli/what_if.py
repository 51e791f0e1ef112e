"""``advisor what-if``: what a step would take with changes, by replay of the recorded job."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from advisor_core.cli.console import EXIT_USAGE, epilog, printable, say, stop
from advisor_core.cli.engine import engine_call
from advisor_core.cli.options import (
    assignment,
    cache_option,
    deep_option,
    deep_ranks,
    jobs_option,
    language_option,
    quiet_option,
    ruleset_option,
    split,
)
from advisor_core.cli.places import PLACE, reached
from advisor_core.cli.progress import begin
from advisor_core.cli.settings import cache_bytes, rule_options, settings_options

if TYPE_CHECKING:
    from advisor_core.remote.url import Url
    from advisor_core.result.plan import Limit, WhatIf
    from advisor_core.result.run import RunResult


TRUSTED_ERROR = 0.05
"""Above this error of the replay only ranges are told: docs/sources.md#replay-and-its-error."""


@click.command("what-if", epilog=epilog())
@click.argument("places", nargs=-1, required=True, type=PLACE, metavar="PATH...")
@click.option(
    "--without",
    multiple=True,
    callback=split,
    metavar="WHAT,...",
    help="Make the changes of these findings: numbers of problems as in the report (F2a), ids or names of rules, "
    "fingerprints.",
)
@click.option(
    "--scale",
    multiple=True,
    metavar="TYPE=FACTOR",
    help="Kernels of this operator type, or of this class of the ledger (matmul), take FACTOR of their time.",
)
@click.option(
    "--rank-as",
    multiple=True,
    metavar="RANK=OTHER",
    help="RANK takes no longer than OTHER between the collectives that they share.",
)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@deep_option
@jobs_option
@language_option("titles")
@ruleset_option
@cache_option
@settings_options(lang="lang", deep="deep")
@quiet_option()
def what_if(
    places: tuple[Path | Url, ...],
    without: tuple[str, ...],
    scale: tuple[str, ...],
    rank_as: tuple[str, ...],
    form: str,
    deep: str | None,
    jobs: int | None,
    lang: str,
    rulesets: tuple[Path, ...],
    no_cache: bool,
    quiet: bool,
) -> None:
    """Say what a step of the profile at PATH, which may be a URL, would take with changes.

    Without options that say what to change it lists the findings whose change can be replayed, in the order of the
    plan.
    """
    from advisor_core.run.what_if import WhatIfError
    from advisor_core.run.what_if import what_if as ask
    from advisor_core.run.work import Work

    factors = dict(_factor(entry) for entry in scale)
    ranks = dict(_ranks(entry) for entry in rank_as)
    options = rule_options(rulesets, cache_bytes=cache_bytes(no_cache))
    progress = begin(quiet, lang)
    paths = reached(places, options.cache_bytes, progress)
    try:
        with engine_call(), progress.of(Work()) as work:
            result, answer = ask(
                paths,
                options,
                without=without,
                scale=factors,
                rank_as=ranks,
                deep=deep_ranks(deep),
                jobs=jobs,
                progress=progress,
                work=work,
            )
    except WhatIfError as error:
        stop(EXIT_USAGE, str(error))
    if form == "json":
        say(answer.model_dump_json(indent=2))
        return
    for line in _lines(result, answer, lang, asked=bool(without or scale or rank_as)):
        say(printable(line))


def _lines(result: RunResult, answer: WhatIf, lang: str, *, asked: bool) -> Iterator[str]:
    from advisor_core.text.units import format_quantity

    def time(ns: int) -> str:
        return format_quantity(ns, "ns")

    titles = {finding.fingerprint: finding.title.of(lang) for finding in result.findings}
    numbers = result.numbers
    if not asked:
        yield f"step {time(answer.step_ns)}; changes that can be replayed:"
        for action in result.plan.actions if result.plan else []:
            yield f"  {action.problem}  wins {time(action.alone_ns)} alone: {titles[action.finding]}"
        return
    saved = answer.step_ns - answer.after_ns
    low, high = map(time, answer.after_range_ns)
    least, most = map(time, answer.saving_range_ns)
    spread = "" if low == high else f", between {low} and {high}"
    doubtful = answer.error_share > TRUSTED_ERROR
    if doubtful:
        yield f"step {time(answer.step_ns)} -> between {low} and {high}: {least} to {most} less"
        yield f"  the replay misses {answer.error_share:.1%} of the recorded time: only the ranges count"
    else:
        less = time(saved) if least == most else f"{time(saved)} ({least} to {most})"
        yield f"step {time(answer.step_ns)} -> {time(answer.after_ns)}{spread}: {less} less"
    for name in answer.without:
        yield f"  without {numbers[name]}: {titles[name]}"
    for operator, factor in answer.scale.items():
        yield f"  kernels of {operator} take {factor:g} of their time"
    for rank, other in answer.rank_as.items():
        yield f"  rank {rank} takes no longer than rank {other}"
    for name in answer.untold:
        yield f"  no change is known for {numbers[name]}: {titles[name]}"
    for part, before in answer.parts_before.items() if not doubtful else ():
        yield f"  {part}: {time(before)} -> {time(answer.parts_after[part])}"
    yield f"  the end of the step waits most for {_limit(answer.limit)}, then for {_limit(answer.next_limit)}"


def _limit(limit: Limit) -> str:
    of = "" if limit.rank is None else f" of rank {limit.rank}"
    return f"{limit.chain}{of} ({limit.share:.0%})"


def _factor(entry: str) -> tuple[str, float]:
    name, text = assignment("--scale", "TYPE=FACTOR", entry)
    try:
        factor = float(text)
    except ValueError:
        factor = -1.0
    if not 0 <= factor < float("inf"):
        stop(EXIT_USAGE, f"--scale takes a factor of 0 or more, not {entry!r}")
    return name, factor


def _ranks(entry: str) -> tuple[int, int]:
    rank, other = assignment("--rank-as", "RANK=OTHER", entry)
    if not (rank.isdecimal() and other.isdecimal()):
        stop(EXIT_USAGE, f"--rank-as takes two ranks, not {entry!r}")
    return int(rank), int(other)
