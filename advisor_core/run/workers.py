"""Processes for the ranks of a job: whatever is done for a rank is done where its tables are.

The process that asks is one of them. A further one takes half a second of imports before it has read anything, in which
the first is at work already.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from advisor_core.contracts.collector import spare_lasting_objects

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor

P = ParamSpec("P")
T = TypeVar("T")


def usable_processors() -> int:
    """Processors that this process may use; where the system does not tell, those of the machine."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1


def _processes(count: int) -> list[ProcessPoolExecutor]:
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    context = get_context("spawn")
    return [ProcessPoolExecutor(1, mp_context=context, initializer=spare_lasting_objects) for _ in range(count)]


class Workers:
    """``count`` processes with this one among them. A context manager."""

    def __init__(self, count: int) -> None:
        self._further = _processes(count - 1) if count > 1 else []

    def start(self, number: int, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Callable[[], T]:
        """A call that gives ``function(*args)``, or raises what it raised. Everything with the same ``number`` runs in
        the same process, in order; in this one it runs when the call is made, in another one from now on."""
        place = number % (len(self._further) + 1)
        if place == 0:
            return functools.partial(function, *args, **kwargs)
        return self._further[place - 1].submit(function, *args, **kwargs).result

    def __enter__(self) -> Workers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for pool in self._further:
            pool.shutdown(cancel_futures=error is not None)
