"""What a command tells while it works."""

from __future__ import annotations

from collections.abc import Callable

from advisor_core.cli.console import silent, tell
from advisor_core.cli.letters import warn_of_lost_letters
from advisor_core.cli.settings import told

Progress = Callable[[str], None]


def begin(quiet: bool, lang: str, progress: Progress = tell) -> Progress:
    """Tell which settings the command follows, and whether the console lacks letters of its answer; gives ``progress``.
    With ``quiet`` nothing is told, and nothing will be."""
    if quiet:
        return silent
    warn_of_lost_letters(lang)
    for line in told():
        tell(line)
    return progress
