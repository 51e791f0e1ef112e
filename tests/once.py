"""Folders that tests of several processes read, each made by the first of them that asks for it."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path

from advisor_core.result.run import RunResult

WAIT_S = 600
"""So long one process may take to make a folder that others wait for; one that was killed never ends."""


ResultOf = Callable[..., RunResult]
"""``result_of(*paths, **options)``: what a run says of profiles that no test writes to."""


class Once:
    """``once(name, make)``: the folder of this name, which ``make`` fills where no process of the session has yet.
    Nobody writes to it afterwards. Raises TimeoutError where the process that makes it does not end."""

    def __init__(self, root: Path) -> None:
        self._root = root
        root.mkdir(exist_ok=True)

    def __call__(self, name: str, make: Callable[[Path], object]) -> Path:
        place, unfinished = self._root / name, self._root / f"{name}.unfinished"
        until = time.monotonic() + WAIT_S
        while not place.exists():
            try:
                unfinished.mkdir()  # who makes this folder fills it
            except FileExistsError:
                if time.monotonic() > until:
                    raise TimeoutError(f"another process has not finished {place}") from None
                time.sleep(0.05)
                continue
            try:
                if not place.exists():
                    make(unfinished)
                    unfinished.rename(place)
            finally:
                shutil.rmtree(unfinished, ignore_errors=True)
        return place
