"""Lines on stderr while a command works: as things begin, and on a terminal how far the work is."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from advisor_core.cli.console import silent, tell
from advisor_core.cli.letters import warn_of_lost_letters
from advisor_core.cli.settings import followed
from advisor_core.remote.shown import with_urls

if TYPE_CHECKING:
    from advisor_core.run.work import Work

PATIENCE_S: Final = 2.0
"""Work that takes no longer is not reported: what is gone before it is read only flickers. Our choice."""

_WRITING: Final = threading.Lock()
"""Held while a line is written. A copy of the process, which reads ranks, is made between two lines: the thread that
would give the lock back is not copied."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_WRITING.acquire, after_in_parent=_WRITING.release, after_in_child=_WRITING.release)

_EVERY_S: Final = 0.25
_MB: Final = 1e6
_WIDTH: Final = 79
"""Of a terminal whose width nobody knows; a longer line would wrap, and could not be written over."""


class Progress:
    """Called with a line, it tells it. ``terminal``: whether how far the work is may be written over again and
    again."""

    def __init__(self, line: Callable[[str], None] = silent, *, terminal: bool = False) -> None:
        self._line = line
        self._terminal = terminal
        self._shown = 0

    def __call__(self, text: str) -> None:
        with _WRITING:
            self._write("")
            self._line(with_urls(text))

    @contextmanager
    def of(self, work: Work) -> Iterator[Work]:
        """Show how far the work is, meanwhile, once it takes longer than `PATIENCE_S`."""
        if not self._terminal:
            yield work
            return
        from advisor_core.run.work import WATCHING

        ended = threading.Event()
        watching = threading.Thread(target=self._watch, args=(work, ended), name=WATCHING, daemon=True)
        watching.start()
        try:
            yield work
        finally:
            ended.set()
            watching.join()

    def _watch(self, work: Work, ended: threading.Event) -> None:
        estimate = Estimate(time.monotonic())
        wait = PATIENCE_S
        while not ended.wait(wait):
            wait = _EVERY_S
            with _WRITING:
                self._write(estimate.line(work, time.monotonic()))
        with _WRITING:
            self._write("")

    def _write(self, text: str) -> None:
        """In place of what was shown."""
        if text or self._shown:
            text = text[:_WIDTH]
            sys.stderr.write(f"\r{text.ljust(self._shown)}" if text else f"\r{' ' * self._shown}\r")
            sys.stderr.flush()
            self._shown = len(text)


class Estimate:
    """The state of work, and how long it may take on, as long as it goes on as it went."""

    def __init__(self, began_s: float) -> None:
        self._began_s = began_s
        self._stage = ""
        self._done = 0.0
        """The part that was done when the stage began."""

    def line(self, work: Work, now_s: float) -> str:
        """One line; no time is named before a part of it is done."""
        stage, told, done = _told(work)
        if stage != self._stage:
            self._began_s, self._done = (now_s, done) if self._stage else (self._began_s, 0.0)
            self._stage = stage
        if not self._done < done < 1:
            return told
        left = (now_s - self._began_s) * (1 - done) / (done - self._done)
        return f"{told}, about {left:.0f} s more"


def _told(work: Work) -> tuple[str, str, float]:
    """The stage of a run, in a word and in a line, and the part of it that is done."""
    copied = f", {size / _MB:.0f} MB copied" if (size := work.copied_bytes()) else ""
    if work.stage == "find":
        return "find", f"looking for profiles{copied}", 0.0
    if work.stage == "job":
        return "job", "comparing ranks, replaying changes", 0.0
    ranks = f"{work.ranks} rank{'s' if work.ranks > 1 else ''}"
    read = work.read_bytes()
    if read < work.bytes:
        line = f"reading {ranks}: {read / _MB:.0f} of {work.bytes / _MB:.0f} MB{copied}"
        # files at URLs are copied before they are read: as long as more is copied than read, that is what takes time
        if read < (here := work.copied_of_ranks()) < work.bytes:
            return "copy", line, here / work.bytes
        return "read", line, read / work.bytes
    return "judge", f"judging {ranks}: {work.judged} done", work.judged / work.ranks if work.ranks else 0.0


def begin(quiet: bool, lang: str, line: Callable[[str], None] = tell) -> Progress:
    """Tell which settings the command follows, and whether the console lacks letters of its answer; gives what tells
    the rest. With ``quiet`` nothing is told, and nothing will be."""
    if quiet:
        return Progress()
    warn_of_lost_letters(lang)
    for setting in followed():
        tell(setting)
    return Progress(line, terminal=sys.stderr.isatty())
