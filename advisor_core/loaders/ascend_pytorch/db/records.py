"""Strings, tasks, calls and their links of a DB export, read once for all tables that need them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa

from advisor_core.contracts.tables import Int64Array
from advisor_core.loaders import ascend_words as vocabulary
from advisor_core.loaders.ascend_words import COMPUTE_TASKS
from advisor_core.loaders.readers import times
from advisor_core.loaders.readers.columns import Interner
from advisor_core.loaders.readers.database import Database
from advisor_core.loaders.readers.problems import SHOWN, Problems

if TYPE_CHECKING:
    import numpy.typing as npt

LONGEST_TASK_NS: Final = int(times.HOUR_US * 1000)
_LONGEST_SPAN_NS: Final = int(times.DAY_US * 1000)
"""No profile is that long: an end which says so is wrong, as a start that lies so far off."""
_LOW_WORD: Final = 0xFFFFFFFF
"""A global thread id is the process in the high and the thread in the low 32 bits."""

_OP, _QUEUE, _TRACE, _MSTX = 50001, 50002, 50003, 50004
_API_TYPES: Final = {
    20000: "acl",
    15000: "model",
    10000: "node",
    5500: "communication",
    5000: "runtime",
    _OP: "op",
    _QUEUE: "queue",
    _TRACE: "trace",
    _MSTX: "mstx",
}
"""ENUM_API_TYPE where the export has no such table."""


class Strings:
    """Texts by their id. An id that is not there (-1, NULL) is ''."""

    def __init__(self, ids: Int64Array, texts: list[str]) -> None:
        order = np.argsort(ids, kind="stable")
        self._ids = ids[order]
        self._texts = [texts[place] for place in order.tolist()]

    @property
    def numbers(self) -> Int64Array:
        """The ids that there are."""
        return self._ids

    def of(self, ids: Int64Array) -> list[str]:
        """The text of each id."""
        if not len(self._ids):
            return [""] * len(ids)
        places = np.minimum(np.searchsorted(self._ids, ids), len(self._ids) - 1)
        is_stored = self._ids[places] == ids
        return [
            self._texts[place] if is_text else ""
            for place, is_text in zip(places.tolist(), is_stored.tolist(), strict=True)
        ]

    def ids(self, texts: Mapping[str, Any]) -> dict[int, str]:
        """The ids of the given texts, several ids for a text that is stored twice."""
        return {int(number): text for number, text in zip(self._ids, self._texts, strict=True) if text in texts}

    def categorical(self, ids: Int64Array, clean: Callable[[str], str] = vocabulary.tidy) -> pd.Categorical:
        """The texts of ``ids``, each distinct one looked up and cleaned once."""
        codes, distinct = pd.factorize(ids)
        return categorical(codes, self.of(np.asarray(distinct, np.int64)), clean)


def categorical(
    codes: npt.NDArray[np.integer[Any]], texts: list[str], clean: Callable[[str], str] = str
) -> pd.Categorical:
    """``texts[code]`` for every code, each text cleaned once."""
    cleaned = Interner()
    lookup = cleaned.codes([clean(text) for text in texts]) if texts else np.zeros(1, np.int32)
    return pd.Categorical.from_codes(lookup[codes], categories=pd.Index(list(cleaned), dtype=object))


class Records:
    """The tables of the profiler's database, by canonical names of columns. Times are ns; ``rowid`` as stored."""

    def __init__(self, database: Database, problems: Problems) -> None:
        self.database = database
        self.problems = problems

    @cached_property
    def strings(self) -> Strings:
        return self._named("STRING_IDS", "value")

    def enumeration(self, table: str, defaults: Mapping[int, str] | None = None) -> Strings:
        """Names by number, from a table of the export where it has one."""
        if self.database.has(table, "id", "name"):
            return self._named(table, "name", defaults or {})
        names = dict(defaults or {})
        return Strings(np.array(list(names), np.int64), list(names.values()))

    def _named(self, table: str, column: str, defaults: Mapping[int, str] = MappingProxyType({})) -> Strings:
        """The texts of a table by their ids, and those of ``defaults`` that it lacks."""
        self.database.require(table, "id", column)
        ids = self.database.integers(table, {"id": "id"})["id"]
        texts = self.database.texts(table, [column])[column]
        more = [number for number in defaults if number not in set(ids.tolist())]
        return Strings(np.append(ids, np.array(more, np.int64)), [*texts, *(defaults[number] for number in more)])

    @cached_property
    def api_types(self) -> Strings:
        return self.enumeration("ENUM_API_TYPE", _API_TYPES)

    @cached_property
    def tasks(self) -> pd.DataFrame:
        """TASK, in order of start. A task that runs on several cores, or as a graph of tasks, is stored with its parts
        beside it, and only the parts are kept, as in a trace."""
        tasks = self.spans(
            "TASK",
            {
                "id": "globalTaskId",
                "type": "taskType",
                "connection": "connectionId",
                "context": "contextId",
                "stream": "streamId",
                "task": "taskId",
                "model": "modelId",
            },
            LONGEST_TASK_NS,
        ).sort_values("start_ns", kind="stable", ignore_index=True)
        return tasks[~_wrappers(tasks)].reset_index(drop=True)

    @cached_property
    def tasks_by_id(self) -> pd.DataFrame:
        """`tasks` that have an id, each id once."""
        return self.tasks[self.tasks["id"] >= 0].drop_duplicates("id", ignore_index=True)

    @property
    def describes_kernels(self) -> bool:
        """Whether the export says what its kernels are: whether it has COMPUTE_TASK_INFO."""
        return self.database.has("COMPUTE_TASK_INFO", "globalTaskId")

    @cached_property
    def compute(self) -> pd.DataFrame:
        """COMPUTE_TASK_INFO; ids of texts stay ids. Newer exports call the blocks ``blockNum`` and use ``blockDim``
        for threads of another programming model. Without that table the tasks that compute, by the name of their type:
        when the device computed is known, what it computed is not."""
        database = self.database
        blocks = database.first_of("COMPUTE_TASK_INFO", "blockNum", "blockDim")
        mixed = database.first_of("COMPUTE_TASK_INFO", "mixBlockNum", "mixBlockDim")
        tensors = [f"{side}{what}" for side in ("input", "output") for what in ("Shapes", "DataTypes", "Formats")]
        unnamed = ("opType", "opState", "hf32Eligible", *tensors)
        if not self.describes_kernels:
            kinds = self.strings.categorical(self.tasks_by_id["type"].to_numpy(), vocabulary.task_type)
            computes = kinds.isin(COMPUTE_TASKS) & ~self.tasks_by_id["id"].isin(self.communication_parts["id"])
            tasks = self.tasks_by_id.loc[computes, ["id", "rowid", "type"]].reset_index(drop=True)
            kernels = tasks[["id", "rowid"]].assign(name=tasks["type"], taskType=tasks["type"])
            return kernels.assign(**dict.fromkeys((*unnamed, "block_dim", "mix_block_dim"), -1))
        columns = {name: name for name in ("name", "taskType", *unnamed)}
        read = database.integers(
            "COMPUTE_TASK_INFO", {"id": "globalTaskId", "block_dim": blocks, "mix_block_dim": mixed} | columns
        )
        return pd.DataFrame(read).drop_duplicates("id", ignore_index=True)

    @cached_property
    def collectives(self) -> pd.DataFrame:
        """COMMUNICATION_OP in order of start; empty where nothing was communicated. ``group_index`` numbers the groups
        in that order."""
        columns = {
            "name": "opName",
            "type": "opType",
            "group": "groupName",
            "connection": "connectionId",
            "op": "opId",
        }
        if not self.database.has("COMMUNICATION_OP"):
            return pd.DataFrame({name: np.empty(0, np.int64) for name in (*_SPAN, *columns, "group_index")})
        operations = self.spans("COMMUNICATION_OP", columns, LONGEST_TASK_NS)
        operations = operations.sort_values("start_ns", kind="stable", ignore_index=True)
        return operations.assign(group_index=pd.factorize(operations["group"])[0].astype(np.int64))

    @cached_property
    def communication_parts(self) -> pd.DataFrame:
        """COMMUNICATION_TASK_INFO; empty where there is none."""
        columns = {
            "id": "globalTaskId",
            "type": "taskType",
            "plane": "planeId",
            "group": "groupName",
            "own_rank": "srcRank",
            "peer_rank": "dstRank",
            "bytes": "size",
            "link": "linkType",
            "transport": "transportType",
        }
        if not self.database.has("COMMUNICATION_TASK_INFO", "globalTaskId"):
            return pd.DataFrame({name: np.empty(0, np.int64) for name in ("rowid", *columns)})
        parts = pd.DataFrame(self.database.integers("COMMUNICATION_TASK_INFO", columns))
        return parts.drop_duplicates("id", ignore_index=True)

    @cached_property
    def calls(self) -> pd.DataFrame:
        """CANN_API in order of start."""
        columns = {"type": "type", "thread": "globalTid", "connection": "connectionId", "name": "name"}
        calls = self.spans("CANN_API", columns)
        calls["thread"] &= _LOW_WORD
        return calls.sort_values("start_ns", kind="stable", ignore_index=True)

    @cached_property
    def framework(self) -> pd.DataFrame:
        """PYTORCH_API as stored; ``kind``: op, queue, trace or mstx. Some exports hold shapes in the column of types
        and types in that of shapes (real AlexNet export): types are those with letters."""
        columns = {
            "thread": "globalTid",
            "link": "connectionId",
            "name": "name",
            "sequence": "sequenceNumber",
            "shapes": "inputShapes",
            "dtypes": "inputDtypes",
            "chain": "callchainId",
            "type": "type",
        }
        calls = self.spans("PYTORCH_API", columns)
        calls["thread"] &= _LOW_WORD
        if self._spelled(calls["shapes"]) > self._spelled(calls["dtypes"]):
            calls["shapes"] = calls["dtypes"]
        calls = calls.drop(columns="dtypes")
        calls["kind"] = self.api_types.categorical(calls["type"].to_numpy())
        return calls

    def _spelled(self, ids: pd.Series) -> int:
        """Number of distinct texts that contain letters."""
        texts = self.strings.of(ids.drop_duplicates().to_numpy())
        return sum(any(character.isalpha() for character in text) for text in texts)

    @cached_property
    def links(self) -> pd.DataFrame:
        """The link of each call of the framework: ``row`` (of `framework`), ``connection``. Calls of the queue
        and operators number their connections apart, so that equal numbers of the two are no link."""
        calls = self.framework
        if not self.database.has("CONNECTION_IDS", "id", "connectionId"):
            return pd.DataFrame({"row": np.empty(0, np.int64), "connection": np.empty(0, np.int64)})
        connections = pd.DataFrame(
            self.database.integers("CONNECTION_IDS", {"link": "id", "connection": "connectionId"})
        )
        linked = pd.DataFrame({"row": np.arange(len(calls)), "link": calls["link"].to_numpy()})
        return linked[linked["link"] >= 0].merge(connections, on="link")[["row", "connection"]]

    @cached_property
    def stacks(self) -> tuple[pd.Index, npt.NDArray[np.integer[Any]], list[str]]:
        """Call stacks: ids of chains, the place of each one's text, and the texts, innermost frame first, one per
        line; the last text is '' for calls without a stack. PYTORCH_CALLCHAINS holds a row per frame."""
        import pyarrow.compute as pc

        if not self.database.has("PYTORCH_CALLCHAINS", "id", "stack", "stackDepth"):
            return pd.Index([], dtype=np.int64), np.zeros(1, np.int64), [""]
        frames = self.database.integers("PYTORCH_CALLCHAINS", {"id": "id", "stack": "stack", "depth": "stackDepth"})
        order = np.lexsort((frames["depth"], frames["id"]))
        ids, starts = np.unique(frames["id"][order], return_index=True)
        codes, distinct = pd.factorize(frames["stack"][order])
        names = pa.array(self.strings.of(np.asarray(distinct, np.int64)), pa.large_string()).take(pa.array(codes))
        lists = pa.LargeListArray.from_arrays(pa.array(np.append(starts, len(order)), pa.int64()), names)
        joined = pc.binary_join(lists, pa.scalar("\n", pa.large_string())).dictionary_encode()
        texts = [*joined.dictionary.to_pylist(), ""]
        return pd.Index(ids), np.append(joined.indices.to_numpy(), len(texts) - 1), texts

    @cached_property
    def launched(self) -> pd.DataFrame:
        """The work that the host launched: single tasks and whole collectives, not their parts and not marks of events.
        ``table`` (TASK or COMMUNICATION_OP), ``rowid``, ``connection``, ``stream`` (-1 of a collective),
        ``start_ns``, ``duration_ns``; in order of start."""
        tasks, collectives = self.tasks, self.collectives
        kinds = self.strings.categorical(tasks["type"].to_numpy(), vocabulary.task_type)
        marks = np.array([name.startswith("EVENT_") for name in kinds.categories], bool)
        parts = tasks["id"].isin(self.communication_parts["id"])
        single = tasks[~parts & ~marks[kinds.codes]] if len(marks) else tasks
        columns = ["rowid", "connection", "stream", "start_ns", "duration_ns"]
        both = [
            single[columns].assign(table="TASK"),
            collectives.assign(stream=-1)[columns].assign(table="COMMUNICATION_OP"),
        ]
        return pd.DataFrame(pd.concat(both)).sort_values("start_ns", kind="stable", ignore_index=True)

    def spans(self, table: str, columns: Mapping[str, str], longest_ns: int = _LONGEST_SPAN_NS) -> pd.DataFrame:
        """Rows with ``start_ns`` and ``duration_ns`` that are possible, with ``columns``; the others are said. Raises
        `Unavailable` where the table or its times are absent."""
        self.database.require(table, "startNs", "endNs")
        read = pd.DataFrame(self.database.integers(table, {"start_ns": "startNs", "end_ns": "endNs", **columns}))
        lengths = read.pop("end_ns") - read["start_ns"]
        read.insert(1, "duration_ns", lengths)
        return self.usable_rows(table, read, possible(read["start_ns"]) & (lengths >= 0) & (lengths <= longest_ns))

    def usable_rows(self, table: str, rows: pd.DataFrame, usable: pd.Series) -> pd.DataFrame:
        """The usable rows; the others are said with table and rowid."""
        if usable.all():
            return rows
        dropped = rows["rowid"][~usable]
        examples = [(int(rowid), table) for rowid in dropped[:SHOWN]]
        self.problems.count("loader.db_rows_dropped", table, len(dropped), examples)
        return rows[usable].reset_index(drop=True)


def possible(points: pd.Series) -> pd.Series:
    """Mask of the points in time that can be of one profile."""
    return (points > 0) & ~times.astray(points.to_numpy())


_SPAN: Final = ("rowid", "start_ns", "duration_ns")


def _wrappers(tasks: pd.DataFrame) -> npt.NDArray[np.bool_]:
    """Tasks without a context during which a part of the same stream and task number starts."""
    whole = (tasks["context"] == vocabulary.UINT32_NONE).to_numpy()
    wrappers = np.zeros(len(tasks), bool)
    if whole.all() or not whole.any():
        return wrappers
    keys = ["start_ns", "stream", "task"]
    parts = tasks.loc[~whole, keys].rename_axis("part").reset_index()
    candidates = tasks.loc[whole, [*keys, "duration_ns"]].rename_axis("row").reset_index()
    met = pd.merge_asof(candidates, parts, on="start_ns", by=["stream", "task"], direction="forward")
    met = met[met["part"].notna()]
    delay = tasks["start_ns"].to_numpy()[met["part"].to_numpy(np.int64)] - met["start_ns"]
    wrappers[met.loc[delay <= met["duration_ns"], "row"].to_numpy()] = True
    return wrappers
