"""The database of an msprof export (``msprof_20240101000000.db``), beside the text export or in place of it.

By the documentation of msprof its tables are those of the PyTorch profiler's database without the framework's own
(PYTORCH_API, STEP_TIME), in the same units; no real one has been seen.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Final

from advisor_core.contracts.missing import Missing, Unavailable
from advisor_core.loaders.ascend_pytorch.db import loader as ascend_db
from advisor_core.loaders.ascend_pytorch.db.loader import AscendDatabases
from advisor_core.loaders.export import Export, Place
from advisor_core.loaders.msprof.files import NEVER
from advisor_core.loaders.readers.database import Database
from advisor_core.text.messages import message

TABLES: Final = (
    frozenset(table.name for table in ascend_db.TABLES if table.read is not None) - NEVER.keys() - {"operator_memory"}
)
"""The canonical tables that may be read from it. What the exporter computed lies in ``analyze`` beside it; allocations
are the framework's in the database of its profiler."""


def provided(place: Place, path: Path) -> set[str]:
    """The canonical tables that it has tables for; none for a file that is no database."""
    with AscendDatabases(place, path, None) as databases:
        return databases.provided() & TABLES


def read_database(place: Place, path: Path, wanted: Collection[str] = TABLES) -> tuple[Export, int | None]:
    """The wanted tables of the only device, and that device (None where no task names one). Raises `Unavailable` for a
    file that is no database, and for one of several devices: what they did at a time must not be added up."""
    device = _device(place, path)
    with AscendDatabases(place, path, None) as databases:
        export = databases.read(wanted, None)
    if "kernels" not in wanted:
        return export, device
    kernel_frames = [
        export.tables[table].frame for table in ("kernels", "communication_tasks") if table in export.tables
    ]
    if "device_tasks" in export.tables and not any(len(frame) for frame in kernel_frames):
        # the tasks of collectives cannot be told from others: their time would count as idle
        del export.tables["device_tasks"]
        reason = message("loader.no_table", file=place.shown(path), table="COMPUTE_TASK_INFO, COMMUNICATION_OP")
        export.missing["device_tasks"] = Missing(reason)
    return export, device


def _device(place: Place, path: Path) -> int | None:
    name = place.shown(path)
    with Database(path, name) as database:
        if not database.has("TASK", "deviceId"):
            return None
        devices = sorted(set(database.integers("TASK", {"device": "deviceId"}, rowid=False)["device"].tolist()) - {-1})
    if len(devices) > 1:
        reason = message("loader.msprof.db_devices", file=name, devices=", ".join(map(str, devices)))
        raise Unavailable(reason, message("loader.collect.msprof_one_device"))
    return devices[0] if devices else None
