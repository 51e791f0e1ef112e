"""Read the memory tables of a DB export, where every size is in bytes."""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd

from advisor_core.contracts.tables import Int64Array
from advisor_core.loaders.ascend_pytorch.db.records import Records, categorical, possible
from advisor_core.loaders.readers.database import RowidSource

_GRAPH_ENGINE: Final = "cann::"
"""The prefix of the name of an operator of GE, which has no stream, in operator_memory.csv."""


def memory_record(records: Records, source: RowidSource) -> pd.DataFrame:
    """MEMORY_RECORD and, as component APP, what the whole process holds (NPU_MEM), in order of time."""
    database = records.database
    database.require("MEMORY_RECORD", "component", "timestamp")
    read = pd.DataFrame(database.integers("MEMORY_RECORD", {"time_ns": "timestamp", "component": "component"}))
    amounts = database.floats("MEMORY_RECORD", ["totalAllocated", "totalReserved", "totalActive"])
    columns = {"allocated_bytes": "totalAllocated", "reserved_bytes": "totalReserved", "active_bytes": "totalActive"}
    read = read.assign(**{name: amounts[column] for name, column in columns.items()})
    read = records.usable_rows("MEMORY_RECORD", read, possible(read["time_ns"]))
    read["source_row"] = source.add("MEMORY_RECORD", read["rowid"].to_numpy())
    names = records.strings.of(read["component"].drop_duplicates().to_numpy())
    by_id = dict(zip(read["component"].drop_duplicates().tolist(), names, strict=True))
    app = _process(records, source)
    frame = pd.concat([read, app], ignore_index=True)
    codes, distinct = pd.factorize(frame["component"])
    frame["component"] = categorical(codes, [by_id.get(number, "APP") for number in distinct.tolist()])
    return frame.sort_values("time_ns", kind="stable", ignore_index=True)


def _process(records: Records, source: RowidSource) -> pd.DataFrame:
    database = records.database
    if not database.has("NPU_MEM", "type", "timestampNs", "hbm"):
        return pd.DataFrame({name: np.empty(0, np.int64) for name in ("time_ns", "component", "source_row")})
    read = pd.DataFrame(database.integers("NPU_MEM", {"time_ns": "timestampNs", "type": "type"}))
    amounts = database.floats("NPU_MEM", ["hbm", "ddr"])
    read["reserved_bytes"] = amounts["hbm"] + np.nan_to_num(amounts["ddr"])
    kinds = records.strings.categorical(read["type"].to_numpy(), str.lower)
    chosen: pd.DataFrame = read[np.asarray(kinds == "app") & possible(read["time_ns"])].reset_index(drop=True)
    rows = source.add("NPU_MEM", chosen["rowid"].to_numpy())
    return chosen[["time_ns", "reserved_bytes"]].assign(component=-2, source_row=rows)


def operator_memory(records: Records, source: RowidSource) -> pd.DataFrame:
    """OP_MEMORY as stored. What was released after the profile has no time of release."""
    database = records.database
    database.require("OP_MEMORY", "name", "size", "allocationTime")
    columns = {
        "name": "name",
        "allocation_ns": "allocationTime",
        "release_ns": "releaseTime",
        "stream": "streamPtr",
    }
    read = pd.DataFrame(database.integers("OP_MEMORY", columns))
    amounts = database.floats("OP_MEMORY", ["size", "allocationTotalAllocated", "allocationTotalReserved"])
    read["bytes"] = amounts["size"]
    read["allocated_bytes"] = amounts["allocationTotalAllocated"]
    read["reserved_bytes"] = amounts["allocationTotalReserved"]
    for column in ("allocation_ns", "release_ns"):
        read[column] = read[column].where(possible(read[column]), -1)
    backward = (read["allocation_ns"] > 0) & (read["release_ns"] > 0) & (read["release_ns"] < read["allocation_ns"])
    read = records.usable_rows("OP_MEMORY", read, ~backward & read["bytes"].notna())
    read["name"] = _names(records, read["name"].to_numpy(), read["stream"].to_numpy())
    return read.assign(source_row=source.add("OP_MEMORY", read["rowid"].to_numpy()))


def _names(records: Records, names: Int64Array, streams: Int64Array) -> pd.Categorical:
    codes, distinct = pd.factorize(2 * names + (streams < 0))
    texts = records.strings.of(np.asarray(distinct, np.int64) >> 1)
    prefixed = [
        _GRAPH_ENGINE + text if number & 1 and text and "::" not in text else text
        for number, text in zip(distinct.tolist(), texts, strict=True)
    ]
    return categorical(codes, prefixed)


def module_memory(records: Records, source: RowidSource) -> pd.DataFrame:
    """NPU_MODULE_MEM in order of time."""
    database = records.database
    database.require("NPU_MODULE_MEM", "moduleId", "timestampNs", "totalReserved")
    read = pd.DataFrame(database.integers("NPU_MODULE_MEM", {"time_ns": "timestampNs", "component": "moduleId"}))
    read["reserved_bytes"] = database.floats("NPU_MODULE_MEM", ["totalReserved"])["totalReserved"]
    read = records.usable_rows("NPU_MODULE_MEM", read, possible(read["time_ns"]))
    read["component"] = records.enumeration("ENUM_MODULE").categorical(read["component"].to_numpy())
    return read.assign(source_row=source.add("NPU_MODULE_MEM", read["rowid"].to_numpy()))
