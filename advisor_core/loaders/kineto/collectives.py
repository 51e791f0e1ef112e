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
from advisor_core.loaders.kineto.host import Host
from advisor_core.loaders.readers.columns import Interner
from advisor_core.nesting import enclosing_of

_DTYPE_BYTES = {"FLOAT": 4, "FLOAT16": 2, "BF16": 2, "DOUBLE": 8, "INT64": 8, "INT32": 4, "INT16": 2, "INT8": 1,
    "UINT8": 1, "BOOL": 1, "FLOAT8_E4M3FN": 1, "FLOAT8_E5M2": 1}  # fmt: skip
_KERNEL_OPERATION = r"(?:Dev)?Kernel_([A-Za-z]+)"
_PER_STEP = 1 << 20
"""More calls of a group than a step has."""


def operations(
    tasks: Device, host: Host | None, metadata: Columns | None, interners: dict[str, Interner]
) -> pd.DataFrame:
    """One row per kernel that communicates, by its place among the tasks: ``operation``, ``group``, ``members``,
    ``sequence`` and ``bytes``, as far as recorded. ``operation``: by the metadata, else by the mark around the
    launch, else by the kernel's name, which is the same for a send and for an exchange of all with all."""
    rows = np.flatnonzero(tasks.collective)
    named = pd.Series(tasks.names[rows], index=rows).astype(str)
    by_name = named.str.extract(_KERNEL_OPERATION, expand=False).fillna(named)
    marked = _marks(tasks, rows, host)
    frame = pd.DataFrame({"operation": marked.where(marked != "", by_name)}, index=rows)
    frame["operation"] = frame["operation"].map(words.operation)
    for name, unknown in (("group", ""), ("members", -1), ("sequence", -1), ("bytes", -1)):
        frame[name] = unknown
    if metadata is None or not len(rows):
        return frame
    place = _metadata_of(tasks, rows, host, metadata)
    with_metadata = np.flatnonzero(place >= 0)
    chosen = {name: values[place[with_metadata]] for name, values in metadata.items()}
    texts = {name: _texts(interners[name], chosen[name]) for name in ("collective", "group", "dtype")}
    operation = [words.operation(text) for text in texts["collective"]]
    size = [_DTYPE_BYTES.get(words.dtype(text), -1) for text in texts["dtype"]]
    share = np.array(list(map(words.moved_share, operation, chosen["group_size"].tolist())))
    moved = chosen["elements"] * np.array(size, float) * share
    possible = (np.array(size) > 0) & (chosen["elements"] >= 0) & (moved >= 0)
    at = rows[with_metadata]
    frame.loc[at, "operation"], frame.loc[at, "group"] = operation, texts["group"]
    frame.loc[at, "members"], frame.loc[at, "sequence"] = chosen["group_size"], chosen["sequence"]
    frame.loc[at, "bytes"] = np.where(possible, np.where(possible, moved, 0), -1).astype(np.int64)
    return frame


def _marks(tasks: Device, rows: Int64Array, host: Host | None) -> pd.Series:
    """The operation that the innermost mark around the launch of each kernel names; '' for none."""
    texts = np.full(len(rows), "", dtype=object)
    launched = np.flatnonzero(tasks.call[rows] >= 0)
    if host is None or not len(launched):
        return pd.Series(texts, index=rows)
    marks = host.frame[host.named(host.of("user_annotation"), words.COLLECTIVE_MARK.search)]
    calls = host.frame.iloc[tasks.call[rows[launched]]]
    around = enclosing_of(marks, calls["thread"].to_numpy(), calls["start_ns"].to_numpy())
    names = pd.Series(host.names(around), dtype=str)
    texts[launched] = names.str.extract(words.COLLECTIVE_MARK, expand=False).fillna("").to_numpy()
    return pd.Series(texts, index=rows)


def _metadata_of(tasks: Device, rows: Int64Array, host: Host | None, metadata: Columns) -> Int64Array:
    """The row of the metadata of each kernel: its own, else those of the operator around its launch; -1 for none."""
    by_event = pd.Series(np.arange(len(metadata["source_row"])), index=metadata["source_row"])
    metadata_row = by_event.reindex(tasks.columns["source_row"][rows]).to_numpy()
    operator = tasks.operator[rows]
    if host is not None:
        events = host.frame["source_row"].to_numpy()[np.maximum(operator, 0)]
        around = by_event.reindex(np.where(operator >= 0, events, -1)).to_numpy()
        metadata_row = np.where(np.isfinite(metadata_row), metadata_row, around)
    return np.where(np.isfinite(metadata_row), metadata_row, -1).astype(np.int64)


def _texts(interner: Interner, codes: np.ndarray) -> list[str]:
    texts = list(interner)
    return [str(texts[code]) for code in codes.tolist()]


def collectives(tasks: Device, calls: pd.DataFrame, kernels: pd.DataFrame) -> pd.DataFrame:
    """The table. The number of a call within its group is the recorded one, else its place among the calls of the group
    in its step, of which all ranks have the same ones."""
    rows = calls.index.to_numpy()
    of_kernel = pd.Series(np.arange(len(tasks.rows)), index=tasks.rows).reindex(rows).to_numpy()
    call_kernels = kernels.iloc[of_kernel].reset_index(drop=True)
    calls = calls.reset_index(drop=True).assign(step=call_kernels["step"], start_ns=call_kernels["start_ns"])
    order = calls.sort_values("start_ns", kind="stable")
    place = order.groupby(["group", "step"]).cumcount().reindex(calls.index)
    counted = place + np.where(calls["step"] >= 0, calls["step"] * _PER_STEP, 0)
    p2p = calls["operation"].str.contains("send|receive", case=False, regex=True)
    return tables.COLLECTIVES.conform(
        pd.DataFrame(
            {
                "step": call_kernels["step"],
                "name": call_kernels["name"],
                "group": pd.Categorical(calls["group"]),
                "kind": pd.Categorical(np.where(p2p, "p2p", "collective")),
                "start_ns": call_kernels["start_ns"],
                "elapse_ns": call_kernels["duration_ns"],
                "operation": pd.Categorical(calls["operation"]),
                "index": np.where(calls["sequence"] >= 0, calls["sequence"], counted),
                "members": calls["members"],
                "bytes": calls["bytes"],
                "source_row": call_kernels["source_row"],
            }
        )
    )
