"""The work of a worker of a cluster for a run: one phase of one rank, where its tables are.

The tables of a rank stay in the process that loaded it, as a part of the result of its first phase. What travels from
machine to machine, or is put on disk where memory is short, is that result without the tables: the next phase then
reads the rank again. So neither where a phase runs nor how often it is begun changes what comes out.
"""

from __future__ import annotations

import pickle
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from advisor_core.contracts.collector import collecting_later
from advisor_core.contracts.profile import InputError, RankInput
from advisor_core.remote.elsewhere import Part, not_reached
from advisor_core.remote.url import Url
from advisor_core.run.cluster.error import ClusterError
from advisor_core.run.cluster.sameness import Described, differences, files, installed, rules
from advisor_core.run.prepared import forget_rules
from advisor_core.run.rank import Held, hold, release

_ONE_AT_A_TIME = threading.Lock()
"""Analysing sets options of pandas and the standard output of the process; a worker may have several threads."""

_rules_read: dict[tuple[Path, ...], Described] = {}
"""The rules that `prepared` has read in this process: a worker lives longer than a run."""


@dataclass(frozen=True)
class Expected:
    """The installation of the machine that asks: a worker that has something else answers nothing. ``files``: those of
    the rank, ``None`` where they are not compared."""

    installed: Described
    rules: Described
    files: str | None


@dataclass(frozen=True)
class Question:
    """A phase of a rank. ``part``: the stand-ins of a rank that lies at a URL, which this worker copies what it reads
    of; ``more``: the further arguments of ``function``."""

    expected: Expected
    function: Callable[..., Any]
    source: RankInput
    more: tuple[Any, ...] = ()
    part: Part | None = None

    def packed(self) -> bytes:
        """As `answer` takes it."""
        return pickle.dumps(self, protocol=pickle.HIGHEST_PROTOCOL)


@dataclass
class Phase:
    """The result of a phase of a rank. ``value``: what it gives; ``place``: the address of the worker; ``keeps``:
    whether the tables of the rank were kept there, and ``held``: those tables, while they are; ``size``: bytes of its
    files, which is about what the tables take."""

    value: Any
    place: str
    keeps: bool = False
    size: int = 0
    held: Held = field(default_factory=dict)

    def take(self) -> Held:
        """The tables, for the one phase that may change them."""
        held, self.held = self.held, {}
        return held

    def __sizeof__(self) -> int:
        """The size that the scheduler takes into account."""
        return object.__sizeof__(self) + (self.size if self.held else 0)

    def __reduce__(self) -> tuple[Callable[[bytes, str, bool], Phase], tuple[bytes, str, bool]]:
        # As bytes, so that arrays arrive as they do from another process of this machine: writeable.
        return _arrived, (pickle.dumps(self.value, protocol=pickle.HIGHEST_PROTOCOL), self.place, self.keeps)


def _arrived(value: bytes, place: str, keeps: bool) -> Phase:
    return Phase(pickle.loads(value), place, keeps)


def answer(question: bytes, before: Phase | None = None) -> Phase:
    """The result of a function of a rank. ``before``: the phase before it, with the tables if this is where they are.
    Raises what the function raises, and `ClusterError` where this worker cannot be used."""
    from distributed import get_worker

    worker = get_worker()
    with _ONE_AT_A_TIME, collecting_later():
        asked: Question = pickle.loads(question)
        with _here(asked, Path(worker.local_directory)) as source:
            require(worker.address, asked.expected, source)
            try:
                hold(before.take() if before is not None else {})
                value = asked.function(source, *asked.more)
            finally:
                held = release()
        phase = Phase(value, worker.address, bool(held), source.bytes, held)
        if asked.part is not None:
            folder = Path(worker.local_directory)
            if held:  # the next phase may read more; where none comes, the scheduler drops this one
                weakref.finalize(phase, _forget_later, asked.part, folder).atexit = False
            else:
                asked.part.forget_temporary(folder)
        return phase


def _forget_later(part: Part, folder: Path) -> None:
    """Delete what was copied of a rank, between two phases: another one may be about to read the same files."""

    def forget() -> None:
        with _ONE_AT_A_TIME:
            part.forget_temporary(folder)

    threading.Thread(target=forget, name="forget copies", daemon=True).start()


@contextmanager
def _here(asked: Question, otherwise: Path) -> Iterator[RankInput]:
    """The rank where this worker reads it; what is said of it meanwhile is said of where it was found."""
    part = asked.part
    if part is None:
        yield asked.source
        return
    tree = part.laid_out(otherwise)
    try:
        yield part.moved(asked.source, tree)
    except BaseException as error:
        part.forget_temporary(otherwise)  # no further phase of the rank is asked for
        if isinstance(error, InputError):
            raise type(error)(str(error).replace(str(tree.root), str(part.tree.root))) from None
        raise


def require(place: str, expected: Expected, source: RankInput) -> None:
    """Raises `ClusterError` where this worker, at ``place``, has not what is ``expected``."""
    if found := differences(expected.installed, installed()):
        raise ClusterError(other_installation(place, found))
    rulesets = tuple(map(Path, expected.rules))
    read = rules(rulesets)
    if found := differences(expected.rules, read):
        raise ClusterError(other_rules(place, found))
    if _rules_read.setdefault(rulesets, read) != read:
        forget_rules()
        _rules_read[rulesets] = read
    if expected.files is not None and (seen := files(source.directory)) != expected.files:
        raise ClusterError(
            f"worker {place} sees {'other files' if seen else 'no files'} in {source.directory} than this machine: it "
            "has to be on storage that all workers share, and nothing may write to it meanwhile"
        )


def other_installation(place: str, found: Sequence[str]) -> str:
    return f"worker {place} has another installation: {'; '.join(found)}. Install the same and start the worker anew"


def other_rules(place: str, found: Sequence[str]) -> str:
    return f"worker {place} has other rules: {'; '.join(found)}. They have to be on storage that all workers share"


def described(roots: Sequence[str | Url], rulesets: Sequence[str]) -> tuple[Described, Described, list[str]]:
    """The installation of this worker, the user's rules as it sees them, and what it lacks of ``roots``."""
    lacks = [lack for root in roots if (lack := _lack(root))]
    return installed(), rules([Path(name) for name in rulesets]), lacks


def _lack(root: str | Url) -> str:
    if isinstance(root, Url):
        why = not_reached(root)
        return f"does not reach {why}" if why else ""
    return "" if Path(root).exists() else f"does not see {root}: it has to be on storage that all workers share"
