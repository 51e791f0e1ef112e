"""Copies of several files at URLs at the same time, for a loader that opens them one after another."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from advisor_core.remote.copies import copy_under_way, lacking
from advisor_core.remote.stand_ins import StandIn, stand_in

AT_ONCE: Final = 4
"""Large files that are copied at the same time: a store gives each of several requests what it gives one alone, until
the line of this machine is full. Our choice."""


@contextmanager
def copied_ahead(paths: Iterable[Path]) -> Iterator[None]:
    """Copy those of these files that lie at URLs and are not here yet, several at a time, the largest first. Meanwhile
    `here` waits for the copy of the file that it is asked for, and tells why one failed. What is still being copied at
    the end is given up."""
    files = lacking([one for path in paths if (one := _remote(path)) is not None])
    if len(files) < 2:
        yield
        return
    given_up = threading.Event()
    pool = ThreadPoolExecutor(min(AT_ONCE, len(files)), thread_name_prefix="url")
    try:
        with copy_under_way(sorted(files, key=lambda one: -one.file.bytes), pool, given_up):
            yield
    finally:
        given_up.set()
        pool.shutdown(cancel_futures=True)


def _remote(path: Path) -> StandIn | None:
    try:
        return stand_in(path)
    except OSError:  # nothing is there, which who opens it will tell
        return None
