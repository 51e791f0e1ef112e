"""The table of collectives: what NCCL or RCCL was asked for, from the metadata that PyTorch records with each call.

The metadata stand at the operator around the launch (``record_param_comms``) or, in newer traces, at the kernel itself.
Without them only the name of the kernel tells the operation.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from advisor_core.contracts import tables
from advisor_core.contracts.tables import Int64Array
from advisor_core.loaders.kineto import words
from advisor_core.loaders.kineto.device import Device
from advisor_core.loaders.kineto.events import Columns
from advisor_core.loaders.readers.columns import Interner

_DTYPE_BYTES = {"FLOAT": 4, "FLOAT16": 2, "BF16": 2, "DOUBLE": 8, "INT64": 8, "INT32": 4, "INT16": 2, "INT8": 1,
    "UINT8": 1, "BOOL": 1, "FLOAT8_E4M3FN": 1, "FLOAT8_E5M2": 1}  # fmt: skip
_KERNEL_OPERATION = r"(?:Dev)?Kernel_([A-Za-z]+)"
_PER_STEP = 1 << 20
"""More calls of a group than a step has."""


def operations(found: Device, metadata: Columns | None, interners: dict[str, Interner]) -> pd.DataFrame:
    """One row per kernel that communicates, by its place among the tasks: ``operation``, ``group``, ``members``,
    ``sequence`` and ``bytes``, as far as recorded."""
    rows = np.flatnonzero(found.collective)
    named = pd.Series(found.names[rows], index=rows).astype(str)
    frame = pd.DataFrame({"operation": named.str.extract(_KERNEL_OPERATION, expand=False).fillna(named)}, index=rows)
    frame["operation"] = frame["operation"].map(words.operation)
    for name, unknown in (("group", ""), ("members", -1), ("sequence", -1), ("bytes", -1)):
        frame[name] = unknown
    if metadata is None or not len(rows):
        return frame
    place = _metadata_of(found, rows, metadata)
    known = np.flatnonzero(place >= 0)
    chosen = {name: values[place[known]] for name, values in metadata.items()}
    texts = {name: _texts(interners[name], chosen[name]) for name in ("collective", "group", "dtype")}
    operation = [words.operation(text) for text in texts["collective"]]
    size = [_DTYPE_BYTES.get(words.dtype(text), -1) for text in texts["dtype"]]
    share = np.array(list(map(words.moved_share, operation, chosen["group_size"].tolist())))
    moved = chosen["elements"] * np.array(size, float) * share
    possible = (np.array(size) > 0) & (chosen["elements"] >= 0) & (moved >= 0)
    at = rows[known]
    frame.loc[at, "operation"], frame.loc[at, "group"] = operation, texts["group"]
    frame.loc[at, "members"], frame.loc[at, "sequence"] = chosen["group_size"], chosen["sequence"]
    frame.loc[at, "bytes"] = np.where(possible, np.where(possible, moved, 0), -1).astype(np.int64)
    return frame


def _metadata_of(found: Device, rows: Int64Array, metadata: Columns) -> Int64Array:
    """The row of the metadata of each kernel: its own, else those of the operator around its launch; -1 for none."""
    by_event = pd.Series(np.arange(len(metadata["source_row"])), index=metadata["source_row"])
    by_operator = pd.Series(np.arange(len(metadata["external"])), index=metadata["external"])
    by_operator = by_operator[(by_operator.index >= 0) & ~by_operator.index.duplicated()]
    own = by_event.reindex(found.columns["source_row"][rows])
    around = by_operator.reindex(found.columns["external"][rows])
    return np.where(own.notna(), own, around.fillna(-1)).astype(np.int64)


def _texts(interner: Interner, codes: np.ndarray) -> list[str]:
    known = list(interner)
    return [str(known[code]) for code in codes.tolist()]


def collectives(found: Device, asked: pd.DataFrame, kernels: pd.DataFrame) -> pd.DataFrame:
    """The table. The number of a call within its group is the recorded one, else its place among the calls of the group
    in its step, of which all ranks have the same ones."""
    rows = asked.index.to_numpy()
    of_kernel = pd.Series(np.arange(len(found.rows)), index=found.rows).reindex(rows).to_numpy()
    mine = kernels.iloc[of_kernel].reset_index(drop=True)
    asked = asked.reset_index(drop=True).assign(step=mine["step"], start_ns=mine["start_ns"])
    order = asked.sort_values("start_ns", kind="stable")
    place = order.groupby(["group", "step"]).cumcount().reindex(asked.index)
    counted = place + np.where(asked["step"] >= 0, asked["step"] * _PER_STEP, 0)
    p2p = asked["operation"].str.contains("send|receive", case=False, regex=True)
    return tables.COLLECTIVES.conform(
        pd.DataFrame(
            {
                "step": mine["step"],
                "name": mine["name"],
                "group": pd.Categorical(asked["group"]),
                "kind": pd.Categorical(np.where(p2p, "p2p", "collective")),
                "start_ns": mine["start_ns"],
                "elapse_ns": mine["duration_ns"],
                "operation": pd.Categorical(asked["operation"]),
                "index": np.where(asked["sequence"] >= 0, asked["sequence"], counted),
                "members": asked["members"],
                "bytes": asked["bytes"],
                "source_row": mine["source_row"],
            }
        )
    )
