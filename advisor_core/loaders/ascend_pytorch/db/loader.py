"""The DB export of the Ascend PyTorch Profiler: the profiler's database and analysis.db beside it.

MindSpore's profiler calls them otherwise. By its source it renames what msprof exports (`msprof_db`), so that there are
no calls of the framework and no steps in it; no real one has been seen.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final

import pandas as pd

from advisor_core.contracts.missing import Missing, Unavailable
from advisor_core.contracts.tables import SCHEMAS, Table
from advisor_core.loaders.ascend_pytorch.db import analysis as db_analysis
from advisor_core.loaders.ascend_pytorch.db import device as db_device
from advisor_core.loaders.ascend_pytorch.db import host as db_host
from advisor_core.loaders.ascend_pytorch.db import memory as db_memory
from advisor_core.loaders.ascend_pytorch.db import references
from advisor_core.loaders.ascend_pytorch.db import samples as db_samples
from advisor_core.loaders.ascend_pytorch.db.records import Records
from advisor_core.loaders.export import Export, Place, lacking
from advisor_core.loaders.readers.database import Database, RowidSource
from advisor_core.loaders.readers.files import HashedFile
from advisor_core.loaders.readers.problems import Problems
from advisor_core.result.run import Diagnostic, InputFile
from advisor_core.text.messages import message

PROFILER: Final = re.compile(r"ascend_(?:pytorch|mindspore)_profiler(?:_(\d{1,9}))?\.db")
"""Name of the profiler's database; the number is the rank."""

ANALYSIS: Final = ("analysis.db", "communication_analyzer.db")
"""Names of what the exporter computed, of PyTorch's profiler and of MindSpore's."""

_PROFILER_NAME: Final = "ascend_pytorch_profiler_*.db"
_METADATA: Final = "META_DATA"
_MAY_BE_EMPTY: Final = ("communication_tasks",)
"""Without a row it says something: nothing was communicated."""

_BELOW_LEVEL1: Final = ("level_none", "level0")

Read = Callable[[Records, RowidSource], "pd.DataFrame"]
ReadAnalysis = Callable[[Database, RowidSource], "pd.DataFrame"]


@dataclass(frozen=True)
class DbTable:
    """A canonical table and how it is read, by ``read`` from the profiler's database or by ``analysis`` from what the
    exporter computed. ``tables``: it can be read where one of them is there. ``collect``, ``from_level1``: as for a
    deliverable of the text export."""

    name: str
    tables: tuple[str, ...]
    collect: str
    read: Read | None = None
    analysis: ReadAnalysis | None = None
    from_level1: bool = False


def _computed(name: str, table: str, read: ReadAnalysis) -> DbTable:
    return DbTable(name, (table,), "loader.collect.communication", analysis=read, from_level1=True)


TABLES: Final = (
    DbTable("step_trace", ("StepTraceTime",), "loader.collect.step", analysis=db_analysis.step_trace),
    DbTable("kernels", ("COMPUTE_TASK_INFO", "COMMUNICATION_OP"), "loader.collect.npu", db_device.kernels),
    DbTable("operators", ("PYTORCH_API",), "loader.collect.cpu", db_host.operators),
    DbTable("op_statistic", ("COMPUTE_TASK_INFO",), "loader.collect.level1", db_device.op_statistic, from_level1=True),
    DbTable("api_statistic", ("CANN_API",), "loader.collect.level1", db_host.api_statistic),
    _computed("collectives", "CommAnalyzerTime", db_analysis.collectives),
    _computed("collective_bandwidth", "CommAnalyzerBandwidth", db_analysis.collective_bandwidth),
    _computed("links", "CommAnalyzerMatrix", db_analysis.links),
    DbTable("host_events", ("PYTORCH_API", "CANN_API"), "loader.collect.cpu", db_host.host_events),
    DbTable("device_tasks", ("TASK",), "loader.collect.npu", db_device.device_tasks),
    DbTable("communication_tasks", ("TASK",), "loader.collect.npu", db_device.communication_tasks),
    DbTable("flows", ("CANN_API",), "loader.collect.both", db_host.flows),
    DbTable("overlap", ("OVERLAP_ANALYSIS",), "loader.collect.npu", db_device.overlap),
    DbTable("frequency", ("AICORE_FREQ",), "loader.collect.npu", db_device.frequency),
    DbTable("memory_record", ("MEMORY_RECORD",), "loader.collect.memory", db_memory.memory_record),
    DbTable("operator_memory", ("OP_MEMORY",), "loader.collect.memory", db_memory.operator_memory),
    DbTable("module_memory", ("NPU_MODULE_MEM",), "loader.collect.memory", db_memory.module_memory),
    DbTable("core_counters", ("TASK_PMU_INFO",), "loader.collect.core_counters", db_device.core_counters),
    DbTable("counters", db_samples.COUNTERS, "loader.collect.counters", db_samples.counters),
    DbTable("ports", db_samples.PORTS, "loader.collect.ports", db_samples.ports),
)

_NEVER: Final = {
    "l2_cache": ("loader.no_l2_cache_in_db", "loader.collect.l2_cache_as_text"),
    "graph_memory": ("loader.no_graph_memory_in_db", "loader.collect.as_text"),
    "ai_cpu_nodes": ("loader.no_ai_cpu_nodes_in_db", "loader.collect.as_text"),
}
"""Tables that no database has: why, and what to collect instead."""


class AscendDatabases:
    """The databases of one rank. Each may be absent (None) or unusable, which costs its own tables. A context manager:
    the files are open until it ends."""

    def __init__(self, place: Place, profiler: Path | None, analysis: Path | None) -> None:
        self._place = place
        self._stack = ExitStack()
        self._problems: list[Problems] = []
        self._profiler, self._profiler_gone = self._open(profiler, _PROFILER_NAME)
        self._analysis, self._analysis_gone = self._open(analysis, ANALYSIS[0])
        self._records = Records(self._profiler, self._problems[0]) if self._profiler is not None else None

    def unusable(self) -> list[Diagnostic]:
        """The faults of databases that are there and cannot be opened."""
        return [diagnostic for problems in self._problems for diagnostic in problems.diagnostics()]

    def provided(self) -> set[str]:
        """The canonical tables that the databases have tables for."""
        return {table.name for table in TABLES if self._holder(table) is not None}

    def read(self, wanted: Collection[str], level: str | None) -> Export:
        """The wanted canonical tables, what the profiler's database records of the job, and the files with their
        hashes. Damage is said and costs the tables that it concerns."""
        export = Export()
        opened = [database for database in (self._profiler, self._analysis) if database is not None]
        with ThreadPoolExecutor(max_workers=1, thread_name_prefix="hash") as pool:
            hashes = [pool.submit(_hash, database.path, self._place) for database in opened]
            for table in TABLES:
                if table.name in wanted:
                    try:
                        export.tables[table.name] = self._table(table)
                    except Unavailable as reason:
                        reason_text = self._at_level(table, reason, level)
                        export.missing[table.name] = lacking(reason_text, table.collect, reason.collect)
            for name, (why, collect) in _NEVER.items():
                if name in wanted:
                    export.missing[name] = lacking(message(why), collect)
            if self._records is not None:
                references.check(self._records)
            holder = next((database for database in opened if database.has("CommAnalyzerTime")), None)
            if holder is not None:
                references.check_analysis(holder, self._problems_of(holder))
            if self._profiler is not None:
                export.metadata, export.metadata_file = _metadata(self._profiler), self._profiler.file
            files = [hashed.result() for hashed in hashes]
        for database, file in zip(opened, files, strict=True):
            problems = self._problems_of(database)
            if file is None or not database.unchanged():
                problems.say("error", message("loader.db_changed", file=database.file))
            if file is not None:
                export.files.append(file)
                for table_read in export.tables.values():
                    if isinstance(table_read.source, RowidSource) and table_read.source.file == database.file:
                        table_read.source.sha256 = file.sha256
        for problems in self._problems:
            export.diagnostics.extend(problems.diagnostics())
        return export

    def _problems_of(self, database: Database) -> Problems:
        return next(problems for problems in self._problems if problems.file == database.file)

    def _open(self, path: Path | None, name: str) -> tuple[Database | None, Missing | None]:
        """An open database, or why there is none."""
        if path is None:
            root = self._place.root
            if root.is_dir():
                return None, Missing(message("loader.absent", file=name))
            only = message("loader.only_file", file=root.name, absent=name)
            return None, Missing(only, message("loader.collect.directory"))
        problems = Problems(self._place.shown(path))
        self._problems.append(problems)
        try:
            return self._stack.enter_context(Database(path, problems.file)), None
        except Unavailable as reason:
            problems.say("error", reason.reason)
            return None, reason.missing

    def _holder(self, table: DbTable) -> Database | None:
        """The database that holds a table; what the exporter computed may also lie in the profiler's."""
        candidates = (self._profiler,) if table.analysis is None else (self._analysis, self._profiler)
        for database in candidates:
            if database is not None and any(database.has(name) for name in table.tables):
                return database
        return None

    def _table(self, table: DbTable) -> Table:
        database = self._holder(table)
        if database is None:
            gone = self._profiler_gone if table.analysis is None else self._analysis_gone
            if gone is not None:
                raise gone.error()
            looked = self._profiler if table.analysis is None else self._analysis
            assert looked is not None
            raise Unavailable(message("loader.no_table", file=looked.file, table=", ".join(table.tables)))
        source = RowidSource(database.file)
        if table.analysis is not None:
            frame = table.analysis(database, source)
        else:
            assert self._records is not None and table.read is not None
            frame = table.read(self._records, source)
        if frame.empty and table.name not in _MAY_BE_EMPTY:
            raise Unavailable(message("loader.no_table_rows", file=database.file, table=", ".join(table.tables)))
        schema = SCHEMAS[table.name]
        return Table(schema, schema.conform(frame), source)

    def _at_level(self, table: DbTable, reason: Unavailable, level: str | None) -> Any:
        """The reason, or that the level does not record such a table where that is why."""
        if table.from_level1 and level in _BELOW_LEVEL1 and self._holder(table) is None:
            return message("loader.absent_at_level", file=", ".join(table.tables), level=level)
        return reason.reason

    def __enter__(self) -> AscendDatabases:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()


def recorded_rank(path: Path) -> int | None:
    """The rank that a profiler's database is of, by its name or its RANK_DEVICE_MAP; None where neither tells."""
    named = PROFILER.fullmatch(path.name)
    if named and named[1]:
        return int(named[1])
    try:
        with Database(path, path.name) as database:
            ranks = database.integers("RANK_DEVICE_MAP", {"rank": "rankId"})["rank"]
    except Unavailable:
        return None
    return int(ranks[0]) if len(ranks) == 1 and ranks[0] >= 0 else None


def _metadata(database: Database) -> Mapping[str, Any]:
    """META_DATA: values that are JSON decoded, the others as they are."""
    if not database.has(_METADATA, "name", "value"):
        return {}
    entries = database.texts(_METADATA, ["name", "value"])
    return {name: _decoded(value) for name, value in zip(entries["name"], entries["value"], strict=True)}


def _decoded(value: str) -> Any:
    if value.lstrip()[:1] in ("{", "["):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def _hash(path: Path, place: Place) -> InputFile | None:
    """Size and hash of a file; None for one that cannot be read any more."""
    try:
        with HashedFile(path) as file:
            return file.finish(place.inside(path))
    except OSError:
        return None
