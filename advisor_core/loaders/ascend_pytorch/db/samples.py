"""Read what a DB export sampled over time: rates of memory, caches and links, and what network ports counted.

Everything is in bytes and ns (docs/sources.md#sampled-counters). Of these tables HBM and LLC have been seen in real
exports; the others follow the documentation of msprof.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np
import pandas as pd

from advisor_core.loaders.ascend_pytorch.db.records import Records, possible
from advisor_core.loaders.readers import counters as counted
from advisor_core.loaders.readers import ports as network
from advisor_core.loaders.readers.counters import Sampled
from advisor_core.loaders.readers.database import RowidSource

_PLAIN: Final[Mapping[str, tuple[str, Mapping[str, tuple[str, str]]]]] = {
    "DDR": ("DDR", {"read": ("read", "B/s"), "write": ("write", "B/s")}),
    "HCCS": ("HCCS", {"rxThroughput": ("receive", "B/s"), "txThroughput": ("transmit", "B/s")}),
    "PCIE": (
        "PCIe",
        {
            "rxPostAvg": ("receive posted", "B/s"),
            "txPostAvg": ("transmit posted", "B/s"),
            "rxNonpostAvg": ("receive non-posted", "B/s"),
            "txNonpostAvg": ("transmit non-posted", "B/s"),
            "rxCplAvg": ("receive completions", "B/s"),
            "txCplAvg": ("transmit completions", "B/s"),
            "txNonpostLatencyAvg": ("latency non-posted", "ns"),
        },
    ),
}
"""Tables with a column for each counter: the part, and of each column the counter and its unit."""

COUNTERS: Final = ("HBM", "LLC", *_PLAIN)
PORTS: Final = ("NIC", "ROCE", "NETDEV_STATS")
"""Tables of the database by canonical table."""

_TIME: Final = "timestampNs"
_INTERFACES: Final = {"NIC": "NIC", "ROCE": "RoCE"}
_INTERFACE: Final = {
    "capacity": "bandwidth",
    "received": "rxByteRate",
    "sent": "txByteRate",
    "receive_packets": "rxPacketRate",
    "transmit_packets": "txPacketRate",
    "rx_errors": "rxErrors",
    "rx_dropped": "rxDropped",
    "tx_errors": "txErrors",
    "tx_dropped": "txDropped",
}
_ADAPTER: Final = {
    "bytes": "macRxByte",
    "received": "macRxBandwidth",
    "sent": "macTxBandwidth",
    "rx_errors": "roceRxErrPkt",
    "tx_errors": "roceTxErrPkt",
    "sent_again": "roceNewPktRty",
    "pause_frames": "macRxPfcPkt",
    "congestion_notices": "roceRxCnpPkt",
}
"""Columns of NIC and ROCE, and of NETDEV_STATS, by the names that `ports` has for them."""


def counters(records: Records, source: RowidSource) -> pd.DataFrame:
    """Samples of HBM, LLC, DDR, HCCS and PCIE in order of time."""
    series: dict[Sampled, int] = {}
    parts = []
    for table, one, read in _sampled(records):
        values = read[read["value"].notna()]
        code = series.setdefault(one, len(series))
        rows = source.add(table, values["rowid"].to_numpy())
        parts.append(values.assign(code=code, source_row=rows))
    columns = pd.concat(parts) if parts else pd.DataFrame(columns=["time_ns", "value", "code", "source_row"])
    return counted.table(
        list(series),
        columns["code"].to_numpy(np.int64),
        time_ns=columns["time_ns"].to_numpy(np.int64),
        value=columns["value"].to_numpy(np.float64),
        source_row=columns["source_row"].to_numpy(np.int64),
    )


def _sampled(records: Records) -> Iterator[tuple[str, Sampled, pd.DataFrame]]:
    """Table, counter, and its rows: ``time_ns``, ``value`` (NaN where nothing was sampled), ``rowid``."""
    database = records.database
    if database.has("HBM", _TIME, "bandwidth"):
        read = _rows(records, "HBM", {"unit": "hbmId", "way": "type"}, {"value": "bandwidth"})
        for unit, way, rows in _by_unit(read):
            yield "HBM", Sampled("HBM", unit, _text(records, way), "B/s", 1.0), rows
    if database.has("LLC", _TIME, "throughput"):
        read = _rows(records, "LLC", {"unit": "llcId", "way": "mode"}, {"value": "throughput", "hits": "hitRate"})
        for unit, way, rows in _by_unit(read):
            mode = _text(records, way)
            yield "LLC", Sampled("LLC", unit, mode, "B/s", 1.0), rows
            yield "LLC", Sampled("LLC", unit, f"{mode} hits", "ratio", 1.0), rows.assign(value=rows["hits"])
    for table, (part, columns) in _PLAIN.items():
        if not database.has(table, _TIME):
            continue
        read = _rows(records, table, {}, {column: column for column in columns})
        for column, (counter, unit) in columns.items():
            yield table, Sampled(part, "", counter, unit, 1.0), read.assign(value=read[column])


def _by_unit(read: pd.DataFrame) -> Iterator[tuple[str, int, pd.DataFrame]]:
    """Unit, id of the text for its direction, and the rows of each pair."""
    pairs = read[["unit", "way"]].drop_duplicates()
    for unit, way in zip(pairs["unit"].tolist(), pairs["way"].tolist(), strict=True):
        yield str(unit), way, read[(read["unit"] == unit) & (read["way"] == way)]


def ports(records: Records, source: RowidSource) -> pd.DataFrame:
    """Samples of network ports, of each table in order of time."""
    database = records.database
    frames = []
    for table, kind in _INTERFACES.items():
        if database.has(table, _TIME):
            rows = _rows(records, table, {"number": "funcId"}, _INTERFACE)
            rows["source_row"] = source.add(table, rows["rowid"].to_numpy())
            frames.append(network.of_interfaces(rows, kind))
    if database.has("NETDEV_STATS", _TIME):
        rows = _rows(records, "NETDEV_STATS", {}, _ADAPTER)
        rows["source_row"] = source.add("NETDEV_STATS", rows["rowid"].to_numpy())
        frames.append(network.of_adapter(rows))
    if not frames:
        return pd.DataFrame(columns=["port", "time_ns", "source_row"])
    return pd.concat([frame.astype({"port": str}) for frame in frames], ignore_index=True)


def _rows(records: Records, table: str, numbers: Mapping[str, str], amounts: Mapping[str, str]) -> pd.DataFrame:
    """Rows of a table at a possible time, without a negative amount; ``numbers`` and ``amounts``: name to column."""
    read = pd.DataFrame(records.database.integers(table, {"time_ns": _TIME, **numbers}))
    values = records.database.floats(table, list(dict.fromkeys(amounts.values())))
    read = read.assign(**{name: values[column] for name, column in amounts.items()})
    negative = (read[list(amounts)] < 0).any(axis=1)
    return records.usable_rows(table, read, possible(read["time_ns"]) & ~negative)


def _text(records: Records, number: int) -> str:
    """``read`` or ``write``, as the database names it; '' for a text that is lost."""
    return str(records.strings.of(np.array([number], np.int64))[0]).strip().lower()
