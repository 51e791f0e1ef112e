"""``advisor collect``: the profiler configuration that answers what could not be answered."""

from __future__ import annotations

from pathlib import Path

import click

from advisor_core.cli.console import EXIT_USAGE, printable, say, stop
from advisor_core.cli.letters import warn_of_lost_letters
from advisor_core.cli.options import language_option
from advisor_core.cli.result_file import read_result
from advisor_core.cli.settings import settings_options
from advisor_core.collecting import TOOLS


@click.command()
@click.argument(
    "result", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="[RESULT.json]"
)
@click.option(
    "--for",
    "tool",
    type=click.Choice(TOOLS),
    help="What takes the profile.  [default: the profiler of the recorded devices; torch_npu without RESULT.json]",
)
@language_option("the comments")
@settings_options(lang="lang")
def collect(result: Path | None, tool: str | None, lang: str) -> None:
    """Print the profiler configuration that answers what could not be answered.

    RESULT.json is the report.json of a run; without it the recommended configuration is printed. Every option comes
    with what it records, the rules that need it and what it costs, as comments: the output can be saved as it is.
    """
    from advisor_core.collecting.plan import ToolError, plan, tool_for
    from advisor_core.collecting.render import render
    from advisor_core.plugins.host import load_host

    warn_of_lost_letters(lang)
    recorded = read_result(result) if result is not None else None
    options = load_host().capture_options
    try:
        chosen = tool_for(tool, options.values(), recorded)
    except ToolError as error:
        stop(EXIT_USAGE, str(error))
    say(printable(render(plan(chosen, options, recorded), lang)))
