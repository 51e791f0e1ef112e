"""Read the text export of the Ascend PyTorch Profiler, CSV and JSON files, into canonical tables."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import pandas as pd

from advisor_core.contracts.missing import Missing, Unavailable
from advisor_core.contracts.tables import (
    COMMUNICATION_TASKS,
    DEVICE_TASKS,
    HOST_EVENTS,
    KERNELS,
    SCHEMAS,
    Int64Array,
    PositionKind,
    Table,
)
from advisor_core.loaders.ascend_pytorch.communication_json import read_communication, read_matrix
from advisor_core.loaders.ascend_pytorch.files import COMMUNICATION, DELIVERABLES, MATRIX, TRACE, Deliverable
from advisor_core.loaders.export import Export, Place, lacking
from advisor_core.loaders.readers.csv_file import read_csv
from advisor_core.loaders.readers.csv_tables import tables_of
from advisor_core.loaders.readers.files import HashedFile
from advisor_core.loaders.readers.problems import Problems
from advisor_core.loaders.readers.slices import both
from advisor_core.loaders.readers.trace_json import TraceSource, read_trace
from advisor_core.remote.ahead import copied_ahead
from advisor_core.result.run import Diagnostic, InputFile
from advisor_core.text.base import Text
from advisor_core.text.messages import message

_COLLECT: Final = {
    "host_events": "loader.collect.cpu",
    "flows": "loader.collect.both",
    "counters": "loader.collect.counters",
    "core_counters": "loader.collect.core_counters",
}
"""The way to a table that its file may have or not have: a message."""


@dataclass(frozen=True)
class _PlainSource:
    """A file whose source rows are positions already."""

    file: str
    position: PositionKind
    sha256: str | None

    def positions(self, source_rows: Int64Array) -> Int64Array:
        return source_rows

    def tables(self, source_rows: Int64Array) -> Sequence[str]:
        return ()


def provided(paths: Mapping[str, Path]) -> set[str]:
    """The canonical tables whose files are there."""
    existing = {name for name, path in paths.items() if path.exists()}
    return {table for deliverable in DELIVERABLES if deliverable.name in existing for table in deliverable.tables}


def read_text(place: Place, paths: Mapping[str, Path], wanted: Collection[str], level: str | None) -> Export:
    """The wanted canonical tables from the files of a text export, by name. Damage is said and costs its table."""
    export = Export()
    chosen = [deliverable for deliverable in DELIVERABLES if not set(wanted).isdisjoint(deliverable.tables)]
    # the trace is most of the work and holds the interpreter lock; Arrow reads the others without it
    opened = [path for deliverable in chosen if (path := paths.get(deliverable.name)) is not None]
    with copied_ahead(opened), ThreadPoolExecutor(max_workers=1, thread_name_prefix="loader") as pool:
        futures = [
            pool.submit(_read, deliverable, paths.get(deliverable.name), place)
            for deliverable in chosen
            if deliverable is not TRACE
        ]
        trace = [_read(TRACE, paths.get(TRACE.name), place)] if TRACE in chosen else []
        outcomes = [*(future.result() for future in futures), *trace]
    for outcome in outcomes:
        _take(export, outcome, wanted, place, level)
    _tell_lost_lane(export, next((outcome for outcome in outcomes if outcome.deliverable is TRACE), None))
    _tell_lost_ends(export)
    return export


def _tell_lost_lane(export: Export, trace: _Outcome | None) -> None:
    """A trace is written with the tasks of the kernels that another file of the export lists. One without any of them
    was cut off, or has lost what tells its lanes."""
    kernels = export.tables.get(KERNELS.name)
    if trace is None or kernels is None or kernels.frame.empty or DEVICE_TASKS.name not in trace.missing:
        return
    if trace.diagnostics:
        return  # what was cut off is told already
    about = {"other_file": kernels.source.file, "count": len(kernels.frame)}
    text = message("loader.lost_lane", lane=trace.missing[DEVICE_TASKS.name].reason, **about)
    export.diagnostics.append(
        Diagnostic(severity="warning", source=trace.file.name if trace.file else None, message=text)
    )


def _tell_lost_ends(export: Export) -> None:
    """Say that one end of all calls, or of all transfers, lacks what the exporter writes at both: every trace at hand
    (three versions of CANN) has it."""
    calls, tasks = export.tables.get(HOST_EVENTS.name), export.tables.get(COMMUNICATION_TASKS.name)
    if calls is not None:
        dequeues = calls.frame.loc[calls.frame["category"] == "dequeue", "correlation"]
        _tell(export, calls, "loader.lost_correlation", len(dequeues), int((dequeues >= 0).sum()))
    if tasks is not None:
        own = tasks.frame.loc[tasks.frame["peer_rank"] >= 0, "own_rank"]
        _tell(export, tasks, "loader.lost_own_rank", len(own), int((own >= 0).sum()))


def _tell(export: Export, table: Table, lost: str, count: int, named: int) -> None:
    if count and not named:
        said = message(lost, count=count)
        export.diagnostics.append(Diagnostic(severity="warning", source=table.source.file, message=said))


def _take(export: Export, outcome: _Outcome, wanted: Collection[str], place: Place, level: str | None) -> None:
    deliverable = outcome.deliverable
    export.diagnostics.extend(outcome.diagnostics)
    if outcome.file is not None and outcome.path is not None:
        export.files.append(outcome.file.model_copy(update={"name": place.inside(outcome.path)}))
    for name in deliverable.tables:
        if name not in wanted:
            continue
        if name in outcome.frames and outcome.source is not None:
            source = replace(outcome.source, sha256=outcome.file.sha256 if outcome.file else None)
            found, before = Table(SCHEMAS[name], outcome.frames[name], source), export.tables.get(name)
            export.tables[name] = found if before is None else both(before, found)
            export.missing.pop(name, None)
        elif name in export.tables:
            continue  # another file has it
        elif outcome.absent:
            export.missing.setdefault(name, _absence(deliverable, name, place, level))
        else:
            reason = outcome.missing.get(name) or outcome.failure
            assert reason is not None
            export.missing[name] = _lacking(reason.reason, deliverable, name, reason.collect)


def _absence(deliverable: Deliverable, table: str, place: Place, level: str | None) -> Missing:
    if not place.root.is_dir():
        reason = message("loader.only_file", file=place.root.name, absent=deliverable.name)
        return Missing(reason, message("loader.collect.directory"))
    if deliverable.from_level1 and level in ("level_none", "level0"):
        reason = message("loader.absent_at_level", file=deliverable.name, level=level)
        return _lacking(reason, deliverable, table)
    return _lacking(message("loader.absent", file=deliverable.name), deliverable, table)


@dataclass(frozen=True)
class _Outcome:
    """The tables and diagnostics of one file."""

    deliverable: Deliverable
    path: Path | None
    absent: bool = False
    file: InputFile | None = None
    source: _PlainSource | TraceSource | None = None
    frames: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    missing: Mapping[str, Missing] = field(default_factory=dict)
    failure: Missing | None = None
    diagnostics: Sequence[Diagnostic] = ()


def _read(deliverable: Deliverable, path: Path | None, place: Place) -> _Outcome:
    """One file into its tables. Damage is an outcome, not an exception."""
    if path is None or not os.path.lexists(path):
        return _Outcome(deliverable, path, absent=True)
    name = place.shown(path)
    problems = Problems(name)
    read: InputFile | None = None
    try:
        with HashedFile(path) as file:
            try:
                outcome = _frames(deliverable, path, name, file, problems)
                failure: Missing | None = None
            except Unavailable as reason:
                failure = reason.missing
            read = file.finish(name)
    except OSError as error:
        failure = Missing(message("loader.unreadable", file=name, why=error.strerror or str(error)))
    if failure is not None:
        problems.say("error", failure.reason)
        return _Outcome(deliverable, path, file=read, failure=failure, diagnostics=problems.diagnostics())
    return replace(outcome, file=read, diagnostics=problems.diagnostics())


def _frames(deliverable: Deliverable, path: Path, name: str, file: HashedFile, problems: Problems) -> _Outcome:
    if deliverable is TRACE:
        trace = read_trace(file, problems)
        source = TraceSource(name, path, None, trace.index)
        return _Outcome(deliverable, path, source=source, frames=trace.frames, missing=trace.missing)
    if deliverable.csv is not None:
        frame, more = read_csv(file, deliverable.csv, problems)
        frames, missing = tables_of(frame, more, deliverable.csv, path.stem, name)
        return _Outcome(deliverable, path, source=_PlainSource(name, "line", None), frames=frames, missing=missing)
    read = {COMMUNICATION.name: read_communication, MATRIX.name: read_matrix}[deliverable.name]
    return _Outcome(deliverable, path, source=_PlainSource(name, "offset", None), frames=read(file, problems))


def _lacking(reason: Text, deliverable: Deliverable, table: str, collect: Text | None = None) -> Missing:
    return lacking(reason, _COLLECT.get(table, deliverable.collect), collect)
