"""Entry point of ``advisor``. Commands import what they need when they run, so that ``--help`` is fast."""

from __future__ import annotations

import os

import click

from advisor_core.cli.advisors import advisors
from advisor_core.cli.baseline import baseline
from advisor_core.cli.cache import cache
from advisor_core.cli.collect import collect
from advisor_core.cli.colour import wanted
from advisor_core.cli.compare import compare
from advisor_core.cli.config import config
from advisor_core.cli.console import EXIT_INTERNAL, EXIT_INTERRUPTED, EXIT_USAGE, epilog, stop
from advisor_core.cli.explain import explain
from advisor_core.cli.interrupt import Interrupted, listen
from advisor_core.cli.letters import accept_any_console
from advisor_core.cli.load_when_used import load_when_used
from advisor_core.cli.mcp import mcp
from advisor_core.cli.plugins import plugins
from advisor_core.cli.result_file import result_schema
from advisor_core.cli.rules import rules
from advisor_core.cli.run import run
from advisor_core.cli.sample import sample
from advisor_core.cli.what_if import what_if
from advisor_core.contracts.collector import spare_lasting_objects


@click.group(context_settings={"help_option_names": ["-h", "--help"]}, epilog=epilog())
@click.version_option(package_name="npu-advisor", prog_name="advisor")
@click.option("--no-plugins", is_flag=True, help="Start with what npu-advisor brings, and no other plugin.")
@click.option("--debug", is_flag=True, help="Print the traceback of a rule or plugin that raises.")
@click.pass_context
def cli(context: click.Context, no_plugins: bool, debug: bool) -> None:
    """Works out where the time of an NPU step went and what to change, with the evidence."""
    context.color = wanted()
    # In the environment, so that the processes that read ranks do the same.
    if no_plugins:
        from advisor_core.plugins.host import ONLY, own_plugins

        os.environ[ONLY] = ",".join(own_plugins())
    if debug:
        from advisor_core.plugins.crash import DEBUG

        os.environ[DEBUG] = "1"


COMMANDS = (
    *(run, compare, what_if, explain, collect, baseline, config, cache),
    *(rules, advisors, plugins, sample, result_schema, mcp),
)
for command in COMMANDS:
    cli.add_command(command)


def main() -> None:
    """Entry point: whatever is not a message of ours is an internal error, with exit code 4."""
    accept_any_console()
    listen()
    spare_lasting_objects()
    load_when_used("numpy", "pandas", "pyarrow", "yaml")
    try:
        cli(standalone_mode=True)
    except Interrupted:
        stop(EXIT_INTERRUPTED, "interrupted")
    except Exception as error:
        from advisor_core.plugins.host import ShadowedError

        if isinstance(error, ShadowedError):
            stop(EXIT_USAGE, str(error))
        import traceback

        traceback.print_exc()
        stop(EXIT_INTERNAL, f"internal error: {type(error).__name__}: {error}")
