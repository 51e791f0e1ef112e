"""Say where rows of a database are lost, by the ids with which its tables name one another.

Texts, tasks, connections and call stacks are stored once and named by id. In real exports every id that is used leads
somewhere, every kernel is described once, both ends of the queue are recorded, and each kernel has the same counters.
A connection that lies outside of those recorded was made before the recording began or after it ended; one within them
that leads nowhere has lost its other end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np
import pandas as pd

from advisor_core.contracts.missing import Unavailable
from advisor_core.contracts.tables import Int64Array
from advisor_core.loaders import ascend_words as vocabulary
from advisor_core.loaders.ascend_pytorch.db.analysis import is_operation
from advisor_core.loaders.ascend_pytorch.db.records import Records
from advisor_core.loaders.ascend_words import COMPUTE_TASKS
from advisor_core.loaders.readers.database import Database
from advisor_core.loaders.readers.ids import lost_ids
from advisor_core.loaders.readers.problems import Problems
from advisor_core.text.messages import message

_TEXTS: Final[Mapping[str, tuple[str, ...]]] = {
    "TASK": ("taskType",),
    "COMPUTE_TASK_INFO": ("name", "taskType", "opType", "inputShapes", "outputShapes", "inputDataTypes"),
    "COMMUNICATION_OP": ("opName", "groupName", "opType"),
    "COMMUNICATION_TASK_INFO": ("taskType", "groupName"),
    "CANN_API": ("name",),
    "PYTORCH_API": ("name",),
    "PYTORCH_CALLCHAINS": ("stack",),
    "TASK_PMU_INFO": ("name",),
    "OP_MEMORY": ("name",),
    "MEMORY_RECORD": ("component",),
    "MSTX_EVENTS": ("message",),
}
"""Columns that hold ids of STRING_IDS. Empty ones hold no id."""


def check(records: Records) -> None:
    """Say, with table and number of rows, what names nothing. What cannot be read is said by whoever needs it."""
    for find in (_texts, _kernels, _collectives, _launches, _queue, _stacks):
        try:
            for kind, table, other, rows in find(records):
                if rows:
                    file = records.database.file
                    warning = message(f"db.{kind}", file=file, table=table, other=other, rows=rows)
                    records.problems.say("warning", warning)
        except Unavailable:
            continue


def check_analysis(database: Database, problems: Problems) -> None:
    """As `check`, of what the exporter computed: the operations of the tables of times and of bandwidths."""
    keys = ["hccl_op_name", "group_name", "step"]
    tables = ("CommAnalyzerTime", "CommAnalyzerBandwidth")
    if not all(database.has(table, *keys) for table in tables):
        return
    read = [pd.DataFrame(database.texts(table, keys), dtype=str).drop_duplicates() for table in tables]
    named = [pd.MultiIndex.from_frame(rows[is_operation(rows)]) for rows in read]
    for (table, other), (operations, other_operations) in zip(
        (tables, tables[::-1]), (named, named[::-1]), strict=True
    ):
        if rows := len(operations.difference(other_operations)):
            problems.say("warning", message("db.without", file=database.file, table=table, other=other, rows=rows))


Lost = Iterator[tuple[str, str, str, int]]
"""Message, table, the table that it names, number of rows."""


def _texts(records: Records) -> Lost:
    stored = records.strings.numbers
    for table, columns in _TEXTS.items():
        lost = 0
        for column in columns:
            if records.database.has(table, column):
                used = records.database.distinct(table, column)
                lost += int(np.isin(used, stored, invert=True).sum())
        yield "texts_lost", table, "STRING_IDS", lost


def _kernels(records: Records) -> Lost:
    """Descriptions of kernels and of parts of collectives without a task, and kernels without a description."""
    database = records.database
    if not database.has("TASK", "globalTaskId"):
        return
    ids = database.distinct("TASK", "globalTaskId")
    for table in ("COMPUTE_TASK_INFO", "COMMUNICATION_TASK_INFO", "TASK_PMU_INFO"):
        if database.has(table, "globalTaskId"):
            named = database.distinct(table, "globalTaskId")
            yield "names_nothing", table, "TASK", int(np.isin(named, ids, invert=True).sum())
    if not records.describes_kernels:
        return
    tasks = records.tasks_by_id
    kinds = records.strings.categorical(tasks["type"].to_numpy(), vocabulary.task_type)
    described = tasks["id"].isin(records.compute["id"]) | tasks["id"].isin(records.communication_parts["id"])
    of_collectives = tasks["connection"].isin(records.collectives["connection"])
    bare = kinds.isin(COMPUTE_TASKS) & ~described & ~of_collectives
    yield "undescribed", "TASK", "COMPUTE_TASK_INFO", int(bare.sum())
    parts = set(tasks["type"][tasks["id"].isin(records.communication_parts["id"])])
    lone = tasks["type"].isin(parts) & ~kinds.isin(COMPUTE_TASKS) & of_collectives & ~described
    yield "undescribed", "TASK", "COMMUNICATION_TASK_INFO", int(lone.sum())
    yield "repeated", "COMPUTE_TASK_INFO", "TASK", database.count("COMPUTE_TASK_INFO") - len(records.compute)


def _collectives(records: Records) -> Lost:
    database = records.database
    if not database.has("COMMUNICATION_TASK_INFO", "opId"):
        return
    parts = database.distinct("COMMUNICATION_TASK_INFO", "opId")
    whole = records.collectives["op"].to_numpy()
    yield "names_nothing", "COMMUNICATION_TASK_INFO", "COMMUNICATION_OP", int(np.isin(parts, whole, invert=True).sum())
    if len(parts):  # below level 1 no collective has tasks
        yield "without", "COMMUNICATION_OP", "COMMUNICATION_TASK_INFO", int(np.isin(whole, parts, invert=True).sum())


def _launches(records: Records) -> Lost:
    """Tasks and collectives whose call is lost."""
    if not records.database.has("CANN_API", "startNs", "endNs", "connectionId"):
        return
    calls = records.calls["connection"].to_numpy()
    for table, rows in records.launched.groupby("table"):
        yield "names_nothing", str(table), "CANN_API", _lost(rows["connection"].to_numpy(), calls)
    levels = records.api_types.categorical(records.calls["type"].to_numpy())
    names = records.strings.categorical(records.calls["name"].to_numpy())
    launching = calls[np.asarray((levels == "node") & (names == "launch"))]
    reached = np.concatenate([records.tasks["connection"].to_numpy(), records.collectives["connection"].to_numpy()])
    yield "names_nothing", "CANN_API", "TASK", _lost(launching, reached)


def _queue(records: Records) -> Lost:
    """Links of calls of the framework, and ends of its queue without the other end."""
    database = records.database
    used = stored = np.empty(0, np.int64)
    if database.has("PYTORCH_API", "connectionId"):
        used = database.distinct("PYTORCH_API", "connectionId")
    if database.has("CONNECTION_IDS", "id"):
        stored = database.distinct("CONNECTION_IDS", "id")
    yield "names_nothing", "PYTORCH_API", "CONNECTION_IDS", int(np.isin(used, stored, invert=True).sum())
    yield "names_nothing", "CONNECTION_IDS", "PYTORCH_API", int(np.isin(stored, used, invert=True).sum())
    calls = records.framework
    queue = records.links[(calls["kind"] == "queue").to_numpy()[records.links["row"]]]
    ends = queue.groupby("connection").size()
    within = (ends.index > ends.index.min()) & (ends.index < ends.index.max())
    yield "one_end", "PYTORCH_API", "PYTORCH_API", int(((ends != 2) & within).sum())


def _stacks(records: Records) -> Lost:
    database = records.database
    if not database.has("PYTORCH_API", "callchainId"):
        return
    used = database.distinct("PYTORCH_API", "callchainId")
    stored = np.empty(0, np.int64)
    if database.has("PYTORCH_CALLCHAINS", "id"):
        stored = database.distinct("PYTORCH_CALLCHAINS", "id")
    yield "names_nothing", "PYTORCH_API", "PYTORCH_CALLCHAINS", int(np.isin(used, stored, invert=True).sum())
    yield "names_nothing", "PYTORCH_CALLCHAINS", "PYTORCH_API", int(np.isin(stored, used, invert=True).sum())


def _lost(named: Int64Array, recorded: Int64Array) -> int:
    """As `lost_ids`; all of the ids where no row that they could name is left."""
    return lost_ids(named, recorded) if (recorded >= 0).any() else int((named >= 0).sum())
