"""Processes for the ranks of a job: whatever is done for a rank is done where its tables are.

The process that asks is one of them. Where it can it forks the others, which then have all that it has imported, and
the rules. Elsewhere a further one takes half a second of imports before it has read anything, in which the first is at
work already.
"""

from __future__ import annotations

import functools
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, Protocol, TypeVar

from advisor_core.contracts.collector import spare_lasting_objects
from advisor_core.contracts.profile import RankInput
from advisor_core.loaders.readers.files import listen_to_reads
from advisor_core.remote.copies import forget_unfinished, listen_to_copies
from advisor_core.run.work import WATCHING

if TYPE_CHECKING:
    from concurrent.futures import Future
    from multiprocessing.connection import Connection

P = ParamSpec("P")
T = TypeVar("T")

_PID, _READ, _COPIED = 0, 1, 2
"""Places in the memory that a further process shares: its id, and how many bytes it has read, and copied from URLs."""

_SOON_S: Final = 5.0
"""A process that was told to end has this long before it is killed."""


def usable_processors() -> int:
    """Processors that this process may use; where the system does not tell, those of the machine."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1


def can_fork() -> bool:
    """Whether further processes may be copies of this one: on Linux, where no other thread of ours is at work, which
    may hold a lock that nobody in the copy gives back. The thread that shows the progress heeds that by itself."""
    main = threading.main_thread()
    others = {thread.name for thread in threading.enumerate() if thread is not main}
    return sys.platform == "linux" and threading.current_thread() is main and others <= {WATCHING}


class DiedError(RuntimeError):
    """A further process ended before it had answered: the system killed it, as it does for want of memory."""


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


def _serve(asked: Connection, told: Any, others: Sequence[Connection]) -> None:
    """Answer one call after another until the process that asks is gone. ``others``: its ends of the pipes, which a
    copy of it has as well; as long as one is open, no process would hear that it is gone."""
    for other in others:
        other.close()
    _begin(told)
    while True:
        try:
            function, args, keywords = asked.recv()
        except EOFError:
            return
        try:
            asked.send((True, function(*args, **keywords)))
        except BaseException as error:  # the caller decides what it means
            error.add_note("".join(traceback.format_exception(error)))
            asked.send((False, error))


class _Further:
    """A further process, and the thread that asks it, one call after another."""

    def __init__(self, fork: bool, others: Sequence[Connection]) -> None:
        from concurrent.futures import ThreadPoolExecutor
        from multiprocessing import get_context

        context = get_context("fork" if fork else "spawn")
        self._told = context.Array("q", 3)
        self.pipe, asked = context.Pipe()
        kept_open = (*others, self.pipe) if fork else ()
        self._process = context.Process(target=_serve, args=(asked, self._told, kept_open))  # type: ignore[attr-defined]
        self._process.start()
        asked.close()
        self._asking = ThreadPoolExecutor(1, thread_name_prefix="asking")

    def submit(self, function: Callable[..., T], *args: Any, **keywords: Any) -> Future[T]:
        """The answer to come. It raises what the function raised, and `DiedError`."""
        return self._asking.submit(self._ask, function, args, keywords)

    def _ask(self, function: Callable[..., T], args: tuple[Any, ...], keywords: dict[str, Any]) -> T:
        try:
            self.pipe.send((function, args, keywords))
            done, answer = self.pipe.recv()
        except (EOFError, ConnectionError) as error:
            raise DiedError("a process that read a rank has ended (out of memory?)") from error
        if done:
            return answer  # type: ignore[no-any-return]
        raise answer

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
        self._process.terminate()

    def close(self, *, cancel: bool) -> None:
        """Wait until it has ended; with ``cancel`` what it has not begun is not done."""
        self._asking.shutdown(cancel_futures=cancel)
        self.pipe.close()
        self._process.join(_SOON_S if cancel else None)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()


def _load_libraries() -> None:
    """Load what every rank needs and each copy of this process would load by itself."""
    import pandas as pd

    pd.DataFrame()  # the package is loaded when something of it is used


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
    """``count`` processes with this one among them. A context manager, which begins and ends the further ones; an
    exception ends them at once."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._further: list[_Further] = []

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
        return self._further[place - 1].submit(function, source, *args, **kwargs).result

    def read_bytes(self) -> int:
        """Bytes of input files that the further processes have read."""
        return sum(further.read_bytes() for further in self._further)

    def copied_bytes(self) -> int:
        """As of `Pool`."""
        return sum(further.copied_bytes() for further in self._further)

    def __enter__(self) -> Workers:
        fork = can_fork()
        if fork and self._count > 1:
            _load_libraries()
        for _ in range(self._count - 1):
            self._further.append(_Further(fork, [further.pipe for further in self._further]))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            for further in self._further:
                further.end()
        for further in self._further:
            further.close(cancel=error is not None)
        if error is not None:
            forget_unfinished([further.id for further in self._further if further.id])
