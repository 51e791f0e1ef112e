"""Exit codes and messages on stderr, for every command."""

from __future__ import annotations

import sys
from typing import NoReturn

import click

EXIT_FINDINGS, EXIT_USAGE, EXIT_INPUT, EXIT_INTERNAL = 1, 2, 3, 4
EXIT_INTERRUPTED = 130
"""128 and the number of the signal, as shells tell it."""

EXIT_CODES = {
    0: "it ran",
    EXIT_FINDINGS: "it ran: a condition of --fail-on holds, or (rules check, rules test) a mistake in a rule file",
    EXIT_USAGE: "wrong usage: an option, a rule or a path that does not exist or does not fit",
    EXIT_INPUT: "the input cannot be used; the message names the file and says why",
    EXIT_INTERNAL: "internal error; with --fail-on also a rule or plugin that crashed: there is no verdict",
    EXIT_INTERRUPTED: "interrupted (Ctrl-C): no report was written, or all of it",
}
"""Exit codes of every command, with their meaning."""

_COLOURS = {"error": "red", "advisor": "red", "warning": "yellow"}
"""Beginnings of lines on stderr, and their colours on a terminal."""


def epilog() -> str:
    """The exit codes, for the end of a help page."""
    # \b keeps click from filling the lines.
    return "\b\nExit codes:\n" + "\n".join(f"  {code}  {meaning}" for code, meaning in EXIT_CODES.items())


def say(text: object, *, err: bool = False) -> None:
    """An answer on stdout, or with ``err`` on stderr, in the encoding of that stream; colours on terminals only."""
    click.echo(text, file=sys.stderr if err else sys.stdout)  # without `file` click takes UTF-8 in place of ASCII


def tell(text: str) -> None:
    """A line on stderr; on a terminal what it is (``error:``) in a colour."""
    kind, colon, said = printable(text).partition(":")
    if colon and kind in _COLOURS:
        kind = click.style(kind, fg=_COLOURS[kind])
    say(f"{kind}{colon}{said}", err=True)


def silent(text: str) -> None:
    """In place of `tell` where ``--quiet`` was given."""


def tell_rank(text: str) -> None:
    """Name the rank that is read, without its place on disk."""
    tell(text.partition(":")[0])


def printable(text: str) -> str:
    """``text``, which quotes names of files and of kernels, without what steers a terminal."""
    return "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text)


def stop(code: int, message: str) -> NoReturn:
    """End the command with a message on stderr."""
    tell(f"advisor: {message}")
    sys.exit(code)
