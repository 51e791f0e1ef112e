"""Lines on stderr while a command works."""

from __future__ import annotations

from collections.abc import Callable

from advisor_core.cli.console import silent, tell
from advisor_core.cli.letters import warn_of_lost_letters
from advisor_core.cli.settings import followed

Progress = Callable[[str], None]


def begin(quiet: bool, lang: str, progress: Progress = tell) -> Progress:
    """Tell which settings the command follows, and whether the console lacks letters of its answer; gives ``progress``.
    With ``quiet`` nothing is told, and nothing will be."""
    if quiet:
        return silent
    warn_of_lost_letters(lang)
    for line in followed():
        tell(line)
    return progress
