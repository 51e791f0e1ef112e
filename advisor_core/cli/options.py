"""Options that several commands have."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from advisor_core.cli.console import EXIT_USAGE, stop

if TYPE_CHECKING:
    from advisor_core.run.deep_ranks import DeepRanks
    from advisor_core.run.pipeline import Elsewhere

_F = TypeVar("_F", bound=Callable[..., Any])


def split(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    """The parts of comma-separated values of an option that may be repeated."""
    return tuple(part.strip() for value in values for part in value.split(",") if part.strip())


def assignment(option: str, form: str, entry: str) -> tuple[str, str]:
    """Both sides of the last ``=`` of the value of an option. Stops where one is missing; ``form``: what it takes."""
    name, separator, value = (part.strip() for part in entry.rpartition("="))
    if not (name and separator and value):
        stop(EXIT_USAGE, f"{option} takes {form}, not {entry!r}")
    return name, value


def ruleset_option(command: _F) -> _F:
    """``--ruleset``, for a command with the parameter ``rulesets``."""
    ruleset = click.option(
        "--ruleset",
        "rulesets",
        multiple=True,
        type=click.Path(exists=True, path_type=Path),
        help="YAML file or folder of rules that adds to or overrides the built-in ones; may be repeated.",
    )
    return ruleset(command)


def language_option(of: str) -> Callable[[_F], _F]:
    """``--lang``; ``of``: what it is the language of."""
    choice = click.Choice(["en", "zh"])
    return click.option("--lang", type=choice, default="en", show_default=True, help=f"Language of {of}.")


def cache_option(command: _F) -> _F:
    """``--no-cache``, for a command with the parameter ``no_cache``."""
    none = click.option(
        "--no-cache", is_flag=True, help="Read every file, and keep nothing of it for the next run (see advisor cache)."
    )
    return none(command)


def jobs_option(command: _F) -> _F:
    """``--jobs``, for a command with the parameter ``jobs``."""
    jobs = click.option(
        "--jobs",
        type=click.IntRange(1),
        help="Processes that read ranks at the same time [as many as pay and memory allows].",
    )
    return jobs(command)


def scheduler_option(command: _F) -> _F:
    """``--scheduler``, for a command with the parameter ``scheduler``."""
    scheduler = click.option(
        "--scheduler",
        metavar="ADDRESS",
        help="Read ranks on the workers of a Dask cluster that see PATH: tcp://HOST:PORT of its scheduler, or the file "
        "that the scheduler wrote.",
    )
    return scheduler(command)


@contextmanager
def cluster_of(scheduler: str | None, jobs: int | None, tell: Callable[[str], None]) -> Iterator[Elsewhere | None]:
    """The cluster that ``--scheduler`` names, while it is used; ``None`` for this machine. Stops where it cannot be."""
    if scheduler is None:
        yield None
        return
    if jobs is not None:
        stop(EXIT_USAGE, "--jobs is about processes on this machine, and excludes --scheduler")
    from advisor_core.run.cluster.error import ClusterError

    try:
        from advisor_core.run.cluster.client import connected
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("dask", "distributed"):
            raise
        stop(EXIT_USAGE, f'Dask is not installed: pip install "npu-advisor[cluster]" ({error})')
    try:
        with connected(scheduler) as cluster:
            count = cluster.workers
            tell(f"cluster: {count} worker{'s' if count > 1 else ''} of {scheduler}")
            yield cluster
    except ClusterError as error:
        stop(EXIT_USAGE, str(error))


def quiet_option(also: str = "") -> Callable[[_F], _F]:
    """``-q``; ``also``: what the command leaves out besides progress and warnings."""
    left_out = f"no progress, no warnings{also and f', {also}'}"
    return click.option("-q", "--quiet", is_flag=True, help=f"Print errors only: {left_out}.")


def deep_option(command: _F) -> _F:
    """``--deep``, for a command with the parameter ``deep``: what `DeepRanks` takes as text, or nothing."""
    deep = click.option(
        "--deep",
        metavar="N|all|RANKS",
        help="Ranks that are read in depth, the others by the sums of their steps: so many, all, or ranks such as "
        "0,8-15 [all of up to 64 ranks and 8 GiB, else the 16 that tell most].",
    )
    return deep(command)


def deep_ranks(text: str | None) -> DeepRanks:
    """The ranks that ``--deep`` asks for."""
    from advisor_core.run.deep_ranks import BY_SIZE, DeepRanks

    try:
        return DeepRanks.of(text) if text else BY_SIZE
    except ValueError:
        stop(EXIT_USAGE, f"--deep takes a number, all, or ranks such as 0,8-15, not {text!r}")
