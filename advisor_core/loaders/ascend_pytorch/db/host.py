"""Read the host tables of a DB export: calls of the framework and of CANN, operators, and the flows between them."""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd

from advisor_core.contracts.missing import Unavailable
from advisor_core.contracts.tables import HOST_EVENTS, Int64Array
from advisor_core.loaders import ascend_words as vocabulary
from advisor_core.loaders.ascend_pytorch.db.records import Records, categorical
from advisor_core.loaders.readers.database import RowidSource
from advisor_core.text.messages import message

_STEP: Final = "ProfilerStep#"
_KINDS: Final = {"op": "cpu_op", "trace": "python_function", "mstx": "mstx"}
_LOW_WORD: Final = 0xFFFFFFFF
_LAUNCH: Final = "launch"
HANDED_OVER: Final = 0.64
HELD_UP_NS: Final = 12_000
"""The moment in a call `_LAUNCH` of the node layer at which a kernel is handed over: after this share of the call, or
of this time where the call took longer. Measured on the 374 arrows of kernels that start in such a call in two real
traces, where the calls take 5.3 us in the middle and no longer than this nine times in ten: the share is 0.64 in the
middle (5th to 95th of a hundred: 0.54 to 0.77) and falls to 0.24 in the longest calls, which are held up after the
handover. Placed so, arrows are off by 0.3 us in the middle and the skew of the clocks by 0.6 us; of the 137 and 132 ms
of these steps 59 and 18 us move between causes of idle time, against 160 and 123 us from the start of the call, 495 and
257 us without the bound (the earliest task decides the skew for all) and 840 and 725 us from its end. The other arrows
(of collectives, copies and calls of CANN that launch a kernel themselves; all 46) start with the call."""


def host_events(records: Records, source: RowidSource) -> pd.DataFrame:
    """Calls of the framework, then those of CANN, then marks, garbage collections and system calls where recorded."""
    database = records.database
    parts = []
    if database.has("PYTORCH_API", "startNs", "endNs"):
        parts.append(_framework(records, source))
    if database.has("CANN_API", "startNs", "endNs"):
        parts.append(_cann(records, source))
    for table, category, name in (
        ("MSTX_EVENTS", "mstx", "message"),
        ("GC_RECORD", "gc", ""),
        ("OSRT_API", "os", "name"),
    ):
        if database.has(table, "startNs", "endNs"):
            parts.append(_table_events(records, source, table, category, name))
    if not parts:
        raise Unavailable(message("loader.no_table", file=database.file, table="PYTORCH_API, CANN_API"))
    conformed = [HOST_EVENTS.conform(part) for part in parts]
    frame = pd.concat([part.select_dtypes("number") for part in conformed], ignore_index=True)
    for column in conformed[0].select_dtypes("category"):
        frame[column] = pd.api.types.union_categoricals([part[column] for part in conformed])
    return frame


def _framework(records: Records, source: RowidSource) -> pd.DataFrame:
    calls = records.framework
    frame = calls[["start_ns", "duration_ns", "thread"]].copy()
    frame["name"] = records.strings.categorical(calls["name"].to_numpy())
    frame["category"] = _categories(calls["kind"], frame["name"])
    frame["input_shapes"] = records.strings.categorical(calls["shapes"].to_numpy(), vocabulary.shapes)
    frame["call_stack"] = _stacks(records, calls["chain"].to_numpy())
    frame["correlation"] = _correlations(records)
    frame["source_row"] = source.add("PYTORCH_API", calls["rowid"].to_numpy())
    return frame


def _categories(kinds: pd.Series, names: pd.Series) -> pd.Categorical:
    """cpu_op, python_function, mstx; of the queue enqueue or dequeue, by the name."""
    width = len(names.cat.categories)
    pairs, distinct = pd.factorize(kinds.cat.codes.to_numpy().astype(np.int64) * width + names.cat.codes.to_numpy())
    texts = []
    for pair in distinct.tolist():
        kind, name = kinds.cat.categories[pair // width], names.cat.categories[pair % width]
        queued = "dequeue" if name.lower().startswith("dequeue") else "enqueue"
        texts.append(queued if kind == "queue" else _KINDS.get(kind, kind))
    return categorical(pairs, texts)


def _stacks(records: Records, chains: Int64Array) -> pd.Categorical:
    ids, places, texts = records.stacks
    # a chain that is not there has the place -1: the last text, which is ''
    return categorical(places[ids.get_indexer(pd.Index(chains))], texts, vocabulary.stack)


def _correlations(records: Records) -> Int64Array:
    """The number that joins the two ends of the queue; -1 for other calls."""
    calls, links = records.framework, records.links
    queue = links[(calls["kind"] == "queue").to_numpy()[links["row"]]].drop_duplicates("row")
    result = np.full(len(calls), -1, np.int64)
    result[queue["row"]] = queue["connection"]
    return result


def _cann(records: Records, source: RowidSource) -> pd.DataFrame:
    calls = records.calls
    frame = calls[["start_ns", "duration_ns", "thread", "connection"]].copy()
    levels = records.api_types.categorical(calls["type"].to_numpy())
    names = records.strings.categorical(calls["name"].to_numpy())
    width = len(names.categories)
    pairs, distinct = pd.factorize(levels.codes.astype(np.int64) * width + names.codes)
    texts = [
        vocabulary.cann_call(levels.categories[pair // width], names.categories[pair % width])
        for pair in distinct.tolist()
    ]
    frame["name"] = categorical(pairs, texts)
    frame["item"] = records.strings.categorical(_items(records).reindex(calls["connection"], fill_value=-1).to_numpy())
    frame["category"] = pd.Categorical.from_codes(np.zeros(len(calls), np.int8), categories=pd.Index(["runtime"]))
    frame["source_row"] = source.add("CANN_API", calls["rowid"].to_numpy())
    return frame


def _items(records: Records) -> pd.Series:
    """The name (as an id) of what each connection launched: of the first kernel, or of the collective."""
    parts = [records.collectives.set_index("connection")["type"]]
    if records.database.has("TASK", "startNs", "endNs") and records.database.has("COMPUTE_TASK_INFO", "globalTaskId"):
        kernels = records.tasks_by_id.merge(records.compute[["id", "name"]], on="id").set_index("connection")
        parts.append(kernels["name"])
    items: pd.Series[int] = pd.concat(parts).astype(np.int64)
    return items.loc[~items.index.duplicated()]


def _table_events(records: Records, source: RowidSource, table: str, category: str, name: str) -> pd.DataFrame:
    rows = records.spans(table, {"thread": "globalTid", "name": name})
    frame = rows[["start_ns", "duration_ns"]].assign(thread=rows["thread"] & _LOW_WORD)
    codes = np.zeros(len(rows), np.int8)
    frame["category"] = pd.Categorical.from_codes(codes, categories=pd.Index([category]))
    frame["name"] = records.strings.categorical(rows["name"].to_numpy()) if name else categorical(codes, ["GC"])
    frame["source_row"] = source.add(table, rows["rowid"].to_numpy())
    return frame


def flows(records: Records, source: RowidSource) -> pd.DataFrame:
    """The arrows that a trace would have; both ends of each, the starts of a kind before its finishes. An export has
    no arrows: those from the host to the device start with their call, or within it (`_handed_over`)."""
    records.database.require("TASK", "startNs", "endNs")
    records.database.require("CANN_API", "startNs", "endNs")
    launched, calls = records.launched, records.calls
    tasks = launched[launched["connection"].isin(calls["connection"])].reset_index(drop=True)
    tasks["source_row"] = -1
    for table in ("TASK", "COMMUNICATION_OP"):
        of_table = (tasks["table"] == table).to_numpy()
        tasks.loc[of_table, "source_row"] = source.add(table, tasks.loc[of_table, "rowid"].to_numpy())
    heads = calls[calls["connection"].isin(tasks["connection"])]
    head_rows = source.add("CANN_API", heads["rowid"].to_numpy())
    parts = [
        _ends("host_to_device", "s", heads["connection"], heads["thread"], _handed_over(records, heads), head_rows),
        _ends(
            "host_to_device", "f", tasks["connection"], tasks["stream"], tasks["start_ns"], tasks["source_row"], True
        ),
    ]
    if records.database.has("PYTORCH_API", "startNs", "endNs"):
        parts += _framework_flows(records, source, tasks)
    frame = pd.concat(parts, ignore_index=True)
    for column in ("kind", "end"):
        frame[column] = frame[column].astype("category")
    return frame


def _handed_over(records: Records, calls: pd.DataFrame) -> pd.Series:
    """The time at which each call handed over its task, ns."""
    levels = records.api_types.categorical(calls["type"].to_numpy())
    names = records.strings.categorical(calls["name"].to_numpy())
    collective = calls["connection"].isin(records.collectives["connection"])
    within = (levels == "node") & (names == _LAUNCH) & ~collective
    return calls["start_ns"] + np.where(within, handed_over_after(calls["duration_ns"].to_numpy()), 0)


def handed_over_after(calls_ns: Int64Array) -> Int64Array:
    """Time from the start of a launching call of this length until it hands its kernel over, ns."""
    return np.rint(np.minimum(calls_ns, HELD_UP_NS) * HANDED_OVER).astype(np.int64)


def _framework_flows(records: Records, source: RowidSource, tasks: pd.DataFrame) -> list[pd.DataFrame]:
    calls = records.framework
    rows = source.add("PYTORCH_API", calls["rowid"].to_numpy())
    linked = records.links.assign(
        thread=calls["thread"].to_numpy()[records.links["row"]],
        time_ns=calls["start_ns"].to_numpy()[records.links["row"]],
        sequence=calls["sequence"].to_numpy()[records.links["row"]],
        source_row=rows[records.links["row"]],
    )
    kind = calls["kind"].to_numpy()[linked["row"]]
    operators, queue = linked[kind == "op"], linked[kind == "queue"]

    def ends(flow: str, end: str, rows: pd.DataFrame, ids: pd.Series) -> pd.DataFrame:
        return _ends(flow, end, ids, rows["thread"], rows["time_ns"], rows["source_row"])

    both = operators.merge(tasks, on="connection", suffixes=("", "_task"))
    names = pd.Series(records.strings.categorical(calls["name"].to_numpy()))
    is_finish = (_categories(calls["kind"], names) == "dequeue")[queue["row"].to_numpy()]
    # a forward operator and its backward one share a connection and a sequence number; what a task has is a launch
    pairs = operators[(operators["sequence"] >= 0) & ~operators["connection"].isin(records.launched["connection"])]
    both_ends = ["connection", "sequence"]
    pairs = pairs[pairs.duplicated(both_ends, keep=False)].sort_values([*both_ends, "time_ns"])
    second = pairs.duplicated(both_ends).to_numpy()
    return [
        ends("torch_to_npu", "s", both, both["start_ns"]),
        _ends("torch_to_npu", "f", both["start_ns"], both["stream"], both["start_ns"], both["source_row_task"], True),
        ends("task_queue", "s", queue[~is_finish], queue.loc[~is_finish, "connection"]),
        ends("task_queue", "f", queue[is_finish], queue.loc[is_finish, "connection"]),
        ends("forward_backward", "s", pairs[~second], pairs.loc[~second, "connection"]),
        ends("forward_backward", "f", pairs[second], pairs.loc[second, "connection"]),
    ]


def _ends(
    kind: str,
    end: str,
    flow: pd.Series,
    thread: pd.Series,
    time: pd.Series,
    source_row: pd.Series | Int64Array,
    device: bool = False,
) -> pd.DataFrame:
    columns = {"flow": flow, "thread": thread, "time_ns": time, "source_row": source_row}
    frame = pd.DataFrame({name: np.asarray(values, np.int64) for name, values in columns.items()})
    return frame.assign(kind=kind, end=end, device=device)


def operators(records: Records, source: RowidSource) -> pd.DataFrame:
    """Each call of an operator with its own time and that of what it launched; not the marks of steps."""
    calls = records.framework
    names = records.strings.categorical(calls["name"].to_numpy())
    marks = np.array([name.startswith(_STEP) for name in names.categories], bool)
    chosen = (calls["kind"] == "op").to_numpy() & ~(marks[names.codes] if len(marks) else False)
    if not chosen.any():
        raise Unavailable(message("loader.no_table_rows", file=records.database.file, table="PYTORCH_API"))
    rows = np.flatnonzero(chosen)
    frame = calls.loc[rows, ["start_ns", "duration_ns", "thread"]].reset_index(drop=True)
    device = np.zeros(len(calls), np.int64)
    if records.database.has("TASK", "startNs", "endNs"):
        met = records.links.merge(records.launched[["connection", "duration_ns"]], on="connection")
        np.add.at(device, met["row"].to_numpy(), met["duration_ns"].to_numpy())
    nested = _Nesting(*(frame[name].to_numpy() for name in ("thread", "start_ns", "duration_ns")))
    lengths = frame["duration_ns"].to_numpy()
    return pd.DataFrame(
        {
            "name": names[rows].remove_unused_categories(),
            "input_shapes": records.strings.categorical(calls["shapes"].to_numpy()[rows], vocabulary.shapes),
            "call_stack": _stacks(records, calls["chain"].to_numpy()[rows]),
            "host_self_ns": np.maximum(lengths - nested.of_children(lengths), 0),
            "host_total_ns": lengths,
            "device_self_ns": device[rows],
            "device_total_ns": nested.with_descendants(device[rows]),
            "source_row": source.add("PYTORCH_API", calls["rowid"].to_numpy()[rows]),
        }
    )


class _Nesting:
    """The call that encloses each call, by thread. Calls of a thread nest; two that only touch do not."""

    def __init__(self, threads: Int64Array, starts: Int64Array, lengths: Int64Array) -> None:
        count = len(starts)
        ends = starts + lengths
        # at one moment calls end before others start, but one without length ends after it started
        border = np.concatenate([2 * starts, 2 * ends + (lengths == 0)])
        order = np.lexsort(
            (
                np.concatenate([-lengths, lengths]),
                np.repeat([1, 0], count),
                border,
                np.concatenate([threads, threads]),
            )
        )
        opens = order < count
        depth = np.cumsum(np.where(opens, 1, -1))
        self._order = order[opens]
        """Calls in the order in which they open."""
        self._depth = depth[opens]
        place = np.empty(2 * count, np.int64)
        place[order] = np.arange(2 * count)
        opened_before = np.cumsum(opens)
        self._last = opened_before[place[count:][self._order]]
        """Number of calls that had opened when each of them closed."""

    def of_children(self, values: Int64Array) -> Int64Array:
        """Sum of the values of the calls directly within each call."""
        sums = np.zeros(len(values), np.int64)
        for level in np.unique(self._depth):
            outer = np.flatnonzero(self._depth == level)
            inner = np.flatnonzero(self._depth == level + 1)
            totals = np.concatenate([[0], np.cumsum(values[self._order[inner]])])
            first = np.searchsorted(inner, outer)
            last = np.searchsorted(inner, self._last[outer])
            sums[self._order[outer]] = totals[last] - totals[first]
        return sums

    def with_descendants(self, values: Int64Array) -> Int64Array:
        """Sum of the values of each call and of all within it."""
        totals = np.concatenate([[0], np.cumsum(values[self._order])])
        sums = np.empty(len(values), np.int64)
        sums[self._order] = totals[self._last] - totals[np.arange(len(values))]
        return sums


def api_statistic(records: Records, source: RowidSource) -> pd.DataFrame:
    """Totals by CANN call, which the text export has as a file of its own; each row points at the first call."""
    calls = records.calls
    if calls.empty:
        raise Unavailable(message("loader.no_table_rows", file=records.database.file, table="CANN_API"))
    lengths = calls.groupby(["type", "name"], sort=False)["duration_ns"]
    sums = lengths.agg(count="size", total_ns="sum", mean_ns="mean", min_ns="min", max_ns="max").reset_index()
    first = calls.drop_duplicates(["type", "name"])["rowid"].to_numpy()
    sums["mean_ns"] = sums["mean_ns"].round().astype(np.int64)
    return sums.assign(
        level=records.api_types.categorical(sums["type"].to_numpy(), vocabulary.api_level),
        name=records.strings.categorical(sums["name"].to_numpy()),
        source_row=source.add("CANN_API", first),
    )
