"""Read analysis.db, the exporter's own analysis: steps, collectives, transferred bytes and links.

Times are us in StepTraceTime and ms elsewhere, whatever the documentation says (checked on real exports); sizes are MB
of 10**6 bytes, bandwidths GB/s.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd

from advisor_core.contracts.missing import Unavailable
from advisor_core.contracts.tables import Int64Array
from advisor_core.loaders.readers import times
from advisor_core.loaders.readers.database import Database, RowidSource
from advisor_core.text.messages import message

if TYPE_CHECKING:
    import numpy.typing as npt

_TOTAL: Final = "Total Op Info"
_MS_TO_US: Final = 1000.0
_US_TO_NS: Final = 1000.0
_STEP_COLUMNS: Final = {
    "computing_ns": "computing",
    "uncovered_communication_ns": "communication_not_overlapped",
    "overlapped_ns": "overlapped",
    "communication_ns": "communication",
    "free_ns": "free",
    "stage_ns": "stage",
    "bubble_ns": "bubble",
    "preparing_ns": "preparing",
}
_TIME_COLUMNS: Final = {
    "elapse_ns": "elapse_time",
    "transit_ns": "transit_time",
    "wait_ns": "wait_time",
    "synchronization_ns": "synchronization_time",
    "idle_ns": "idle_time",
}


def step_trace(database: Database, source: RowidSource) -> pd.DataFrame:
    """StepTraceTime: one row per step."""
    texts = _texts(database, "StepTraceTime", ["step"], ["computing"])
    amounts = database.floats("StepTraceTime", list(_STEP_COLUMNS.values()))
    frame = pd.DataFrame({name: amounts[column] * _US_TO_NS for name, column in _STEP_COLUMNS.items()})
    for name in _STEP_COLUMNS.keys() - {"preparing_ns"}:  # across two clocks, so that one may be negative
        frame[name] = frame[name].where(frame[name] >= 0)
    frame["step"] = _steps(texts["step"])
    frame["source_row"] = source.add("StepTraceTime", texts["rowid"].to_numpy())
    return frame[frame["computing_ns"].notna()]


def collectives(database: Database, source: RowidSource) -> pd.DataFrame:
    """CommAnalyzerTime: one row per operation."""
    table = "CommAnalyzerTime"
    texts = _operations(database, table, ["type"], ["start_timestamp", "elapse_time"])
    amounts = database.floats(table, ["start_timestamp", *_TIME_COLUMNS.values()])
    frame = _named(texts)
    frame["kind"] = texts["type"].astype("category")
    frame["start_ns"] = _points(amounts["start_timestamp"])
    for name, column in _TIME_COLUMNS.items():
        frame[name] = times.spans_ns(amounts[column] * _MS_TO_US)
    frame["source_row"] = source.add(table, texts["rowid"].to_numpy())
    return _used(frame[is_operation(texts) & (frame["elapse_ns"] != times.NO_TIME)], database, table)


def collective_bandwidth(database: Database, source: RowidSource) -> pd.DataFrame:
    """CommAnalyzerBandwidth: one row per operation and transport; the table itself has one per size of packet."""
    table = "CommAnalyzerBandwidth"
    texts = _operations(database, table, ["transport_type"], ["transit_size", "transit_time"])
    columns = ["transit_size", "transit_time", "bandwidth", "large_packet_ratio", "package_size", "count"]
    amounts = pd.DataFrame(database.floats(table, columns))
    frame = _named(texts).assign(transport=texts["transport_type"])
    frame["bytes"] = _bytes(amounts["transit_size"])
    frame["transit_ns"] = times.spans_ns(amounts["transit_time"].to_numpy() * _MS_TO_US)
    frame["bandwidth"] = amounts["bandwidth"] * 1e9
    frame["large_packet_ratio"] = amounts["large_packet_ratio"]
    frame["packets"] = amounts["count"].fillna(0).clip(lower=0).astype(np.int64)
    frame["max_packet_bytes"] = np.where(frame["packets"] > 0, _bytes(amounts["package_size"]), -1)
    frame["source_row"] = source.add(table, texts["rowid"].to_numpy())
    moved = is_operation(texts) & ((frame["bytes"] > 0) | (frame["transit_ns"] > 0))
    keys = ["step", "name", "group", "transport"]
    grouped = frame[moved].groupby(keys, sort=False, observed=True)
    sums = grouped.agg(
        bytes=("bytes", "first"),
        transit_ns=("transit_ns", "first"),
        bandwidth=("bandwidth", "first"),
        large_packet_ratio=("large_packet_ratio", "first"),
        packets=("packets", "sum"),
        max_packet_bytes=("max_packet_bytes", "max"),
        source_row=("source_row", "first"),
    )
    result: pd.DataFrame = sums.reset_index()
    return result


def links(database: Database, source: RowidSource) -> pd.DataFrame:
    """CommAnalyzerMatrix: one row per operation and pair of ranks of its group."""
    table = "CommAnalyzerMatrix"
    texts = _operations(database, table, ["src_rank", "dst_rank", "transport_type", "op_name"], ["transit_size"])
    amounts = database.floats(table, ["transit_size", "transit_time", "bandwidth"])
    frame = _named(texts)
    frame["op"] = texts["op_name"].str.split("@").str[0].astype("category")
    frame["source_rank"], frame["target_rank"] = _ranks(texts["src_rank"]), _ranks(texts["dst_rank"])
    frame["transport"] = texts["transport_type"].astype("category")
    frame["bytes"] = _bytes(pd.Series(amounts["transit_size"]))
    frame["transit_ns"] = times.spans_ns(amounts["transit_time"] * _MS_TO_US)
    frame["bandwidth"] = amounts["bandwidth"] * 1e9
    frame["source_row"] = source.add(table, texts["rowid"].to_numpy())
    possible = is_operation(texts) & (frame["source_rank"] >= 0) & (frame["target_rank"] >= 0)
    return _used(frame[possible], database, table)


def _operations(database: Database, table: str, more: Sequence[str], needed: Sequence[str]) -> pd.DataFrame:
    return _texts(database, table, ["hccl_op_name", "group_name", "step", *more], needed)


def _texts(database: Database, table: str, columns: Sequence[str], needed: Sequence[str]) -> pd.DataFrame:
    """Rowid and text columns; a column that the table lacks is ''. ``needed``: columns it must have."""
    database.require(table, *needed)
    frame = pd.DataFrame(database.integers(table, {}))
    if frame.empty:
        raise Unavailable(message("loader.no_table_rows", file=database.file, table=table))
    return frame.assign(**database.texts(table, columns))


def _named(texts: pd.DataFrame) -> pd.DataFrame:
    parts = texts["hccl_op_name"].str.partition("@")
    group = texts["group_name"].where(texts["group_name"] != "", parts[2])
    return pd.DataFrame(
        {"step": _steps(texts["step"]), "name": parts[0].astype("category"), "group": group.astype("category")}
    )


def is_operation(texts: pd.DataFrame) -> pd.Series:
    """Mask of the rows of single operations; the others are totals."""
    return ~texts["hccl_op_name"].str.startswith(_TOTAL)


def _used(frame: pd.DataFrame, database: Database, table: str) -> pd.DataFrame:
    if frame.empty:
        raise Unavailable(message("loader.no_table_rows", file=database.file, table=table))
    used = frame.copy()
    for column in used.select_dtypes("category"):
        used[column] = used[column].cat.remove_unused_categories()
    return used


def _steps(texts: pd.Series) -> Int64Array:
    """``step50`` and ``50`` are 50; -1 where no number is named."""
    return texts.str.extract(re.compile(r"(\d{1,18})\s*$"))[0].fillna("-1").to_numpy().astype(np.int64)


def _ranks(texts: pd.Series) -> Int64Array:
    return texts.where(texts.str.fullmatch(r"\d{1,9}"), "-1").to_numpy().astype(np.int64)


def _bytes(megabytes: pd.Series) -> Int64Array:
    possible = (megabytes >= 0) & (megabytes < 2**40)
    return np.where(possible, np.rint(megabytes.where(possible, 0.0) * 1e6), -1).astype(np.int64)


def _points(us: npt.NDArray[np.float64]) -> Int64Array:
    """ns of points in us, which the exporter stores as floats: good to a quarter of a microsecond."""
    possible = (us >= 0) & (us < 2**53)
    whole = np.floor(np.where(possible, us, 0.0))
    ns = whole.astype(np.int64) * 1000 + np.rint((np.where(possible, us, 0.0) - whole) * 1000).astype(np.int64)
    return np.where(possible, ns, times.NO_TIME)
