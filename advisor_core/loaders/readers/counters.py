"""The names of counters in a trace, and their meaning: rates of memory, caches and links, sampled over time.

The exporter counts in MiB where it writes MB: it multiplies by 1024 * 1024 when it writes a database of bytes
(docs/sources.md#sampled-counters). Counters that are levels without a unit (Acc PMU, Stars Soc Info) are not read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from advisor_core.contracts.tables import COUNTERS, Int64Array

if TYPE_CHECKING:
    import numpy.typing as npt

MIB: Final = 2.0**20
_US: Final = 1000.0


@dataclass(frozen=True)
class Sampled:
    """A counter, as the columns of `COUNTERS` name it. ``factor``: from the unit of the file to that of the table."""

    part: str
    channel: str
    counter: str
    unit: str
    factor: float


_LINKS: Final = {"Rx": "receive", "Tx": "transmit"}
_PCIE: Final = {"PCIe_post": "posted", "PCIe_nonpost": "non-posted", "PCIe_cpl": "completions"}
_LATENCY: Final = "PCIe_nonpost_latency"
_MEMORY: Final = re.compile(r"HBM (\d{1,3})/(Read|Write)")
_GROUPS: Final = re.compile(r"QoS (\w{1,30})")
_CACHE: Final = re.compile(r"LLC (\d{1,3}) (Read|Write)/(Throughput|Hit Rate)")

ARGUMENTS: Final = ("Read(MB/s)", "Write(MB/s)", "Throughput(MB/s)", "Hit Rate(%)", "Rx", "Tx", "value")
"""The arguments of events that hold values of counters."""


@cache
def sampled(event: str) -> Mapping[str, Sampled]:
    """The counters of an event of this name, by argument; none for what is not read."""
    if event == "HCCS":
        return {side: Sampled("HCCS", "", counter, "B/s", MIB) for side, counter in _LINKS.items()}
    if event in _PCIE:
        return {side: Sampled("PCIe", "", f"{counter} {_PCIE[event]}", "B/s", MIB) for side, counter in _LINKS.items()}
    if event == _LATENCY:  # the exporter writes 0 for what it receives
        return {"Tx": Sampled("PCIe", "", "latency non-posted", "ns", _US)}
    if found := _MEMORY.fullmatch(event):
        return {f"{found[2]}(MB/s)": Sampled("HBM", found[1], found[2].lower(), "B/s", MIB)}
    if found := _GROUPS.fullmatch(event):
        return {"value": Sampled("QoS", found[1], "moved", "B/s", MIB)}
    if found := _CACHE.fullmatch(event):
        if found[3] == "Throughput":
            return {"Throughput(MB/s)": Sampled("LLC", found[1], found[2].lower(), "B/s", MIB)}
        return {"Hit Rate(%)": Sampled("LLC", found[1], f"{found[2].lower()} hits", "ratio", 1.0)}
    return {}


def in_ratio(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Shares that stand under a heading of percent: a real export writes ratios there, and percent into its database.
    Values that all lie within 1 are taken for ratios: a cache that never reaches 1 % would serve nothing."""
    return values / 100 if np.nanmax(values, initial=0.0) > 1 else values


def table(series: Sequence[Sampled], code: Int64Array, **columns: npt.NDArray[Any]) -> pd.DataFrame:
    """A frame of `COUNTERS`. ``code``: of each row, the place of its counter in ``series``; ``columns``: ``time_ns``,
    ``value`` in the unit of the file, ``source_row``."""
    factor = np.array([one.factor for one in series], np.float64)
    value = columns["value"] * factor[code]
    for place, one in enumerate(series):
        if one.unit == "ratio":
            value[code == place] = in_ratio(value[code == place])
    texts = {
        name: pd.Categorical([getattr(one, name) for one in series]).take(code)
        for name in ("part", "channel", "counter", "unit")
    }
    order = np.argsort(columns["time_ns"], kind="stable")
    return COUNTERS.conform(pd.DataFrame({**texts, **columns, "value": value}).iloc[order])
