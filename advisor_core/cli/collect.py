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
@click.option(
    "--check",
    is_flag=True,
    help="Print instead a script that checks, on the machine with the NPUs, what the profiler needs there: driver, "
    "rights, CANN, torch_npu, devices, disk.",
)
@language_option("the comments")
@settings_options(lang="lang")
def collect(result: Path | None, tool: str | None, check: bool, lang: str) -> None:
    """Print the profiler configuration that answers what could not be answered.

    RESULT.json is the report.json of a run; without it the recommended configuration is printed. Every option comes
    with what it records, the rules that need it and what it costs, as comments: the output can be saved as it is.
    """
    from advisor_core.collecting.plan import ToolError, plan, tool_for
    from advisor_core.collecting.render import render
    from advisor_core.plugins.host import load_host

    warn_of_lost_letters(lang)
    if check:
        from advisor_core.collecting.machine.script import script

        if result is not None or tool is not None:
            stop(EXIT_USAGE, "--check needs no RESULT.json and no --for: it asks for what any profiler of NPUs needs")
        say(script(lang))
        return
    recorded = read_result(result) if result is not None else None
    options = load_host().capture_options
    try:
        chosen = tool_for(tool, options.values(), recorded)
    except ToolError as error:
        stop(EXIT_USAGE, str(error))
    say(printable(render(plan(chosen, options, recorded), lang)))
