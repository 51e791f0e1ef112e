"""Processes for the ranks of a job: whatever is done for a rank is done where its tables are."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, ParamSpec, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor

P = ParamSpec("P")
T = TypeVar("T")


def _processes(count: int) -> list[ProcessPoolExecutor]:
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    context = get_context("spawn")
    return [ProcessPoolExecutor(1, mp_context=context) for _ in range(count)]


class Workers:
    """``count`` processes, or this one alone for fewer than two. A context manager."""

    def __init__(self, count: int) -> None:
        self._pools = _processes(count) if count > 1 else []

    def start(self, number: int, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Callable[[], T]:
        """A call that gives ``function(*args)``, or raises what it raised. Everything with the same ``number`` runs in
        the same process, in order; without processes it runs when the call is made."""
        if not self._pools:
            return functools.partial(function, *args, **kwargs)
        return self._pools[number % len(self._pools)].submit(function, *args, **kwargs).result

    def __enter__(self) -> Workers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for pool in self._pools:
            pool.shutdown(cancel_futures=error is not None)
