"""The tables of memory, from the events in which the allocator of the device gives or takes memory."""

from __future__ import annotations

import numpy as np
import pandas as pd

from advisor_core.contracts import tables
from advisor_core.contracts.tables import Int64Array
from advisor_core.loaders.kineto.events import Columns

COMPONENT = "allocator"
"""One of ``memory_totals`` of the vocabulary."""


def memory_record(columns: Columns) -> pd.DataFrame | None:
    """Memory of the allocator after each event; None where the totals were not recorded (PyTorch before 1.10)."""
    if not np.isfinite(columns["allocated"]).any():
        return None
    return tables.MEMORY_RECORD.conform(
        pd.DataFrame(
            {
                "component": pd.Categorical(np.full(len(columns["start_ns"]), COMPONENT)),
                "time_ns": columns["start_ns"],
                "allocated_bytes": columns["allocated"],
                "reserved_bytes": columns["reserved"],
                "source_row": columns["source_row"],
            }
        )
    )


def operator_memory(columns: Columns, names: np.ndarray) -> pd.DataFrame | None:
    """A row per tensor that was given memory, with when it was given back: the next event at its address. ``names``:
    of the operators in which the events lie. None where no addresses were recorded."""
    if not (columns["address"] >= 0).any():
        return None
    order = np.lexsort((columns["source_row"], columns["start_ns"], columns["address"]))
    address, size, when = (columns[name][order] for name in ("address", "bytes", "start_ns"))
    gives = size > 0
    ends = np.zeros(len(order), bool)
    ends[:-1] = (address[1:] == address[:-1]) & gives[:-1] & ~gives[1:]
    released = np.full(len(order), -1, np.int64)
    released[ends] = when[1:][ends[:-1]]
    chosen: Int64Array = order[gives]
    frame = pd.DataFrame(
        {
            "name": pd.Categorical(names[chosen]),
            "bytes": columns["bytes"][chosen],
            "allocation_ns": columns["start_ns"][chosen],
            "release_ns": released[gives],
            "allocated_bytes": columns["allocated"][chosen],
            "reserved_bytes": columns["reserved"][chosen],
            "source_row": columns["source_row"][chosen],
        }
    )
    return tables.OPERATOR_MEMORY.conform(frame.sort_values("source_row", ignore_index=True))
