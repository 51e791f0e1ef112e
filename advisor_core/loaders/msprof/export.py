"""Read the files of one msprof profile into canonical tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, TypeVar

import numpy as np
import pandas as pd

from advisor_core.contracts.missing import Missing, Unavailable
from advisor_core.contracts.tables import KERNELS, PORTS, SCHEMAS, Int64Array, RowSource, Table
from advisor_core.loaders.ascend_pytorch import files as ascend_files
from advisor_core.loaders.ascend_pytorch.communication_json import read_communication, read_matrix
from advisor_core.loaders.ascend_pytorch.db.loader import AscendDatabases
from advisor_core.loaders.export import Export, lacking
from advisor_core.loaders.msprof import layout as msprof_layout
from advisor_core.loaders.msprof.db import TABLES as IN_DATABASE
from advisor_core.loaders.msprof.db import provided, read_database
from advisor_core.loaders.msprof.files import (
    ANALYSED,
    DELIVERABLES,
    DEVICE,
    ITERATIONS,
    NEVER,
    OP_SUMMARY,
    OPERATOR_MEMORY,
    TASK_TIME,
    TIMELINE,
    Deliverable,
    export_name,
    released,
)
from advisor_core.loaders.msprof.layout import Layout
from advisor_core.loaders.msprof.steps import by_inference, by_iterations
from advisor_core.loaders.readers.csv_file import CsvTable, read_csv
from advisor_core.loaders.readers.csv_tables import tables_of
from advisor_core.loaders.readers.files import HashedFile
from advisor_core.loaders.readers.problems import Problems
from advisor_core.loaders.readers.slices import LineSource, both, join
from advisor_core.loaders.readers.trace_json import Trace, TraceSource, read_trace
from advisor_core.remote.ahead import copied_ahead
from advisor_core.result.run import Diagnostic, InputFile
from advisor_core.text.messages import message

_OF_DEVICE: Final = ("device_tasks", "communication_tasks", "flows", "overlap", "frequency", "counters")
"""Tables of the timeline that mix devices where it has several: its events do not say which device they are of."""

T = TypeVar("T")


@dataclass(frozen=True)
class _Read:
    """The content of the files of one kind, by table."""

    deliverable: Deliverable
    frames: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    sources: Mapping[str, RowSource] = field(default_factory=dict)
    missing: Mapping[str, Missing] = field(default_factory=dict)


class MsprofExport:
    """Reads a profile. ``export``: what it gave; ``device``: the device that the tables are of, None where they name
    none. Damage is said and costs its table; so does a slice that is absent or damaged: the rest would have a hole."""

    def __init__(self, files: Layout, name: str) -> None:
        self.export = Export()
        self._files = files
        self._place = files.place
        self._name = name
        if files.others:
            names = ", ".join(path.name for path in files.others)
            self._warn("loader.msprof.older", files=names)
        self.device: int | None = None
        database = files.database
        first = database is not None and self._has_more(database)
        usable = False
        if database is not None and first:
            usable = self._read_database(database)
            had = set(self.export.tables)
            self._read_text()
        else:
            self._read_text()
            had = set(self.export.tables)
            if database is not None:
                usable = self._read_database(database)
        if usable and files.timed:
            self._say_both("DB" if first else "text", sorted(self.export.tables.keys() - had))
        self._read_analysis()
        for table, (reason, collect) in NEVER.items():
            self.export.missing[table] = lacking(message(reason), collect)

    def _has_more(self, database: Path) -> bool:
        """Whether the DB export has more of the tables than the text export. A tie goes to the text: it alone names
        the runs of graphs."""
        in_text = {table for file in DELIVERABLES if file.kind in self._files.exports for table in file.tables}
        return not self._files.timed or len(provided(self._place, database)) > len(in_text & IN_DATABASE)

    def _read_text(self) -> None:
        """The tables that the export does not have yet, from the text export."""
        have = self.export.tables.keys()
        wanted = [deliverable for deliverable in DELIVERABLES if not have >= {*deliverable.tables}]
        with copied_ahead(path for one in wanted for path in self._files.exports.get(one.kind, ())):
            reads = [self._read(deliverable) for deliverable in wanted]
        device, several = self._choose_device(reads)
        self.device = device if self.device is None else self.device
        for read in reads:
            self._take(read, several)
        self._leave_out_lone_tasks(reads)

    def _warn(self, name: str, **values: object) -> None:
        text = message(name, **values)
        self.export.diagnostics.append(Diagnostic(severity="warning", source=self._name, message=text))

    def _read(self, deliverable: Deliverable) -> _Read:
        paths = self._files.exports.get(deliverable.kind, ())
        if not paths:
            return _Read(deliverable, missing=dict.fromkeys(deliverable.tables, self._absence(deliverable)))
        together = self._together(paths)
        try:
            absent = msprof_layout.missing_slices(paths)
            if absent:
                numbers = ", ".join(map(str, absent))
                raise Unavailable(message("loader.msprof.slices_missing", file=together, numbers=numbers))
            if deliverable.csv is None:
                return self._timeline(deliverable, paths, together)
            return self._csv(deliverable, deliverable.csv, paths, together)
        except Unavailable as failure:
            self.export.diagnostics.append(Diagnostic(severity="error", source=together, message=failure.reason))
            missing = lacking(failure.reason, deliverable.collect, failure.collect)
            return _Read(deliverable, missing=dict.fromkeys(deliverable.tables, missing))

    def _csv(self, deliverable: Deliverable, table: CsvTable, paths: Sequence[Path], together: str) -> _Read:
        parts = [self._open(path, lambda file, problems: read_csv(file, table, problems)) for path in paths]
        sources = [LineSource(file.name, file.sha256) for _, file in parts]
        frame, source = join(table.schema, together, [frame for (frame, _), _ in parts], sources)
        counters = dict.fromkeys(name for (_, more), _ in parts for name in more)
        joined = {
            name: np.concatenate([more.get(name, np.full(len(part), np.nan)) for (part, more), _ in parts])
            for name in counters
        }
        frames, lacks = tables_of(frame, joined, table, deliverable.kind, together)
        for name, derived in frames.items():
            if DEVICE not in derived and DEVICE in frame:
                device = derived["source_row"].map(frame.set_index("source_row")[DEVICE])
                frames[name] = derived.assign(**{DEVICE: device})
        missing = {name: lacking(lack.reason, "loader.collect.msprof_core_counters") for name, lack in lacks.items()}
        return _Read(deliverable, frames, dict.fromkeys(frames, source), missing)

    def _timeline(self, deliverable: Deliverable, paths: Sequence[Path], together: str) -> _Read:
        traces: list[Trace] = []
        sources: list[RowSource] = []
        for path in paths:
            trace, file = self._open(path, read_trace)
            traces.append(trace)
            sources.append(TraceSource(file.name, path, file.sha256, trace.index))
        frames: dict[str, pd.DataFrame] = {}
        of: dict[str, RowSource] = {}
        missing: dict[str, Missing] = {}
        for table in deliverable.tables:
            numbers = [number for number, trace in enumerate(traces) if table in trace.frames]
            if numbers:
                frames_of_table = [traces[number].frames[table] for number in numbers]
                frames[table], of[table] = join(
                    SCHEMAS[table], together, frames_of_table, [sources[number] for number in numbers]
                )
            else:
                reason = traces[0].missing[table]
                missing[table] = lacking(reason.reason, deliverable.collect, reason.collect)
        return _Read(deliverable, frames, of, missing)

    def _open(self, path: Path, read: Callable[[HashedFile, Problems], T]) -> tuple[T, InputFile]:
        """The result of ``read`` for a file, and the file under its name in a report. Raises `Unavailable`."""
        name = self._place.shown(path)
        problems = Problems(name)
        try:
            with HashedFile(path) as file:
                try:
                    content = read(file, problems)
                finally:
                    finished = file.finish(name)
                    self.export.files.append(finished.model_copy(update={"name": self._place.inside(path)}))
        except OSError as error:
            raise Unavailable(message("loader.unreadable", file=name, why=error.strerror or str(error))) from None
        finally:
            self.export.diagnostics.extend(problems.diagnostics())
        return content, finished

    def _choose_device(self, reads: Sequence[_Read]) -> tuple[int | None, bool]:
        """The device with the most tasks where there are several: added up, their times would be of no device."""
        for read in reads:
            for frame in read.frames.values():
                named = frame.loc[frame[DEVICE] >= 0, DEVICE] if DEVICE in frame else pd.Series(dtype="int64")
                if len(named) == 0:
                    continue
                counts = named.value_counts()
                device = int(counts[counts == counts.max()].index.min())
                other_devices = ", ".join(str(other) for other in sorted(counts.index) if other != device)
                if other_devices:
                    self._warn("loader.msprof.devices", device=device, others=other_devices)
                return device, bool(other_devices)
        return None, False

    def _take(self, read: _Read, several_devices: bool) -> None:
        export = self.export
        for table, frame in read.frames.items():
            before = export.tables.get(table)
            if before is not None and table != PORTS.name:
                continue
            if several_devices and read.deliverable is TIMELINE and table in _OF_DEVICE:
                reason = message("loader.msprof.devices_mixed", file=read.sources[table].file)
                export.missing[table] = lacking(reason, "loader.collect.msprof_one_device")
                continue
            if DEVICE in frame:
                frame = frame[(frame[DEVICE] < 0) | (frame[DEVICE] == self.device)]
            if read.deliverable is OP_SUMMARY and table == KERNELS.name:
                frame = frame.assign(step=self._steps(frame))
            if read.deliverable is OPERATOR_MEMORY:
                frame = released(frame)
            if len(frame):
                found = Table(SCHEMAS[table], SCHEMAS[table].conform(frame), read.sources[table])
                export.tables[table] = found if before is None else both(before, found)
                export.missing.pop(table, None)
        for table, missing in read.missing.items():
            if table not in export.tables:
                export.missing.setdefault(table, missing)

    def _leave_out_lone_tasks(self, reads: Sequence[_Read]) -> None:
        """task_time names the tasks of collectives, not the collectives: alone it would make their time idle."""
        tasks = self.export.tables.get("device_tasks")
        sources = [read.sources.get("device_tasks") for read in reads if read.deliverable is TASK_TIME]
        if tasks is None or tasks.source not in sources or "kernels" in self.export.tables:
            return
        del self.export.tables["device_tasks"]
        reason = message("loader.msprof.lone_tasks", file=tasks.source.file)
        self.export.missing["device_tasks"] = lacking(reason, TASK_TIME.collect)

    def _steps(self, kernels: pd.DataFrame) -> Int64Array:
        """The step of each kernel: as it is named, or the run of a graph as far as the export counts them."""
        if (kernels["step"] >= 0).any():
            return kernels["step"].to_numpy()
        read = self._read(ITERATIONS)
        for table, frame in read.frames.items():
            runs = frame[(frame[DEVICE] < 0) | (frame[DEVICE] == self.device)]
            if len(runs):
                return self._note_runs(by_iterations(kernels, runs), read.sources[table].file)
        return self._note_runs(by_inference(kernels), self._together(self._files.exports[OP_SUMMARY.kind]))

    def _note_runs(self, numbers: Int64Array, file: str) -> Int64Array:
        if (numbers >= 0).any():
            note = message("loader.msprof.runs", file=file)
            self.export.diagnostics.append(Diagnostic(severity="info", source=file, message=note))
        return numbers

    def _say_both(self, chosen: str, filled: Sequence[str]) -> None:
        other = "text" if chosen == "DB" else "DB"
        note = (
            message("loader.both_filled", chosen=chosen, other=other, tables=", ".join(filled))
            if filled
            else message("loader.both", chosen=chosen, other=other)
        )
        self.export.diagnostics.append(Diagnostic(severity="info", source=self._name, message=note))

    def _read_database(self, path: Path) -> bool:
        """The tables that the export does not have yet, from the DB export, and whether it could be used. How to record
        what it lacks too is said in the options of msprof, not in those of the profiler whose readers these are."""
        export = self.export
        collect = {table: file.collect for file in reversed(DELIVERABLES) for table in file.tables}
        lacked = sorted(IN_DATABASE - export.tables.keys())
        try:
            database_export, device = read_database(self._place, path, lacked)
        except Unavailable as failure:
            source = self._place.shown(path)
            # beside a text export it is only not needed
            severity: Literal["error", "info"] = "info" if self._files.timed else "error"
            export.diagnostics.append(Diagnostic(severity=severity, source=source, message=failure.reason))
            if not self._files.timed:
                export.missing |= {table: lacking(failure.reason, collect[table], failure.collect) for table in lacked}
            return False
        if self.device is not None and device not in (None, self.device):
            return False
        self.device = device if self.device is None else self.device
        export.files += database_export.files
        export.diagnostics += database_export.diagnostics
        for table in lacked:
            if table in database_export.tables:
                export.tables[table] = database_export.tables[table]
                export.missing.pop(table, None)
            else:
                export.missing.setdefault(table, lacking(database_export.missing[table].reason, collect[table]))
        return True

    def _read_analysis(self) -> None:
        """communication.json and communication_matrix.json: msprof writes them as the PyTorch profiler does. What they
        lack is looked for in the database that it may write in their place."""
        for deliverable, read in ((ascend_files.COMMUNICATION, read_communication), (ascend_files.MATRIX, read_matrix)):
            path = self._files.analysis.get(deliverable.name)
            try:
                if path is None:
                    raise self._no(deliverable.name, "loader.collect.msprof_analysis").error()
                frames, file = self._open(path, read)
            except Unavailable as failure:
                if path is not None:
                    source = self._place.shown(path)
                    self.export.diagnostics.append(Diagnostic(severity="error", source=source, message=failure.reason))
                missing = lacking(failure.reason, "loader.collect.msprof_analysis", failure.collect)
                self.export.missing |= dict.fromkeys(deliverable.tables, missing)
                continue
            for table, frame in frames.items():
                offset = LineSource(file.name, file.sha256, "offset")
                self.export.tables[table] = Table(SCHEMAS[table], frame, offset)
        path = self._files.analysis.get(ANALYSED)
        lacked = {"collectives", "collective_bandwidth", "links"} - self.export.tables.keys()
        if path is None or not lacked:
            return
        with AscendDatabases(self._place, None, path) as databases:
            database_export = databases.read(lacked, None)
        self.export.files += database_export.files
        self.export.diagnostics += database_export.diagnostics
        self.export.tables |= database_export.tables
        for table in database_export.tables:
            del self.export.missing[table]

    def _absence(self, deliverable: Deliverable) -> Missing:
        return self._no(deliverable.pattern, deliverable.collect)

    def _no(self, file: str, collect: str) -> Missing:
        if not self._place.root.is_dir():
            reason = message("loader.only_file", file=self._place.root.name, absent=file)
            return lacking(reason, "loader.collect.msprof_directory")
        return lacking(message("loader.absent", file=file), collect)

    def _together(self, paths: Sequence[Path]) -> str:
        """The name of the files of one export: the only one's name, or ``op_summary_slice_*_20240101000000.csv``."""
        name = self._place.shown(paths[0])
        named = export_name(paths[0].name)
        return name if len(paths) == 1 or named is None else name.replace(f"_slice_{named.slice}_", "_slice_*_")
