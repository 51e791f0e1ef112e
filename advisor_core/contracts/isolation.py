"""Keeping the output of plugins apart from ours, and naming the one that is at work for long."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout

from advisor_core.contracts.owner import Owner

PATIENCE_S = 2.0
"""After this time a plugin that is still at work is named; our choice: what takes longer looks as if it hung."""


@contextmanager
def quiet() -> Iterator[None]:
    """Send what is printed meanwhile to stderr: stdout may be a report or JSON."""
    with redirect_stdout(sys.stderr):
        yield


@contextmanager
def working(owner: Owner, what: str = "") -> Iterator[None]:
    """Name the plugin on stderr where it is at work for long, and ``what`` it does; ours take the time they need."""
    if owner.builtin:
        yield
        return
    timer = threading.Timer(PATIENCE_S, _tell, [f"waiting for plugin {owner}{what and ', '}{what}"])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


@contextmanager
def isolated(owner: Owner) -> Iterator[None]:
    """Both, while a plugin is loaded."""
    with quiet(), working(owner):
        yield


def _tell(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()
