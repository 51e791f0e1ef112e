"""``advisor sample``: a realistic profile with known problems."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click

from advisor_core.cli.console import EXIT_USAGE, say, stop


@click.command()
@click.argument("directory", type=click.Path(path_type=Path, file_okay=False))
@click.option("--scenario", help="A job of the catalogue, see --list [transformer-training].")
@click.option(
    "--job",
    "job_file",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="A job that a YAML file describes, instead of one of the catalogue.",
)
@click.option(
    "--without",
    multiple=True,
    metavar="CAUSE",
    help="Leave a cause of the job out; NAME@RANK is that on one rank. May be repeated.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Another seed gives other durations.")
@click.option(
    "--format",
    "format_",
    type=click.Choice(["text", "db"]),
    default="text",
    show_default=True,
    help="Kind of export.",
)
@click.option(
    "--level",
    type=click.Choice(["level_none", "level0", "level1", "level2"]),
    default="level1",
    show_default=True,
    help="Profiler level: what the profile records.",
)
@click.option(
    "--headers",
    type=click.Choice(["2024", "2025"]),
    help="Generation of the export: names of lanes and columns [that of the scenario].",
)
@click.option("--discrete", is_flag=True, help="A profile per role of a job of reinforcement learning.")
@click.option(
    "--list",
    "list_",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=lambda c, p, v: _scenarios(c, v),
    help="Name the scenarios and stop.",
)
def sample(
    directory: Path,
    scenario: str | None,
    job_file: Path | None,
    without: tuple[str, ...],
    seed: int,
    format_: str,
    level: Literal["level_none", "level0", "level1", "level2"],
    headers: Literal["2024", "2025"] | None,
    discrete: bool,
) -> None:
    """Write a realistic profile with known problems into DIRECTORY."""
    from advisor_core.sample import job_from, write_sample

    if scenario and job_file:
        stop(EXIT_USAGE, "--scenario and --job are two ways to choose one job")
    if directory.exists() and any(directory.iterdir()):
        stop(EXIT_USAGE, f"{directory} is not empty")
    try:
        written = write_sample(
            directory,
            scenario=job_from(job_file) if job_file else scenario or "transformer-training",
            without=without,
            seed=seed,
            format=format_,
            level=level,
            headers=headers,
            discrete=discrete,
        )
    except ValueError as error:
        stop(EXIT_USAGE, str(error))
    for path in written:
        say(path)


def _scenarios(context: click.Context, wanted: bool) -> None:
    if not wanted:
        return
    from advisor_core.sample import SCENARIOS

    for name, scenario in SCENARIOS.items():
        say(f"{name:28} {scenario.description.en}")
    context.exit()
