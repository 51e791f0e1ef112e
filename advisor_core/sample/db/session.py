"""Tables about the session, the machine and the steps, and the calls into CANN."""

from __future__ import annotations

import json

from ..export.calls import cann_calls
from ..export.counters import clock_samples
from ..export.directory import HOST_NAME
from ..export.generation import Names
from ..export.metadata import profiler_metadata
from ..export.recording import Recording
from ..timeline import Timeline
from .database import Database, Strings
from .enums import API_TYPES, number

HOST_UID = "3538958389648580163"
CHIP_NAME = "Ascend910B"
"""The name of any chip of this family in the file (docs/sources.md#database-export)."""
SCHEMA_VERSION = (1, 0, 0)


def session(database: Database, timeline: Timeline) -> None:
    """Write the host and the time of the profile."""
    database.table("NPU_INFO", [(timeline.device, CHIP_NAME)])
    database.table("SESSION_TIME_INFO", [(timeline.start, timeline.end)])
    database.table("HOST_INFO", [(HOST_UID, HOST_NAME)])


def framework_session(database: Database, timeline: Timeline, names: Names) -> None:
    """Versions and settings, the rank if there are several, and the profiled steps."""
    parts = dict(zip(("MAJOR", "MINOR", "MICRO"), SCHEMA_VERSION, strict=True))
    versions = [(f"SCHEMA_VERSION_{part}", str(parts[part])) for part in ("MICRO", "MINOR", "MAJOR")]
    settings = [(key, json.dumps(value)) for key, value in profiler_metadata(timeline, names).items()]
    schema = ("SCHEMA_VERSION", ".".join(map(str, SCHEMA_VERSION)))
    database.table("META_DATA", [*versions, schema, *settings])
    if timeline.world_size > 1:
        database.table("RANK_DEVICE_MAP", [(timeline.rank, timeline.device)])
    database.table("STEP_TIME", [(step.number, step.start, step.end) for step in timeline.steps])


def global_tid(timeline: Timeline, tid: int) -> int:
    """Process and thread in one number."""
    return timeline.pid << 32 | tid


def cann_api(database: Database, timeline: Timeline, recording: Recording, strings: Strings) -> None:
    """Every call into CANN; unlike in text exports, from level 0 on (docs/sources.md#database-export)."""
    calls = sorted(cann_calls(timeline, recording), key=lambda call: call.connection)
    rows = [
        (
            call.start,
            call.end,
            number(API_TYPES, call.level),
            global_tid(timeline, call.tid),
            call.connection,
            strings(call.name.partition("@")[2]),
        )
        for call in calls
    ]
    database.table("CANN_API", rows)
    frequency = [(timeline.device, time, mhz) for time, mhz in clock_samples(timeline)]
    database.table("AICORE_FREQ", frequency)
