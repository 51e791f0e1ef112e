"""The content of one kind of export of a rank, before several kinds are merged."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from advisor_core.contracts.missing import Missing
from advisor_core.contracts.tables import Table
from advisor_core.result.run import Diagnostic, InputFile
from advisor_core.text.base import Text
from advisor_core.text.messages import message

_OPTIONS: Final = {
    "loader.collect.npu": ("device",),
    "loader.collect.cpu": ("host",),
    "loader.collect.both": ("host", "device"),
    "loader.collect.step": ("device", "steps"),
    "loader.collect.level1": ("level1",),
    "loader.collect.communication": ("level1",),
    "loader.collect.memory": ("memory",),
    # One recording has one group of counters: these would take the times of pipes, or need an option of their own.
    "loader.collect.core_counters": (),
    "loader.collect.l2_cache": (),
    "loader.collect.graph_memory": ("memory",),
    # Level 2 alone exports what prepares data on the AI CPU: nothing that a first look should cost.
    "loader.collect.level2": (),
    "loader.collect.counters": (),
    "loader.collect.ports": (),
    "loader.collect.msprof_tasks": ("device", "level1"),
    "loader.collect.msprof_timeline": ("device", "level1"),
    "loader.collect.msprof_api": ("level1",),
    "loader.collect.msprof_memory": ("memory",),
    "loader.collect.msprof_task_memory": ("memory",),
    "loader.collect.msprof_framework": ("host", "steps"),
}
"""The options that the messages about collecting a table ask for, as ids of ``collecting/options.yaml``."""


def lacking(reason: Text, collect: str, instead: Text | None = None) -> Missing:
    """A table that is not there. ``collect``: id of the message that says how to get it. ``instead``: what else has
    to be done, where the table was collected and is only not at hand."""
    if instead is not None:
        return Missing(reason, instead)
    return Missing(reason, message(collect), _OPTIONS.get(collect, ()))


@dataclass(frozen=True)
class Place:
    """The location of a rank. ``root``: the path that the user named; ``directory``: the profile's directory."""

    root: Path
    directory: Path

    def shown(self, path: Path) -> str:
        """The name of a file in a report: relative to what the user named."""
        return Path(os.path.relpath(path, self.root if self.root.is_dir() else self.root.parent)).as_posix()

    def inside(self, path: Path) -> str:
        """The name of a file within the profile, the same from wherever it is named."""
        return Path(os.path.relpath(path, self.directory)).as_posix()


@dataclass
class Export:
    """``tables``: canonical tables that could be read; ``missing``: why the others could not. ``metadata``: what the
    export records of the job, as in profiler_metadata.json, and ``metadata_file`` where."""

    tables: dict[str, Table] = field(default_factory=dict)
    missing: dict[str, Missing] = field(default_factory=dict)
    files: list[InputFile] = field(default_factory=list)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    metadata_file: str = ""
