"""The directory of one rank and what says how its profile was taken."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

from ..timeline import Timeline
from .generation import Names
from .metadata import profiler_info, profiler_metadata
from .recording import Recording

HOST_NAME = "node-1"


def rank_suffix(timeline: Timeline) -> str:
    """The suffix in the names of files that belong to one rank of several."""
    return f"_{timeline.rank}" if timeline.world_size > 1 else ""


def rank_directory(timeline: Timeline, directory: Path, names: Names, recording: Recording, export: str) -> Path:
    """Make the directory of a rank, with its settings and an empty ``ASCEND_PROFILER_OUTPUT``."""
    stamp = datetime.fromtimestamp(timeline.start // 1_000_000_000, UTC).strftime("%Y%m%d%H%M%S")
    root = directory / f"{HOST_NAME}_{timeline.pid}_{stamp}{timeline.start // 1_000_000 % 1000:03d}_ascend_pt"
    (root / "ASCEND_PROFILER_OUTPUT").mkdir(parents=True, exist_ok=True)
    info = profiler_info(timeline, names, recording, export)
    write_json(root / f"profiler_info{rank_suffix(timeline)}.json", info, indent=4)
    # Older DB exports have their metadata in the database alone (docs/sources.md#database-export).
    if export == "text" or names.has_versions:
        write_json(root / "profiler_metadata.json", profiler_metadata(timeline, names), indent=4)
    return root


def write_json(path: Path, data: object, indent: int | None = None) -> None:
    """Write a JSON document."""
    path.write_text(json.dumps(data, indent=indent), encoding="utf-8")
