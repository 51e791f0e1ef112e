"""``advisor collect``: the profiler configuration that answers what could not be answered."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click

from advisor_core.cli.console import printable
from advisor_core.cli.options import language_option
from advisor_core.cli.result_file import read_result


@click.command()
@click.argument(
    "result", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="[RESULT.json]"
)
@click.option(
    "--for",
    "tool",
    type=click.Choice(["torch_npu", "verl", "vllm", "mindie", "msprof"]),
    default="torch_npu",
    show_default=True,
    help="What takes the profile.",
)
@language_option("the comments")
def collect(result: Path | None, tool: Literal["torch_npu", "verl", "vllm", "mindie", "msprof"], lang: str) -> None:
    """Print the profiler configuration that answers what could not be answered.

    RESULT.json is the report.json of a run; without it the recommended configuration is printed. Every option comes
    with what it records, the rules that need it and what it costs, as comments: the output can be saved as it is.
    """
    from advisor_core.collecting.plan import plan
    from advisor_core.collecting.render import render
    from advisor_core.plugins.host import load_host

    recorded = read_result(result) if result is not None else None
    click.echo(printable(render(plan(tool, load_host().capture_options, recorded), lang)))
