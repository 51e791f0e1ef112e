"""Read the device tables of a DB export: kernels, tasks of streams and planes, overlap and clock."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pandas as pd

from advisor_core.contracts.missing import Unavailable
from advisor_core.contracts.tables import Int64Array
from advisor_core.loaders import ascend_words as vocabulary
from advisor_core.loaders.ascend_pytorch.db.records import Records, categorical, possible
from advisor_core.loaders.readers import core_counters as core
from advisor_core.loaders.readers.database import RowidSource
from advisor_core.text.messages import message

_COUNTERS: Final = {
    "aic_total_time": "aic_ns",
    "aicore_time": "aic_ns",
    "aic_total_cycles": "aic_cycles",
    "aic_mac_time": "aic_mac_ns",
    "aic_scalar_time": "aic_scalar_ns",
    "aic_mte1_time": "aic_mte1_ns",
    "aic_mte2_time": "aic_mte2_ns",
    "aic_fixpipe_time": "aic_fixpipe_ns",
    "aiv_total_time": "aiv_ns",
    "aiv_time": "aiv_ns",
    "aiv_total_cycles": "aiv_cycles",
    "aiv_vec_time": "aiv_vec_ns",
    "aiv_scalar_time": "aiv_scalar_ns",
    "aiv_mte2_time": "aiv_mte2_ns",
    "aiv_mte3_time": "aiv_mte3_ns",
}
"""Names in TASK_PMU_INFO whose values are ns or cycles; the ratios beside them follow from these."""

_OVERLAP_TYPES: Final = {0: "COMPUTE", 1: "COMMUNICATION", 2: "COMM_NOT_OVERLAP_COMP", 3: "FREE"}
_LINKS: Final = {0: "ON_CHIP", 1: "HCCS", 2: "PCIE", 3: "ROCE", 4: "SIO", 5: "HCCS_SW", 6: "STANDARD_ROCE"}
_TRANSPORTS: Final = {0: "SDMA", 1: "RDMA", 2: "LOCAL"}
"""ENUM_OVERLAP_ANALYSIS_TYPE, ENUM_HCCL_LINK_TYPE, ENUM_HCCL_TRANSPORT_TYPE where the export has no such table."""


def kernels(records: Records, source: RowidSource) -> pd.DataFrame:
    """Operators and whole collectives in order of start. The gap before each is the one to the end of what ended last
    before; the step is that in which the framework launched it."""
    compute = records.compute.merge(records.tasks_by_id.drop(columns=["rowid", "type"]), on="id", validate="1:1")
    if len(compute) < len(records.compute):
        unmatched = ~records.compute["id"].isin(compute["id"])
        records.usable_rows("COMPUTE_TASK_INFO", records.compute, ~unmatched)
    talks = records.collectives
    if compute.empty and talks.empty:
        raise Unavailable(message("loader.no_table_rows", file=records.database.file, table="COMPUTE_TASK_INFO"))
    strings = records.strings
    described_in = "COMPUTE_TASK_INFO" if records.describes_kernels else "TASK"
    compute_rows = pd.DataFrame({"source_row": source.add(described_in, compute["rowid"].to_numpy())})
    for column in ("start_ns", "duration_ns", "stream", "task", "connection", "block_dim", "mix_block_dim"):
        compute_rows[column] = compute[column]
    compute_rows["model"] = compute["model"].where(compute["model"] != vocabulary.UINT32_NONE, -1)
    counters = _counters(records, compute["id"].to_numpy())
    _say_lost_counters(records, counters, compute["taskType"].to_numpy())
    collective_rows = pd.DataFrame({"source_row": source.add("COMMUNICATION_OP", talks["rowid"].to_numpy())})
    for column in ("start_ns", "duration_ns", "connection"):
        collective_rows[column] = talks[column]
    collective_rows = collective_rows.assign(stream=-1, task=-1, model=-1, block_dim=0, mix_block_dim=-1)
    frame = pd.concat([compute_rows, collective_rows], ignore_index=True)
    rest = np.full(len(talks), -1, np.int64)

    def texts(column: str, of_collectives: Int64Array = rest, clean: Any = vocabulary.tidy) -> pd.Categorical:
        return strings.categorical(np.concatenate([compute[column].to_numpy(), of_collectives]), clean)

    frame["name"] = texts("name", talks["name"].to_numpy())
    frame["type"] = texts("opType", talks["type"].to_numpy())
    cores = texts("taskType", clean=_core).rename_categories(str)
    cores = cores.add_categories([name for name in ("COMMUNICATION",) if name not in cores.categories])
    cores[len(compute) :] = "COMMUNICATION"
    frame["core"] = cores.remove_unused_categories()
    frame["op_state"], frame["hf32"] = texts("opState"), texts("hf32Eligible")
    for side in ("input", "output"):
        frame[f"{side}_shapes"] = texts(f"{side}Shapes", clean=vocabulary.shapes)
        frame[f"{side}_dtypes"] = texts(f"{side}DataTypes", clean=vocabulary.dtypes)
        frame[f"{side}_formats"] = texts(f"{side}Formats", clean=vocabulary.formats)
    for name, values in counters.items():
        frame[name] = np.concatenate([values, np.full(len(talks), np.nan)])
    frame["step"] = steps_of(records, frame)
    frame = frame.sort_values(["start_ns", "source_row"], kind="stable", ignore_index=True)
    starts = frame["start_ns"].to_numpy()
    ended = np.maximum.accumulate(starts + frame["duration_ns"].to_numpy())
    frame["wait_ns"] = np.maximum(np.concatenate([[0], starts[1:] - ended[:-1]]), 0)
    return frame


def _core(text: str) -> str:
    return vocabulary.core(vocabulary.task_type(text))


def _counters(records: Records, ids: Int64Array) -> dict[str, np.ndarray]:
    """Counters of each task by canonical column; none where the export has no TASK_PMU_INFO."""
    return _values(records, ids, _COUNTERS)


def _values(records: Records, ids: Int64Array, wanted: Mapping[str, str]) -> dict[str, np.ndarray]:
    """Values of TASK_PMU_INFO of each task; ``wanted``: name there to the name of the result."""
    if not records.database.has("TASK_PMU_INFO", "globalTaskId", "name", "value"):
        return {}
    names = records.strings.ids(wanted)
    if not names:
        return {}
    name_ids = ", ".join(map(str, names))
    # ids are far below 2**53, so that one matrix of floats holds all three columns exactly
    read = records.database.floats("TASK_PMU_INFO", ["globalTaskId", "name", "value"], f"WHERE name IN ({name_ids})")
    columns = list(dict.fromkeys(wanted[text] for text in names.values()))
    places = {number: columns.index(wanted[text]) for number, text in names.items()}
    rows = pd.Index(ids).get_indexer(pd.Index(np.nan_to_num(read["globalTaskId"], nan=-1).astype(np.int64)))
    column = pd.Series(places).reindex(read["name"]).to_numpy()
    values = np.full((len(columns), len(ids)), np.nan)
    usable = (rows >= 0) & ~np.isnan(column) & ~(read["value"] < 0)
    values[column[usable].astype(np.int64), rows[usable]] = read["value"][usable]
    return dict(zip(columns, values, strict=True))


def core_counters(records: Records, source: RowidSource) -> pd.DataFrame:
    """The counters in TASK_PMU_INFO beside the times of pipes, by kernel."""
    compute = records.compute.merge(records.tasks_by_id.drop(columns=["rowid", "type"]), on="id", validate="1:1")
    compute = compute.assign(source_row=source.add("COMPUTE_TASK_INFO", compute["rowid"].to_numpy()))
    counters = _values(records, compute["id"].to_numpy(), {name: name for name in core.IN_DATABASE})
    frame = core.long(compute, counters)
    if frame is None:
        raise Unavailable(message("loader.no_core_counters", file=records.database.file))
    return frame


def _say_lost_counters(records: Records, counters: dict[str, np.ndarray], kinds: Int64Array) -> None:
    """Kernels with fewer counters than others that ran on the same kind of core: in real exports all have as many."""
    if not counters:
        return
    recorded = pd.Series((~np.isnan(np.stack(list(counters.values())))).sum(axis=0))
    fewer = int((recorded < recorded.groupby(kinds).transform("max")).sum())
    if fewer:
        file = records.database.file
        records.problems.say("warning", message("db.counters_lost", file=file, kernels=fewer))


def steps_of(records: Records, tasks: pd.DataFrame) -> Int64Array:
    """The step of each task (``connection``, ``start_ns``): that during which the operator that launched it started,
    or else its CANN call; of a task without either, that whose tasks run around it. -1 for none."""
    database = records.database
    result = np.full(len(tasks), -1, np.int64)
    if not database.has("STEP_TIME", "id", "startNs", "endNs"):
        return result
    steps = records.spans("STEP_TIME", {"step": "id"}).sort_values("start_ns", ignore_index=True)
    if steps.empty:
        return result
    begins, ends = steps["start_ns"].to_numpy(), (steps["start_ns"] + steps["duration_ns"]).to_numpy()
    launched = _launch_times(records).reindex(tasks["connection"].to_numpy(), fill_value=-1).to_numpy()
    place = np.searchsorted(begins, launched, side="right") - 1
    inside = (place >= 0) & (launched <= ends[np.maximum(place, 0)])
    result[inside] = steps["step"].to_numpy()[place[inside]]
    starts = tasks["start_ns"].to_numpy()
    if inside.any():
        ranges = pd.DataFrame({"step": result[inside], "start": starts[inside]}).groupby("step")["start"]
        around = pd.DataFrame({"first": ranges.min(), "last": ranges.max()}).sort_values("first")
        first, last, number = around["first"].to_numpy(), around["last"].to_numpy(), around.index.to_numpy()
    else:
        first, last, number = begins, ends, steps["step"].to_numpy()
    place = np.searchsorted(first, starts, side="right") - 1
    around_it = ~inside & (place >= 0) & (starts <= last[np.maximum(place, 0)])
    result[around_it] = number[place[around_it]]
    return result


def _launch_times(records: Records) -> pd.Series:
    """The time at which the host launched each task with a connection, by connection: the operator's start, else the
    CANN call's."""
    parts = []
    if records.database.has("PYTORCH_API", "startNs", "endNs"):
        calls, links = records.framework, records.links
        operators = links[(calls["kind"] == "op").to_numpy()[links["row"]]]
        tasks = operators[operators["connection"].isin(records.launched["connection"])]
        starts = calls["start_ns"].to_numpy()[tasks["row"]]
        parts.append(pd.Series(starts, index=tasks["connection"].to_numpy()).sort_values())
    if records.database.has("CANN_API", "startNs", "endNs"):
        parts.append(pd.Series(records.calls["start_ns"].to_numpy(), index=records.calls["connection"].to_numpy()))
    if not parts:
        return pd.Series([], index=pd.Index([], dtype=np.int64), dtype=np.int64)
    times = pd.concat(parts)
    return times[~times.index.duplicated()]


def device_tasks(records: Records, source: RowidSource) -> pd.DataFrame:
    """Every task in order of start. Kernels carry their own name and core, other tasks the name of their type."""
    tasks, strings = records.tasks, records.strings
    frame = tasks[["start_ns", "duration_ns", "stream", "task", "connection"]].copy()
    frame["source_row"] = source.add("TASK", tasks["rowid"].to_numpy())
    names, types = tasks["type"].to_numpy(), tasks["type"].to_numpy()
    if records.describes_kernels:
        places = pd.Index(records.compute["id"]).get_indexer(pd.Index(tasks["id"]))
        described = places >= 0
        for column, values in (("name", names), ("taskType", types)):
            text_ids = records.compute[column].to_numpy()[np.maximum(places, 0)] if len(records.compute) else values
            chosen = np.where(described & (text_ids >= 0), text_ids, values)
            names, types = (chosen, types) if column == "name" else (names, chosen)
    frame["name"] = strings.categorical(names)
    frame["task_type"] = strings.categorical(types, vocabulary.task_type)
    return frame


def communication_tasks(records: Records, source: RowidSource) -> pd.DataFrame:
    """Whole operations and the tasks of their planes, in order of start; no row where nothing was communicated."""
    whole = records.collectives
    parts = records.communication_parts.drop(columns="rowid").merge(
        records.tasks_by_id[["id", "rowid", "start_ns", "duration_ns"]], on="id"
    )
    groups = whole.drop_duplicates("group").set_index("group")["group_index"]
    frame = pd.DataFrame(
        {
            "start_ns": np.concatenate([whole["start_ns"], parts["start_ns"]]),
            "duration_ns": np.concatenate([whole["duration_ns"], parts["duration_ns"]]),
            "group": np.concatenate([whole["group_index"], parts["group"].map(groups).fillna(-1).astype(np.int64)]),
            "plane": np.concatenate([np.full(len(whole), -1), np.maximum(parts["plane"], 0)]),
            "connection": np.concatenate([whole["connection"], np.full(len(parts), -1)]),
            "source_row": np.concatenate(
                [
                    source.add("COMMUNICATION_OP", whole["rowid"].to_numpy()),
                    source.add("TASK", parts["rowid"].to_numpy()),
                ]
            ),
        }
    )
    none = np.full(len(whole), -1, np.int64)
    for column in ("own_rank", "peer_rank", "bytes"):
        frame[column] = np.concatenate([none, parts[column]])
    for column in ("own_rank", "peer_rank"):
        frame[column] = frame[column].where(frame[column] != vocabulary.UINT32_NONE, -1)
    frame["name"] = records.strings.categorical(np.concatenate([whole["name"], parts["type"]]).astype(np.int64))
    links = records.enumeration("ENUM_HCCL_LINK_TYPE", _LINKS)
    transports = records.enumeration("ENUM_HCCL_TRANSPORT_TYPE", _TRANSPORTS)
    frame["link"] = links.categorical(np.concatenate([none, parts["link"]]), vocabulary.link)
    frame["transport"] = transports.categorical(np.concatenate([none, parts["transport"]]), vocabulary.link)
    is_whole = frame["plane"] < 0
    lanes, distinct = pd.factorize(frame["group"].where(is_whole, -2 - frame["plane"]))
    frame["lane"] = categorical(
        lanes, [f"Group {number} Communication" if number >= 0 else f"Plane {-2 - number}" for number in distinct]
    )
    return frame.sort_values(["start_ns", "source_row"], kind="stable", ignore_index=True)


def overlap(records: Records, source: RowidSource) -> pd.DataFrame:
    """OVERLAP_ANALYSIS in order of start."""
    spans = records.spans("OVERLAP_ANALYSIS", {"type": "type"}).sort_values("start_ns", ignore_index=True)
    names = records.enumeration("ENUM_OVERLAP_ANALYSIS_TYPE", _OVERLAP_TYPES)
    frame = spans[["start_ns", "duration_ns"]].copy()
    frame["kind"] = names.categorical(spans["type"].to_numpy(), vocabulary.overlap_kind)
    frame["source_row"] = source.add("OVERLAP_ANALYSIS", spans["rowid"].to_numpy())
    return frame


def frequency(records: Records, source: RowidSource) -> pd.DataFrame:
    """AICORE_FREQ in order of time."""
    records.database.require("AICORE_FREQ", "timestampNs", "freq")
    read = pd.DataFrame(records.database.integers("AICORE_FREQ", {"time_ns": "timestampNs", "mhz": "freq"}))
    read = records.usable_rows("AICORE_FREQ", read, possible(read["time_ns"]) & (read["mhz"] > 0))
    read = read.sort_values("time_ns", kind="stable", ignore_index=True)
    return read.assign(source_row=source.add("AICORE_FREQ", read["rowid"].to_numpy()))


def op_statistic(records: Records, source: RowidSource) -> pd.DataFrame:
    """Totals by type of operator, which the text export has as a file of its own; each row points at the first."""
    kernels = records.compute.merge(records.tasks_by_id[["id", "start_ns", "duration_ns"]], on="id").sort_values(
        "start_ns"
    )
    kernels["type"] = records.strings.categorical(kernels["opType"].to_numpy())
    kernels["core"] = records.strings.categorical(kernels["taskType"].to_numpy(), vocabulary.core)
    kernels = kernels[kernels["type"] != ""]
    if kernels.empty:
        raise Unavailable(message("loader.no_table_rows", file=records.database.file, table="COMPUTE_TASK_INFO"))
    groups = kernels.groupby(["type", "core"], observed=True, sort=False)
    lengths = groups["duration_ns"]
    sums = pd.DataFrame(lengths.agg(count="size", total_ns="sum", mean_ns="mean", min_ns="min", max_ns="max"))
    sums["rowid"] = groups["rowid"].first()
    sums = sums.sort_values("total_ns", ascending=False, kind="stable").reset_index()
    return sums.assign(
        mean_ns=sums["mean_ns"].round().astype(np.int64),
        share=sums["total_ns"] / sums["total_ns"].sum(),
        source_row=source.add("COMPUTE_TASK_INFO", sums["rowid"].to_numpy()),
    )
