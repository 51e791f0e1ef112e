"""Ctrl-C: the command ends within a second, with all of its processes, and never between two files of a report."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

from advisor_core.cli.console import EXIT_INTERRUPTED, tell

GRACE_S: Final = 0.7
"""The command has this long to put away what it began; a thread that reads a large file does not hear of Ctrl-C."""


REAPING_S: Final = 0.1
"""A process that was killed is gone sooner."""


class Interrupted(BaseException):
    """Ctrl-C. No `KeyboardInterrupt`: click makes exit code 1 of that, which means findings."""


class _State:
    whole = 0
    asked = False


def listen() -> None:
    """Have Ctrl-C raise `Interrupted` in the main thread, unless it is ignored, as shells have it for jobs in the
    background."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, _interrupt)


@contextmanager
def whole() -> Iterator[None]:
    """Put Ctrl-C off until the end of what is done meanwhile, which is short."""
    _State.whole += 1
    try:
        yield
    finally:
        _State.whole -= 1
        if _State.asked and not _State.whole:
            raise Interrupted


def _interrupt(signal_number: int, frame: FrameType | None) -> None:
    _State.asked = True
    if _State.whole:
        return
    waiting = threading.Timer(GRACE_S, _end)
    waiting.daemon = True
    waiting.start()
    raise Interrupted


def _end() -> None:
    """End at once, whatever still runs."""
    multiprocessing = sys.modules.get("multiprocessing")
    ended = [os.getpid()]
    children = multiprocessing.active_children() if multiprocessing is not None else []
    for process in children:
        process.kill()
        ended.append(process.pid)
    for process in children:
        process.join(REAPING_S)  # else it stays a zombie where the first process of a container reaps none
    copies = sys.modules.get("advisor_core.remote.copies")
    if copies is not None:
        copies.give_up(ended)
    tell("advisor: interrupted")
    os._exit(EXIT_INTERRUPTED)
