"""The Kineto traces among files, and their ranks.

A file is one rank. A worker of which several spans were written (``worker0.1623143089861.pt.trace.json.gz``) is one
rank too: its spans are recordings of it at different times, of which the newest is the rank's profile and the others
are older. They are no steps of one profile: what happened between them was not recorded, and the first one often holds
the warm-up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from advisor_core.loaders.discover import directories
from advisor_core.loaders.kineto import words
from advisor_core.loaders.kineto.head import TRACE_SUFFIXES, NoTraceError, peek, recorded_rank
from advisor_core.loaders.readers.files import regular_size


@dataclass(frozen=True)
class TraceFile:
    """``members``: what stands before the events. ``problem``: why the trace cannot be used, '' for one that can."""

    path: Path
    members: Mapping[str, Any] = field(default_factory=dict)
    problem: str = ""

    @property
    def worker(self) -> tuple[Path, str]:
        """The folder, and the part of the name, that the spans of one worker have in common."""
        span = words.SPAN_IN_NAME.match(self.path.name)
        return self.path.parent, span["worker"] if span else self.path.name

    @property
    def recorded_at(self) -> str:
        """The time at which the span was written, as its name says; '' where it does not."""
        span = words.SPAN_IN_NAME.match(self.path.name)
        return span["recorded"] if span else ""


def find_traces(root: Path) -> list[TraceFile]:
    """The traces at or below a path, in the order of their names. A damaged file is among them where it was named
    itself, has the name of a trace, or lies beside traces."""
    if not root.is_dir():
        trace = _look(root)
        return [trace] if trace is not None else []
    traces = []
    for directory in directories(root):
        in_directory = [trace for path in _candidates(directory) if (trace := _look(path)) is not None]
        usable = any(not trace.problem for trace in in_directory)
        traces += [
            trace for trace in in_directory if usable or not trace.problem or words.SPAN_IN_NAME.match(trace.path.name)
        ]
    return traces


def _candidates(directory: Path) -> Iterator[Path]:
    for path in sorted(directory.iterdir()):
        if path.name.endswith(TRACE_SUFFIXES) and not words.NAMES_OF_OTHERS.match(path.name):
            yield path


def _look(path: Path) -> TraceFile | None:
    """A trace, or one that is damaged; None for any other file."""
    if not path.name.endswith(TRACE_SUFFIXES) or regular_size(path) is None:
        return None
    try:
        members = peek(path)
    except NoTraceError as problem:
        return TraceFile(path, problem=f"{path}: {problem}")
    except OSError as error:
        return TraceFile(path, problem=f"{path}: cannot be read ({error.strerror or error})")
    return None if members is None else TraceFile(path, members)


def ranks(traces: Sequence[TraceFile]) -> dict[Path, tuple[int, bool]]:
    """The rank of each file, and whether it was recorded. Workers that record none get the free numbers, in the order
    of their names; those that cannot be used come last."""
    recorded = {trace.path: recorded_rank(trace.path, trace.members) for trace in traces}
    recorded_ranks = {rank for rank in recorded.values() if rank is not None}
    free = (number for number in range(len(traces) + 1) if number not in recorded_ranks)
    by_worker: dict[tuple[Path, str], int] = {}
    numbers: dict[Path, tuple[int, bool]] = {}
    for trace in sorted(traces, key=lambda trace: bool(trace.problem)):
        rank = recorded[trace.path]
        if rank is None and trace.worker not in by_worker:
            by_worker[trace.worker] = next(free)
        numbers[trace.path] = (by_worker[trace.worker], False) if rank is None else (rank, True)
    return numbers
