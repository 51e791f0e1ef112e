"""Samples of network ports: nic.csv and roce.csv, and the tables NIC, ROCE and NETDEV_STATS of a database.

The files write what a port moved as a share of its bandwidth. Their exporter takes the bandwidth for Mbit/s in this
share and heads it MB/s, and the share is of 1 under a heading of percent (docs/sources.md#network-ports): what a port
moved is therefore known from databases only. That a share of faulty packets is not zero is plain in either unit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd

from advisor_core.contracts.columns import Column as TableColumn
from advisor_core.contracts.tables import PORTS, TableSchema
from advisor_core.loaders.readers.csv_file import Column, CsvTable

if TYPE_CHECKING:
    import numpy.typing as npt

KINDS: Final = {"nic": "NIC", "roce": "RoCE"}
"""Ports by the name of their file."""

_SHARES: Final = {
    "receive_error_share": "rxError rate(%)",
    "receive_dropped_share": "rxDropped rate(%)",
    "transmit_error_share": "txError rate(%)",
    "transmit_dropped_share": "txDropped rate(%)",
}
_SAMPLES: Final = TableSchema(
    "port_samples",
    "nic.csv or roce.csv as it stands",
    (
        TableColumn("number", "int", "", "port"),
        TableColumn("time_ns", "int", "ns", "when"),
        TableColumn("receive_packets", "float", "1/s", "packets received"),
        TableColumn("transmit_packets", "float", "1/s", "packets sent"),
        *(TableColumn(name, "float", "", "of all packets, as a ratio or in percent") for name in _SHARES),
    ),
)

SAMPLES: Final = CsvTable(
    _SAMPLES,
    (
        Column("number", ("funcId",), "int", least=0),
        Column("time_ns", ("Timestamp(us)", "Timestamp"), "point", essential=True),
        Column("receive_packets", ("rxPacket/s",), "float", least=0),
        Column("transmit_packets", ("txPacket/s",), "float", least=0),
        *(Column(field, (name, name.removesuffix("(%)")), "float", least=0) for field, name in _SHARES.items()),
    ),
)


def of_file(samples: pd.DataFrame, kind: str) -> pd.DataFrame:
    """`PORTS` of what nic.csv or roce.csv holds. ``kind``: NIC or RoCE."""
    shares = samples[list(_SHARES)].to_numpy(dtype=np.float64)
    return PORTS.conform(
        samples.assign(port=_names(kind, samples["number"].to_numpy()), faulty=np.nansum(shares, axis=1) > 0)
    )


def of_interfaces(samples: pd.DataFrame, kind: str) -> pd.DataFrame:
    """`PORTS` of the table NIC or ROCE, whose counts go on from sample to sample. Columns: ``number``, ``time_ns``,
    ``capacity``, ``received``, ``sent``, packets, and the counts ``rx_errors``, ``rx_dropped``, ``tx_errors``,
    ``tx_dropped``."""
    samples = samples.sort_values(["number", "time_ns"], kind="stable", ignore_index=True)
    since = samples.groupby("number")[["rx_errors", "rx_dropped", "tx_errors", "tx_dropped"]].diff()
    since = since.clip(lower=0).fillna(0.0)  # of the first sample, or after the counts began anew, nothing is known
    errors, dropped = (since[f"rx_{what}"] + since[f"tx_{what}"] for what in ("errors", "dropped"))
    frame = samples.assign(
        port=_names(kind, samples["number"].to_numpy()), error_packets=errors, dropped_packets=dropped
    )
    return PORTS.conform(frame.assign(faulty=(errors + dropped) > 0))


_COUNTS: Final = ("rx_errors", "tx_errors", "sent_again", "pause_frames", "congestion_notices")


def of_adapter(samples: pd.DataFrame) -> pd.DataFrame:
    """`PORTS` of the table NETDEV_STATS: what the adapter counts of all of its ports. Columns: ``time_ns``,
    ``received``, ``sent``, the counts `_COUNTS`, and ``bytes``: received, as counted.

    The documentation does not say whether a count goes on from sample to sample or begins anew; the received bytes
    beside the rate of receiving do."""
    samples = samples.sort_values("time_ns", kind="stable", ignore_index=True)
    if _goes_on(samples):
        since = samples[list(_COUNTS)].diff().clip(lower=0)
        samples = samples.assign(**since.fillna(0.0).where(samples[list(_COUNTS)].notna()))
    errors = samples[["rx_errors", "tx_errors"]].sum(axis=1)
    return PORTS.conform(samples.assign(port="MAC", error_packets=errors, faulty=errors > 0))


def _goes_on(samples: pd.DataFrame) -> bool:
    """True of counts that go on: their bytes then exceed what the rate gives in an interval, and do not fall."""
    moved = samples["received"] * samples["time_ns"].diff() / 1e9
    moves = moved > 0
    beyond = samples["bytes"][moves] > 2 * moved[moves]
    return bool(moves.any() and beyond.mean() > 0.5 and not (samples["bytes"].diff() < 0).any())


def _names(kind: str, numbers: npt.NDArray[np.int64]) -> pd.Categorical:
    codes, distinct = pd.factorize(numbers)
    names = [f"{kind} {number}" if number >= 0 else kind for number in distinct.tolist()]
    return pd.Categorical.from_codes(codes, categories=pd.Index(names, dtype=object))
