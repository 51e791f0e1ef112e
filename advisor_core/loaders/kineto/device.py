"""The tables of what ran on the device: kernels, tasks of streams, and the arrows from the calls that launched them.

Work of the device are kernels, fills and copies within its memory. Copies over the bus are tasks that its kernels may
wait for, and waits are tasks of streams: both are in ``device_tasks`` only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from advisor_core.contracts import tables
from advisor_core.contracts.tables import Int64Array
from advisor_core.loaders.kineto import words
from advisor_core.loaders.kineto.events import Columns
from advisor_core.loaders.kineto.host import Host
from advisor_core.loaders.kineto.results import Tensors, tensors, with_types_of_lists, works_on_lists
from advisor_core.loaders.kineto.taken import with_rows_taken
from advisor_core.loaders.readers.columns import Interner
from advisor_core.nesting import enclosing_of

_WITHIN = "Memcpy DtoD"
COLLECTIVE = "Collective"
COMMUNICATION = "COMMUNICATION"


@dataclass(frozen=True)
class Device:
    """Tasks of one device in the order of the file. ``call``: row of the host's call that launched each, -1 unknown;
    ``operator``: row of the operator around that call, -1 unknown or where the call launched a graph; ``graph``: which
    tasks are of a graph. ``is_work``: which are kernels of the table."""

    columns: Columns
    names: pd.Categorical
    task_type: pd.Categorical
    call: Int64Array
    operator: Int64Array
    graph: npt.NDArray[np.bool_]
    is_work: npt.NDArray[np.bool_]
    collective: npt.NDArray[np.bool_]

    @property
    def rows(self) -> Int64Array:
        """Of the tasks, those that are rows of the kernels."""
        return np.flatnonzero(self.is_work)


def device(columns: Columns, interners: dict[str, Interner], host: Host | None) -> Device:
    """From the columns of `events.Events`, those of one device, whose times are in ns."""
    names = interners["name"].categorical(columns["name"])
    kinds = interners["category"].categorical(columns["category"], words.device_task)
    task_type = _task_types(names, kinds)
    none = np.full(len(names), -1, np.int64)
    call = none if host is None else host.calls(columns["correlation"])
    graph = columns["graph"] >= 0
    operator = none
    if host is not None:
        launched = host.named(host.of("runtime"), words.GRAPH_LAUNCH.search)
        graph |= (call >= 0) & launched[np.maximum(call, 0)]
        operator = np.where(graph, -1, _operators(columns, call, host))
    work = (kinds == words.KERNEL) | (kinds == words.MEMSET) | (task_type == _WITHIN)
    collective = np.asarray(task_type == COLLECTIVE)
    return Device(columns, names, task_type, call, operator, graph, np.asarray(work), collective)


def _operators(columns: Columns, call: Int64Array, host: Host) -> Int64Array:
    """The row of the operator around the launch of each task: the one that it names, else the innermost one around the
    call; -1 for none. Traces of 2022 give as the operator's id the correlation id, which names none."""
    named = host.operators(np.where(columns["external"] == columns["correlation"], -1, columns["external"]))
    unnamed = np.flatnonzero((named < 0) & (call >= 0))
    calls = host.frame.iloc[call[unnamed]]
    around = enclosing_of(host.work_of_operators(), calls["thread"].to_numpy(), calls["start_ns"].to_numpy())
    named[unnamed] = around
    return named


def _task_types(names: pd.Categorical, kinds: pd.Categorical) -> pd.Categorical:
    """Kernel, Collective, Memset, or what the name of a copy or a synchronisation begins with."""
    named = np.array([words.copy_kind(str(name)) for name in names.categories], object)[names.codes]
    types = np.where((kinds == words.MEMCPY) | (kinds == words.SYNC), named, np.asarray(kinds, object))
    talks = np.array([bool(words.COLLECTIVE_KERNEL.search(str(name))) for name in names.categories], bool)
    types = np.where(talks[names.codes] & (kinds == words.KERNEL), COLLECTIVE, types)
    task_types: pd.Categorical = pd.Categorical(types.astype(object))
    return task_types


def device_tasks(tasks: Device) -> pd.DataFrame:
    columns = tasks.columns
    return tables.DEVICE_TASKS.conform(
        pd.DataFrame(
            {
                "name": tasks.names,
                "task_type": tasks.task_type,
                "stream": columns["stream"],
                "connection": columns["correlation"],
                "start_ns": columns["start_ns"],
                "duration_ns": columns["duration_ns"],
                "source_row": columns["source_row"],
            }
        )
    )


def kernels(tasks: Device, host: Host | None, operations: pd.Series) -> pd.DataFrame:
    """``operations``: of the kernels that communicate, by their place among the tasks."""
    rows = tasks.rows
    columns = {name: values[rows] for name, values in tasks.columns.items()}
    operator = tasks.operator[rows]
    frame = pd.DataFrame(
        {
            "step": _steps(host, tasks.call[rows], columns["start_ns"]),
            "name": tasks.names[rows],
            "core": pd.Categorical(np.where(tasks.collective[rows], COMMUNICATION, "")),
            "start_ns": columns["start_ns"],
            "duration_ns": columns["duration_ns"],
            "stream": columns["stream"],
            "task": columns["correlation"],
            "model": np.where(tasks.graph[rows], np.maximum(columns["graph"], 0), -1),
            "source_row": columns["source_row"],
        }
    )
    types = _types(frame["name"], host, operator)
    collective_operations = operations.reindex(rows).to_numpy()
    frame["type"] = pd.Categorical(np.where(tasks.collective[rows], collective_operations, types))
    if host is not None:
        frame = frame.assign(**_tensors(frame, host, operator))
    return tables.KERNELS.conform(frame)


def _tensors(frame: pd.DataFrame, host: Host, operator: Int64Array) -> dict[str, pd.Series]:
    """Shapes and types of the tensors of kernels that do what their operator is: its inputs (those of a product as its
    two operands) and, of the kernel that takes longest of those of one call, its result. A call on lists of tensors
    launches as many kernels as it takes: the first one stands for all. Made once per distinct kernel, operator and
    inputs."""
    rows = np.maximum(operator, 0)
    names = ("shapes", "dtypes", "strides", "values")
    calls = pd.DataFrame(
        {
            "kernel": frame["name"].astype(str),
            "type": frame["type"].astype(str),
            "operator": host.names(operator),
            "main": _main(frame, operator),
            "goes_on": _goes_on(frame, operator),
            **{name: host.columns[name][rows] for name in names},
        }
    )
    numbers = calls.groupby(list(calls), sort=False).ngroup().to_numpy()
    texts = {name: list(host.interners[name]) for name in names}
    found = []
    for kernel, kind, name, main, goes_on, *codes in calls.drop_duplicates().itertuples(index=False, name=None):
        if goes_on or kind != name or (name in words.PRODUCTS and not words.multiplies(kernel)):
            found.append(Tensors())
            continue
        tensors_of_kernel = tensors(name, *(str(texts[of][code]) for of, code in zip(names, codes, strict=True)))
        stands_for_it = main or works_on_lists(name)
        found.append(
            tensors_of_kernel if stands_for_it else tensors_of_kernel._replace(output_shapes="", output_dtypes="")
        )
    per_kernel = np.array(found, object).reshape(-1, len(Tensors._fields))[numbers]
    columns = {name: per_kernel[:, place] for place, name in enumerate(Tensors._fields)}
    typed = with_types_of_lists(with_rows_taken(frame[["type", "stream", "start_ns"]].assign(**columns)))
    return {name: pd.Series(pd.Categorical(typed[name])) for name in Tensors._fields}


def _main(frame: pd.DataFrame, operator: Int64Array) -> npt.NDArray[np.bool_]:
    """Marks the kernels that stand for their call: those alone in it, and of several the one whose name takes longest
    in all calls of that operator, where it is there once. The others prepare for it or end it."""
    calls = pd.DataFrame(
        {"call": operator, "kernel": frame["name"].cat.codes.to_numpy(), "took": frame["duration_ns"].to_numpy()}
    )
    own = frame["type"].cat.codes.to_numpy()
    alone = calls.groupby("call")["took"].transform("size").to_numpy() == 1
    if alone.all():
        return np.asarray(alone)
    took = calls.groupby([own, calls["kernel"]])["took"].transform("sum").to_numpy()
    longest = took == pd.Series(took).groupby(operator).transform("max").to_numpy()
    once = calls.groupby(["call", "kernel"])["took"].transform("size").to_numpy() == 1
    return np.asarray(alone | (longest & once))


def _goes_on(frame: pd.DataFrame, operator: Int64Array) -> npt.NDArray[np.bool_]:
    """Marks the kernels of a call on lists of tensors behind the first one."""
    of_lists = frame["type"].isin([name for name in frame["type"].cat.categories if works_on_lists(str(name))])
    rows = np.flatnonzero(of_lists.to_numpy() & (operator >= 0))
    in_order = rows[np.lexsort((frame["start_ns"].to_numpy()[rows], operator[rows]))]
    later = np.concatenate([[False], np.diff(operator[in_order]) == 0])[: len(rows)]
    goes_on = np.zeros(len(frame), np.bool_)
    goes_on[in_order[later]] = True
    return goes_on


def _types(names: pd.Series, host: Host | None, operator: Int64Array) -> npt.NDArray[np.object_]:
    """The type of each kernel; asked once per distinct pair of kernel and operator."""
    operators = np.full(len(names), "", object) if host is None else host.names(operator)
    pairs = pd.DataFrame({"kernel": names.astype(str), "operator": operators})
    numbers = pairs.groupby(["kernel", "operator"], sort=False).ngroup().to_numpy()
    distinct = pairs.drop_duplicates()
    types = [words.kernel_type(*pair) for pair in zip(distinct["kernel"], distinct["operator"], strict=True)]
    kernel_types: npt.NDArray[np.object_] = np.array(types, object)[numbers]
    return kernel_types


def _steps(host: Host | None, call: Int64Array, start_ns: Int64Array) -> Int64Array:
    """The step in which each kernel was launched, by whichever thread; where the launch is not recorded, in which it
    started. -1 outside of all."""
    marks = None if host is None else host.steps()
    if host is None or marks is None or marks.empty:
        return np.full(len(call), -1, np.int64)
    launched = np.where(call >= 0, host.frame["start_ns"].to_numpy()[np.maximum(call, 0)], start_ns)
    place = np.searchsorted(marks["start_ns"].to_numpy(), launched, side="right") - 1
    inside = (place >= 0) & (launched < marks["end_ns"].to_numpy()[np.maximum(place, 0)])
    return np.where(inside, marks["step"].to_numpy()[np.maximum(place, 0)], -1)


def launch_flows(tasks: Device, host: Host, elsewhere: Int64Array) -> pd.DataFrame:
    """Both ends of the arrow from each call to each task that it launched, by their correlation id; and the beginnings
    of those calls that launch kernels of which none was recorded. ``elsewhere``: correlation ids of the tasks of other
    devices."""
    launched = np.flatnonzero(tasks.call >= 0)
    launching = host.launching() & ~np.isin(host.columns["correlation"], elsewhere)
    launching[tasks.call[launched]] = True
    calls = np.flatnonzero(launching & (host.columns["correlation"] >= 0))
    begin = host.frame.iloc[calls]
    columns = tasks.columns
    ends = np.repeat(["s", "f"], [len(calls), len(launched)])
    return tables.FLOWS.conform(
        pd.DataFrame(
            {
                "kind": pd.Categorical(np.full(len(ends), "host_to_device")),
                "end": pd.Categorical(ends),
                "flow": np.concatenate([host.columns["correlation"][calls], columns["correlation"][launched]]),
                "thread": np.concatenate([begin["thread"].to_numpy(), columns["stream"][launched]]),
                "device": ends == "f",
                "time_ns": np.concatenate([begin["start_ns"].to_numpy(), columns["start_ns"][launched]]),
                "source_row": np.concatenate([begin["source_row"].to_numpy(), columns["source_row"][launched]]),
            }
        )
    )
