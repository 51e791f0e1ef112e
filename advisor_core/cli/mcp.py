"""``advisor mcp``: what this tool knows of profiles, for assistants."""

from __future__ import annotations

from pathlib import Path

import click

from advisor_core.cli.console import EXIT_USAGE, epilog, stop
from advisor_core.cli.options import deep_option, deep_ranks, jobs_option, ruleset_option
from advisor_core.cli.settings import rule_options, settings_options


@click.command(epilog=epilog())
@click.option(
    "--root",
    required=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="DIR",
    help="Read only what is in this folder; links that lead out of it are refused.",
)
@deep_option
@jobs_option
@ruleset_option
@settings_options(deep="deep")
def mcp(root: Path, deep: str | None, jobs: int | None, rulesets: tuple[Path, ...]) -> None:
    """Answer assistants over the Model Context Protocol, on stdin and stdout.

    The tools are run, findings, explain, what_if, compare and collect, and give the data of the commands of these
    names. Nothing is written. It needs the package mcp: pip install "npu-advisor[mcp]".
    """
    try:
        from advisor_core.serving.server import serve
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("mcp", "anyio"):
            raise
        stop(EXIT_USAGE, f'the package mcp, 2.0 or later, is not installed: pip install "npu-advisor[mcp]" ({error})')
    from advisor_core.serving.answers import Answers
    from advisor_core.serving.root import Root

    serve(Answers(Root(root), rule_options(rulesets), deep_ranks(deep), jobs))
