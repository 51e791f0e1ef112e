"""The side of a cluster that asks: a phase of a rank is a task, and the next one goes where its tables are.

The only module that imports ``distributed`` on this side; the extra ``npu-advisor[cluster]`` brings it.
"""

from __future__ import annotations

import logging
import os
import threading
import uuid
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

import dask
from distributed import Client, Future, KilledWorker

from advisor_core.cache.fingerprint import CODE
from advisor_core.contracts.profile import InputError, RankInput
from advisor_core.plugins.crash import DEBUG
from advisor_core.remote.elsewhere import part_of
from advisor_core.remote.stand_ins import tree_of
from advisor_core.remote.url import Url
from advisor_core.run.cluster.error import ClusterError
from advisor_core.run.cluster.on_worker import (
    Expected,
    Phase,
    Question,
    answer,
    described,
    other_installation,
    other_rules,
)
from advisor_core.run.cluster.sameness import Described, differences, files, installed, rules
from advisor_core.run.prepared import RunOptions

P = ParamSpec("P")
T = TypeVar("T")

CONNECT_S: Final = 10.0
"""A scheduler that does not answer for so long is told; our choice."""

WORKERS_S: Final = 60.0
"""So long a run waits for a first worker, or for another one when all have ended: about what a job or pod takes to
begin once it has its place. Our choice."""

PAUSED_S: Final = 600.0
"""A worker whose memory is nearly full ends the phase that it is at, and begins no other until it has room. After so
long, more than a phase of a gigabyte takes, it never will. Our choice."""

LEAVE_S: Final = 0.5
"""So long the scheduler is asked to forget what is not needed any more; it forgets by itself when the connection
ends."""

_LOOK_S: Final = 2.0
_LOGGERS: Final = ("distributed", "distributed.client", "distributed.core", "tornado.application")
_LARGE: Final = 1 << 40
"""Dask warns of arguments of more than 10 MB; what was compared may be more in a job of thousands of ranks."""


class Cluster:
    """A cluster that can be used. ``address``: of its scheduler; ``workers``: how many there are now."""

    def __init__(self, client: Client, address: str) -> None:
        self._client = client
        self.address = address
        self._own = installed()

    @property
    def workers(self) -> int:
        return len(_workers(self._client))

    def pool(self, sources: Sequence[RankInput], options: RunOptions) -> ClusterPool:
        """Places for the ranks of a run. Raises `ClusterError` where a worker has not what it takes."""
        read = rules(options.rulesets)
        roots = sorted({_root(source) for source in sources}, key=str)
        told = self._client.run(described, roots, list(map(str, options.rulesets)), on_error="return")
        for worker, has in sorted(told.items()):
            if isinstance(has, Exception):
                raise ClusterError(_no_answer(worker, has))
            theirs, their_rules, lacks = has
            if found := differences(self._own, theirs):
                raise ClusterError(other_installation(worker, found))
            if lacks:
                raise ClusterError(f"worker {worker} {'; it '.join(lacks)}")
            if found := differences(read, their_rules):
                raise ClusterError(other_rules(worker, found))
        return ClusterPool(self._client, self._own, read)


def _no_answer(worker: str, error: Exception) -> str:
    if _lacks_us(error):
        return f'worker {worker} lacks npu-advisor ({error}): pip install "npu-advisor[cluster]" of this version there'
    return f"worker {worker} cannot be used: {type(error).__name__}: {error}"


def _lacks_us(error: Exception) -> bool:
    """True where an error is that of a worker that cannot import us; Dask may have put it into the text of another."""
    return any(f"No module named '{name}" in str(error) for name in CODE)


@contextmanager
def connected(address: str) -> Iterator[Cluster]:
    """The cluster of a scheduler, by its address or the file that it wrote. Nothing of the run is left on it
    afterwards. Raises `ClusterError`."""
    for name in _LOGGERS if not os.environ.get(DEBUG) else ():
        logging.getLogger(name).setLevel(logging.CRITICAL)  # our messages say what there is to know
    by_file = address.endswith(".json")
    if by_file and not Path(address).is_file():  # Dask would wait for it, for ever
        raise ClusterError(f"{address}: no such file; a scheduler writes it when it begins")
    where = {"scheduler_file" if by_file else "address": address}
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": _LARGE}):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # other versions on workers, which we compare ourselves
                client = Client(**where, timeout=CONNECT_S, set_as_default=False, name="npu-advisor")
        except (OSError, ValueError, TypeError) as error:
            raise ClusterError(f"no scheduler of Dask answers at {address}: {error}") from None
        try:
            _await_workers(client, address)
            yield Cluster(client, address)
        finally:
            client.close(timeout=LEAVE_S)


def _await_workers(client: Client, address: str) -> None:
    try:
        client.wait_for_workers(1, timeout=WORKERS_S)
    except TimeoutError:
        raise ClusterError(f"the scheduler at {address} had no worker for {WORKERS_S:.0f} s") from None


def _workers(client: Client) -> Sequence[str]:
    """The addresses of the workers that the scheduler knows now. Raises `ClusterError` where it does not answer."""
    with _answering():
        return list(client.ncores())


def _running(client: Client) -> Sequence[str]:
    """Those of `_workers` that begin tasks."""
    with _answering():
        scheduler: Any = client.scheduler
        return list(client.sync(scheduler.ncores_running))


@contextmanager
def _answering() -> Iterator[None]:
    try:
        yield
    except (OSError, TimeoutError) as error:
        raise ClusterError(f"the scheduler does not answer any more: {error}") from None


class ClusterPool:
    """A place for each rank: the worker that has its tables, else any. A context manager; afterwards nothing of the
    ranks is left on the cluster, except that a worker ends the phase that it is at."""

    def __init__(self, client: Client, own: Described, read: Described) -> None:
        self._client = client
        self._own, self._rules = own, read
        self._run = uuid.uuid4().hex[:8]
        self._futures: set[Future[Phase]] = set()
        self._before: dict[int, tuple[Future[Phase], str]] = {}
        self._seen: dict[Path, str | None] = {}
        self._read: dict[int, int] = {}

    def start(
        self,
        number: int,
        function: Callable[Concatenate[RankInput, P], T],
        source: RankInput,
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> Callable[[], T]:
        """A call that gives ``function(source, *args)``, or raises what it raised. It runs from now on, where what the
        function before it with the same ``number`` kept is."""
        assert not kwargs, "phases have positional arguments"
        here = _absolute(source)
        expected = Expected(self._own, self._rules, self._files(here.directory))
        before, place = self._before.pop(number, (None, ""))
        future = self._client.submit(
            answer,
            Question(expected, function, here, args, part_of(here)).packed(),
            before,
            key=f"npu-advisor-{function.__name__}-{self._run}-{number}",
            workers=[place] if place else None,
            allow_other_workers=bool(place),
            pure=False,
        )
        self._futures.add(future)
        self._futures.discard(before)  # the scheduler has it as long as the next phase needs it
        ended = threading.Event()

        def end(_: Future[Phase]) -> None:
            self._read[number] = source.bytes
            ended.set()

        future.add_done_callback(end)

        def call() -> T:
            self._await(ended)
            phase = self._result(future, source, here)
            if phase.keeps:
                self._before[number] = future, phase.place
            else:
                self._futures.discard(future)
                future.release()
            value: T = phase.value
            return value

        return call

    def read_bytes(self) -> int:
        """Bytes of the ranks that were read."""
        return sum(list(self._read.values()))

    def copied_bytes(self) -> int:
        """As of `Pool`; what workers copy is not told."""
        return 0

    def _files(self, directory: Path) -> str | None:
        if directory not in self._seen:  # many ranks of which only sums are there have one
            self._seen[directory] = files(directory)
        return self._seen[directory]

    def _await(self, ended: threading.Event) -> None:
        """Wait for the end of a task, as long as there are workers for it."""
        without_s = paused_s = 0.0
        while not ended.wait(_LOOK_S):
            without_s = 0.0 if _workers(self._client) else without_s + _LOOK_S
            paused_s = 0.0 if _running(self._client) else paused_s + _LOOK_S
            if without_s >= WORKERS_S:
                raise ClusterError(f"all workers of the cluster have ended, and none came for {WORKERS_S:.0f} s")
            if paused_s >= PAUSED_S:
                raise ClusterError(
                    f"all workers of the cluster have paused for {PAUSED_S:.0f} s, as their memory is nearly full: "
                    "start them with more of it"
                )

    def _result(self, future: Future[Phase], source: RankInput, here: RankInput) -> Phase:
        try:
            return future.result()
        except KilledWorker as killed:
            raise InputError(
                f"{source.directory}: {killed.allowed_failures + 1} workers ended while they read it; where they are "
                "ended for their memory, start them with more of it"
            ) from None
        except InputError as error:
            raise type(error)(str(error).replace(str(here.directory), str(source.directory))) from None
        except CancelledError as error:
            raise ClusterError(f"the cluster has ended, or the connection to it: {error}") from None
        except Exception as error:
            if _lacks_us(error):  # a worker that came after the others were asked
                raise ClusterError(_no_answer("of the cluster", error)) from None
            raise

    def __enter__(self) -> ClusterPool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._before.clear()
        if self._futures:
            self._client.cancel(list(self._futures), force=True)
        self._futures.clear()


def _root(source: RankInput) -> str | Url:
    """The path that the user gave, as a worker may have it, too."""
    tree = tree_of(source.root)
    return str(source.root.absolute()) if tree is None else tree.url


def _absolute(source: RankInput) -> RankInput:
    """A rank as a process finds it whose working directory is another."""
    return replace(
        source,
        root=source.root.absolute(),
        directory=source.directory.absolute(),
        older=tuple(path.absolute() for path in source.older),
    )
