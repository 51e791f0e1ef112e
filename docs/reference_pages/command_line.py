"""The page of the command line, read from click."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import click

from advisor_core.cli.console import EXIT_CODES
from advisor_core.cli.main import cli
from reference_pages.markdown import code, fence, join, table


def commands(group: click.Group, name: str) -> Iterator[tuple[str, click.Command]]:
    """Every command below ``group`` with its whole name."""
    for key in sorted(group.commands):
        command = group.commands[key]
        if isinstance(command, click.Group):
            yield from commands(command, f"{name} {key}")
        else:
            yield f"{name} {key}", command


def command_line() -> str:
    parts = [
        "# Command line",
        "The report goes to files, a summary to stdout, progress and diagnostics to stderr.",
        "## Exit codes",
        table(("Code", "Meaning"), EXIT_CODES.items()),
    ]
    for name, command in commands(cli, "advisor"):
        context = click.Context(command, info_name=name)
        usage = " ".join([name, *command.collect_usage_pieces(context)])
        options = [option for option in command.params if isinstance(option, click.Option)]
        parts += [
            f"## {name}",
            fence(usage),
            re.sub(r"(?<!\n)\n(?!\n)", " ", inspect.cleandoc(command.help or "")).replace("*", r"\*"),
            table(("Option", "Value", "Default", "Meaning"), (option_row(option, context) for option in options)),
        ]
    return join(*parts)


def option_row(option: click.Option, context: click.Context) -> tuple[str, str, str, str]:
    spelling = ", ".join(map(code, option.opts))
    value = "" if option.is_flag else code(option.make_metavar(context).strip("[]"))
    default = code(option.default) if option.show_default else ""
    said = option.help or ""
    more = " May be repeated." if option.multiple and "repeated" not in said else ""
    return spelling, value, default, said + more
