"""The DB export: one ``*_ascend_pt`` directory per rank with two SQLite files, as torch_npu writes them.

Its tables: docs/sources.md#database-export.
"""

from __future__ import annotations

from pathlib import Path

from ..export.directory import rank_directory, rank_suffix
from ..export.generation import Names
from ..export.recording import Recording
from ..timeline import Timeline
from .analysis import communication_tables, step_trace_table
from .database import Database, Strings
from .device import DeviceTables
from .enums import enumerations
from .framework import FrameworkTables
from .memory import allocator_tables, sampled_tables
from .session import cann_api, framework_session, session

FRAMEWORK_STRINGS = 1 << 28
MEMORY_STRINGS = 2 << 28
"""The first id of the strings that the framework adds, below that of CANN's own part of the file."""


def write_db(timeline: Timeline, directory: Path, names: Names, recording: Recording) -> Path:
    """Write the export of one rank below ``directory``; returns the directory of the rank.

    The tables are those of a profile with memory that was taken at the level of ``recording``. As in real exports, a
    table without rows is left out.
    """
    root = rank_directory(timeline, directory, names, recording, "db")
    output = root / "ASCEND_PROFILER_OUTPUT"
    strings, added, memory = Strings(), Strings(FRAMEWORK_STRINGS), Strings(MEMORY_STRINGS)
    with Database(output / f"ascend_pytorch_profiler{rank_suffix(timeline)}.db") as database:
        session(database, timeline)
        enumerations(database, names)
        if recording.device:
            DeviceTables(timeline, names, recording, strings).write(database)
            cann_api(database, timeline, recording, strings)
        sampled_tables(database, timeline, strings)
        framework_session(database, timeline, names)
        allocator_tables(database, timeline, memory)
        FrameworkTables(timeline, recording, added).write(database)
        database.table("STRING_IDS", [*strings.rows, *added.rows, *memory.rows])
    if recording.device:
        with Database(output / "analysis.db") as database:
            step_trace_table(database, timeline, names)
            if recording.details and timeline.collectives:
                communication_tables(database, timeline)
    return root
