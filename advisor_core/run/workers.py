"""Processes for the ranks of a job: whatever is done for a rank is done where its tables are.

The process that asks is one of them. A further one takes half a second of imports before it has read anything, in which
the first is at work already.
"""

from __future__ import annotations

import functools
import os
import signal
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar

from advisor_core.contracts.collector import spare_lasting_objects
from advisor_core.contracts.profile import RankInput
from advisor_core.loaders.readers.files import listen_to_reads
from advisor_core.remote.copies import forget_unfinished, listen_to_copies

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor

P = ParamSpec("P")
T = TypeVar("T")

_PID, _READ, _COPIED = 0, 1, 2
"""Places in the memory that a further process shares: its id, and how many bytes it has read, and copied from URLs."""


def usable_processors() -> int:
    """Processors that this process may use; where the system does not tell, those of the machine."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1


def _begin(told: Any) -> None:
    """What a further process does first. It does not hear Ctrl-C: the process that asks ends it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    spare_lasting_objects()
    told[_PID] = os.getpid()

    def add(what: int, size: int) -> None:
        with told.get_lock():
            told[what] += size

    listen_to_reads(functools.partial(add, _READ))
    listen_to_copies(functools.partial(add, _COPIED))


class _Further:
    """A further process, which begins with the first thing that it is asked to do."""

    def __init__(self) -> None:
        from concurrent.futures import ProcessPoolExecutor
        from multiprocessing import get_context

        context = get_context("spawn")
        self._told = context.Array("q", 3)
        self.pool: ProcessPoolExecutor = ProcessPoolExecutor(
            1, mp_context=context, initializer=_begin, initargs=(self._told,)
        )

    def read_bytes(self) -> int:
        return int(self._told[_READ])

    def copied_bytes(self) -> int:
        return int(self._told[_COPIED])

    @property
    def id(self) -> int:
        """Of the process; 0 before it has begun."""
        return int(self._told[_PID])

    def end(self) -> None:
        """End it now, whatever it does."""
        from multiprocessing import active_children

        for process in active_children():
            if process.pid == self.id:
                process.terminate()


class Pool(Protocol):
    """Places where the ranks of a run are read. A context manager; afterwards nothing of them is left there."""

    def start(
        self,
        number: int,
        function: Callable[Concatenate[RankInput, P], T],
        source: RankInput,
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> Callable[[], T]:
        """A call that gives ``function(source, *args)``, or raises what it raised. What the function before it with the
        same ``number`` kept in its process is there, if that process still is."""
        ...

    def read_bytes(self) -> int:
        """Bytes of input files that other processes have read."""
        ...

    def copied_bytes(self) -> int:
        """Bytes that other processes of this machine have copied from URLs."""
        ...

    def __enter__(self) -> Pool: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class Workers:
    """``count`` processes with this one among them. A context manager; an exception ends the further ones at once."""

    def __init__(self, count: int) -> None:
        self._further = [_Further() for _ in range(count - 1)]

    def start(
        self,
        number: int,
        function: Callable[Concatenate[RankInput, P], T],
        source: RankInput,
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> Callable[[], T]:
        """As of `Pool`. Everything with the same ``number`` runs in the same process, in order: in this one when the
        call is made, in another one from now on."""
        place = number % (len(self._further) + 1)
        if place == 0:
            return functools.partial(function, source, *args, **kwargs)
        return self._further[place - 1].pool.submit(function, source, *args, **kwargs).result

    def read_bytes(self) -> int:
        """Bytes of input files that the further processes have read."""
        return sum(further.read_bytes() for further in self._further)

    def copied_bytes(self) -> int:
        """As of `Pool`."""
        return sum(further.copied_bytes() for further in self._further)

    def __enter__(self) -> Workers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            for further in self._further:
                further.end()
        for further in self._further:
            further.pool.shutdown(cancel_futures=error is not None)
        if error is not None:
            forget_unfinished([further.id for further in self._further if further.id])
