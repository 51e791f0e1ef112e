"""Communication of one rank: what is not covered by computing, and whether it moves data or waits for a rank.

What a collective does is read from the tasks on all its planes (`collective_state`, `collective_calls`). The split into
wait and idle of communication.json comes from one plane and contradicts the others; it is shown and never judged.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from advisor_core.api import Scalar
from advisor_core.api.advisors import Column, Interval, Metric, Observations, Params, Reference, Rows, advisor
from advisor_core.api.facts import (
    COLLECTIVE_BANDWIDTH,
    COLLECTIVES,
    COMMUNICATION_TASKS,
    KERNELS,
    LINKS,
    POINT_TO_POINT,
    PROFILE,
    STEP_TRACE,
    Facts,
    Layer,
    NotApplicable,
    Unavailable,
    bookings,
    collective_calls,
    collective_state,
    kernel_list,
    ledger,
    rank_summary,
    row_refs,
    steps,
    timeline,
)
from advisors.measuring import DEVICE_LANE, LARGEST, leaves, pieces_of, records, row, share, step_count, step_ns, under
from advisors.messages import message
from advisors.transfers import chains, hideable_ns, message_bytes, time_by_size

_STEP_NS = Column("step_ns", "float", "ns", "mean wall time of a step")


def _in_steps(facts: Facts) -> pd.DataFrame:
    """The collective calls that belong to a step."""
    calls: pd.DataFrame = facts[collective_calls]
    return calls[calls["step"] >= 0].reset_index(drop=True)


def _call_rows(facts: Facts, calls: pd.DataFrame, limit: int = 10) -> list[Reference]:
    """The calls as rows of kernel_details.csv and of communication.json, as far as these were read."""
    chosen = calls.head(limit)
    found: list[Reference] = []
    for where in row_refs(chosen):
        if where.table is KERNELS:
            columns = ("name", "start_ns", "duration_ns")
            found.append(Rows(message("communication.largest"), KERNELS, where.rows, columns))
    exported = facts.get(COLLECTIVES)
    if exported is not None and len(exported) and len(chosen):
        names = exported["name"].astype(str).str.split("@").str[0]
        place = names.map({name: number for number, name in enumerate(chosen["name"].drop_duplicates())})
        rows = place.dropna().sort_values(kind="stable").index.to_numpy()
        if len(rows):
            shown = ("name", "elapse_ns", "transit_ns", "wait_ns", "idle_ns")
            found.append(Rows(message("communication.exporter_collectives"), COLLECTIVES, rows, shown))
    return found


def _call_metric(calls: pd.DataFrame, limit: int = 10) -> Metric:
    """Evidence: the times of the first ``limit`` calls, and the rank that each waits for."""
    named = calls.assign(peer=calls["waits_for"].where(calls["waits_for"] >= 0).astype("Int64").astype(object))
    rows = records(
        named,
        limit,
        operation="name",
        elapse="elapse_ns",
        uncovered="uncovered_ns",
        transmit="transmit_ns",
        wait="wait_ns",
        launch_gaps="launch_gap_ns",
        waits_for_rank="peer",
    )
    units = dict.fromkeys(("elapse", "uncovered", "transmit", "wait", "launch_gaps"), "ns")
    return Metric(message("communication.per_call"), rows, units)


def _leaf_metric(per_leaf: pd.Series, wall: float) -> Metric:
    """Evidence: the ledger entries of communication, largest first, with their share of the step."""
    causes = per_leaf[per_leaf.index.str.startswith("communication/")].sort_values(ascending=False)
    rows: list[dict[str, Scalar]] = [
        {"leaf": str(path), "time": ns, "share_of_step": share(ns, wall)} for path, ns in causes.items()
    ]
    return Metric(message("communication.where"), rows, {"time": "ns", "share_of_step": "ratio"})


# --- CO001: the symptom


@advisor(
    "communication.overlap",
    needs=(ledger, rank_summary),
    wants=(collective_calls, kernel_list, KERNELS, COLLECTIVES, STEP_TRACE),
    columns=(
        _STEP_NS,
        Column("uncovered_ns", "float", "ns", "communication that no computing covers, per step"),
        Column("uncovered_share", "float", "ratio", "uncovered_ns over wall time"),
        Column("communication_ns", "float", "ns", "communication per step, covered or not"),
        Column("overlap_ratio", "float", "ratio", "covered communication over all communication"),
        Column("waiting_share", "float", "ratio", "of the uncovered time: waiting for another rank"),
        Column("pipeline_share", "float", "ratio", "waiting for a neighbour in the pipeline over wall time"),
        Column("moving_share", "float", "ratio", "of the uncovered time: moving data"),
        Column("unknown_share", "float", "ratio", "of the uncovered time: not known which"),
        Column("calls", "float", "count", "collectives and send/receive operations per step; unknown without them"),
    ),
)
def overlap(facts: Facts, params: Params) -> Observations:
    """Communication that is not covered by computing."""
    if kernel_list in facts:
        raise NotApplicable(message("capture_start.no_loop"))
    if (missing := facts.missing(collective_calls)) is not None and missing.kind == "not_applicable":
        raise missing.error()
    calls = _in_steps(facts) if missing is None else None
    totals, per_leaf = facts[rank_summary], leaves(facts)
    steps, wall = len(totals), float(totals["wall_ns"].mean())
    covered = float(totals["overlapped_ns"].sum()) / steps
    open_ns = float(totals["uncovered_ns"].sum()) / steps
    frame = row(
        step_ns=wall,
        uncovered_ns=open_ns,
        uncovered_share=share(open_ns, wall),
        communication_ns=open_ns + covered,
        overlap_ratio=share(covered, open_ns + covered),
        waiting_share=share(under(per_leaf, "communication/wait"), open_ns),
        pipeline_share=share(under(per_leaf, "communication/wait/pipeline"), wall),
        moving_share=share(under(per_leaf, "communication/transmit"), open_ns),
        unknown_share=share(under(per_leaf, "communication/unknown"), open_ns),
        calls=len(calls) / steps if calls is not None else np.nan,
    )

    def evidence(number: int) -> Sequence[Reference]:
        found: list[Reference] = [_leaf_metric(per_leaf, wall)]
        if calls is not None:
            largest = calls.sort_values("uncovered_ns", ascending=False, kind="stable")
            found += [_call_metric(largest), *_call_rows(facts, largest)]
        if STEP_TRACE in facts and len(facts[STEP_TRACE]):
            columns = ("step", "uncovered_communication_ns", "overlapped_ns", "communication_ns")
            rows = np.arange(len(facts[STEP_TRACE]))
            found.append(Rows(message("common.exporter_totals"), STEP_TRACE, rows, columns))
        return found

    return Observations(frame, evidence)


# --- CO002: waiting for a late rank

_WAIT = "communication/wait/"


@advisor(
    "communication.late_rank",
    needs=(steps, ledger, bookings, collective_calls, collective_state, COMMUNICATION_TASKS),
    wants=(KERNELS, COLLECTIVES),
    about=(Column("late", "text", "", "the rank that is waited for, as the ledger names it: rank N"),),
    columns=(
        _STEP_NS,
        Column("wait_ns", "float", "ns", "uncovered waiting for that rank, per step"),
        Column("wait_share", "float", "ratio", "wait_ns over wall time"),
        Column("share_of_uncovered", "float", "ratio", "wait_ns over uncovered communication"),
        Column("calls", "float", "count", "collectives that wait for it for most of their uncovered time, per step"),
        Column("all_calls", "float", "count", "collectives per step"),
        Column("longest_ns", "float", "ns", "longest wait of one collective for it"),
        Column("is_global", "bool", "", "the number is a rank of the job, not of a group"),
    ),
)
def late_rank(facts: Facts, params: Params) -> Observations:
    """Waiting in collectives, by the rank that was waited for."""
    booked = facts[bookings]
    calls, steps, wall, per_leaf = _in_steps(facts), step_count(facts), step_ns(facts), leaves(facts)
    named = per_leaf[per_leaf.index.str.fullmatch(rf"{_WAIT}(group )?rank \d+")]
    if named.empty:
        raise NotApplicable(message("communication.no_peers"))
    late = named.index.str.removeprefix(_WAIT)
    peers = pd.Index(late.str.extract(r"(\d+)$", expand=False)).astype(int)
    mostly = calls["waits_for_ns"] * 2 > calls["uncovered_ns"]
    held = calls["waits_for"][mostly].value_counts().reindex(peers, fill_value=0)
    longest = calls.groupby("waits_for")["waits_for_ns"].max().reindex(peers, fill_value=0)
    open_ns = under(per_leaf, "communication")
    frame = pd.DataFrame(
        {
            "late": late.to_numpy(dtype=object),
            "step_ns": wall,
            "wait_ns": named.to_numpy(),
            "wait_share": named.to_numpy() / wall,
            "share_of_uncovered": named.to_numpy() / open_ns,
            "calls": held.to_numpy() / steps,
            "all_calls": len(calls) / steps,
            "longest_ns": longest.to_numpy().astype(float),
            "is_global": [not str(name).startswith("group ") for name in late],
        }
    )

    def evidence(number: int) -> Sequence[Reference]:
        name = str(frame["late"].iloc[number])
        own = pieces_of(booked, _WAIT + name)
        per_task = own.groupby("wait")["ns"].sum().sort_values(ascending=False, kind="stable")
        columns = ("lane", "name", "own_rank", "peer_rank", "start_ns", "duration_ns")
        found: list[Reference] = [
            Rows(message("communication.waits", rank=name), COMMUNICATION_TASKS, per_task.index.to_numpy(), columns)
        ]
        longest = own.iloc[int(own["ns"].to_numpy().argmax())]
        title = message("communication.longest_wait", rank=name)
        found.append(Interval(title, int(longest["start_ns"]), int(longest["end_ns"]), DEVICE_LANE))
        mine = calls[calls["waits_for"] == peers[number]]
        mine = mine.sort_values("waits_for_ns", ascending=False, kind="stable")
        return [*found, _call_metric(mine), *_call_rows(facts, mine)]

    return Observations(frame, evidence)


# --- CO003: moving data; CO009: between the tasks of a collective


@advisor(
    "communication.transmit",
    needs=(steps, ledger, timeline, collective_calls, collective_state),
    wants=(KERNELS, COLLECTIVES),
    columns=(
        _STEP_NS,
        Column("time_ns", "float", "ns", "uncovered moving, per step"),
        Column("time_share", "float", "ratio", "time_ns over wall time"),
        Column("hideable_ns", "float", "ns", "of it: what computing could hide if it started earlier, per step"),
        Column("hideable_share", "float", "ratio", "hideable_ns over wall time"),
        Column("late_ns", "float", "ns", "of it: what would be hidden had nobody waited for a rank, per step"),
        Column("share_of_uncovered", "float", "ratio", "time_ns over uncovered communication"),
        Column("moving_overlap_ratio", "float", "ratio", "covered part of the time in which data moved"),
        Column("calls", "float", "count", "operations per step"),
        Column("largest_bytes", "float", "B", "largest message of one operation, from the bytes on its links"),
    ),
)
def transmit(facts: Facts, params: Params) -> Observations:
    """Moving data while nothing computes, and how much of it could be hidden."""
    calls, count, wall, per_leaf = _in_steps(facts), step_count(facts), step_ns(facts), leaves(facts)
    computing: Layer = facts[timeline].computing
    bare, moving = under(per_leaf, "communication/transmit"), calls["moving_ns"].clip(lower=0).sum() / count
    rows = chains(calls)
    starts, ends = rows["start_ns"].to_numpy(), rows["end_ns"].to_numpy()
    before = np.concatenate([facts[steps]["start_ns"].to_numpy()[:1], ends[:-1]])[: len(rows)]
    hideable = hideable_ns(rows, computing.measure(starts) - computing.measure(before)) / count
    sizes = message_bytes(calls)
    frame = row(
        step_ns=wall,
        time_ns=bare,
        time_share=share(bare, wall),
        hideable_ns=hideable,
        hideable_share=share(hideable, wall),
        late_ns=float(rows["displaced_ns"].sum()) / count,
        share_of_uncovered=share(bare, under(per_leaf, "communication")),
        moving_overlap_ratio=share(moving - bare, moving),
        calls=len(calls) / count,
        largest_bytes=float(sizes.max()) if sizes.notna().any() else np.nan,
    )

    def evidence(number: int) -> Sequence[Reference]:
        largest = calls.sort_values("transmit_ns", ascending=False, kind="stable")
        return [_leaf_metric(per_leaf, wall), _call_metric(largest), *_call_rows(facts, largest)]

    return Observations(frame, evidence)


@advisor(
    "communication.launch_gaps",
    needs=(steps, ledger, collective_calls, collective_state),
    wants=(KERNELS, COLLECTIVES),
    columns=(
        _STEP_NS,
        Column("time_ns", "float", "ns", "uncovered time in which a collective had begun and did nothing, per step"),
        Column("time_share", "float", "ratio", "time_ns over wall time"),
        Column("share_of_uncovered", "float", "ratio", "time_ns over uncovered communication"),
        Column("calls", "float", "count", "operations per step"),
    ),
)
def launch_gaps(facts: Facts, params: Params) -> Observations:
    """Collectives that have begun and whose next task has not."""
    calls, steps, wall, per_leaf = _in_steps(facts), step_count(facts), step_ns(facts), leaves(facts)
    time = under(per_leaf, "communication/launch")
    frame = row(
        step_ns=wall,
        time_ns=time,
        time_share=share(time, wall),
        share_of_uncovered=share(time, under(per_leaf, "communication")),
        calls=len(calls) / steps,
    )

    def evidence(number: int) -> Sequence[Reference]:
        largest = calls.sort_values("launch_gap_ns", ascending=False, kind="stable")
        return [_leaf_metric(per_leaf, wall), _call_metric(largest), *_call_rows(facts, largest)]

    return Observations(frame, evidence)


# --- CO004: abnormally long operations


@advisor(
    "communication.outliers",
    needs=(steps, collective_calls, collective_state),
    wants=(KERNELS, COLLECTIVES),
    params=("min_samples",),
    about=(
        Column("name", "text", "", "operation, as the exporter names it"),
        Column("step_number", "int", "", "which of the profiled steps, from 0"),
    ),
    columns=(
        _STEP_NS,
        Column("operation", "text", "", "kind of operation"),
        Column("active_ns", "float", "ns", "its time without waiting"),
        Column("median_ns", "float", "ns", "median over operations of the same kind, group and size"),
        Column("spread_ns", "float", "ns", "median absolute deviation of those, times 1.4826"),
        Column("ratio", "float", "ratio", "active_ns over median_ns"),
        Column("samples", "int", "count", "operations of the same kind, group and size"),
        Column("excess_ns", "float", "ns", "uncovered time that it took more than the median, per step"),
        Column("excess_share", "float", "ratio", "excess_ns over wall time"),
    ),
)
def outliers(facts: Facts, params: Params) -> Observations:
    """Operations that move data for far longer than others of the same kind, group and size.

    An operation that takes long may have waited: only those count whose tasks tell moving from waiting."""
    calls, steps, wall = _in_steps(facts), step_count(facts), step_ns(facts)
    calls = calls[calls["moving_ns"] >= 0].reset_index(drop=True)
    if not (calls["bytes"] >= 0).any():
        raise Unavailable(message("communication.no_sizes"), message("communication.no_sizes.collect"), ("level1",))
    calls["active_ns"] = calls["moving_ns"].astype(float)
    kinds = calls.groupby(["operation", "group", "bytes"])
    calls["samples"] = kinds["name"].transform("size")
    calls["median_ns"] = kinds["active_ns"].transform("median")
    distance = (calls["active_ns"] - calls["median_ns"]).abs()
    calls["spread_ns"] = distance.groupby([calls["operation"], calls["group"], calls["bytes"]]).transform("median")
    calls = calls[(calls["samples"] >= params["min_samples"]) & (calls["bytes"] >= 0)].reset_index(drop=True)
    if calls.empty:
        raise NotApplicable(message("communication.few_samples", samples=params["min_samples"]))
    excess = np.minimum(np.maximum(calls["active_ns"] - calls["median_ns"], 0), calls["uncovered_ns"]) / steps
    frame = pd.DataFrame(
        {
            "name": calls["name"],
            "step_number": calls["step"],
            "step_ns": wall,
            "operation": calls["operation"],
            "active_ns": calls["active_ns"],
            "median_ns": calls["median_ns"],
            "spread_ns": calls["spread_ns"] * 1.4826,
            "ratio": calls["active_ns"] / calls["median_ns"].where(calls["median_ns"] > 0),
            "samples": calls["samples"],
            "excess_ns": excess,
            "excess_share": excess / wall,
        }
    )

    def evidence(number: int) -> Sequence[Reference]:
        call = calls.iloc[number]
        alike = calls[
            (calls["operation"] == call["operation"])
            & (calls["group"] == call["group"])
            & (calls["bytes"] == call["bytes"])
        ].sort_values("active_ns", ascending=False, kind="stable")
        rows = records(alike, LARGEST, operation="name", active="active_ns", elapse="elapse_ns")
        return [
            Interval(message("communication.outlier"), int(call["start_ns"]), int(call["end_ns"]), DEVICE_LANE),
            Metric(message("communication.outlier_peers"), rows, {"active": "ns", "elapse": "ns"}),
            *_call_rows(facts, calls.iloc[[number]]),
        ]

    return Observations(frame, evidence)


# --- CO005: small packets


@advisor(
    "communication.small_calls",
    needs=(steps, collective_calls, collective_state, COLLECTIVE_BANDWIDTH),
    wants=(KERNELS, COLLECTIVES),
    params=("small_sdma", "small_rdma", "bucket"),
    about=(
        Column("operation", "text", "", "kind of operation"),
        Column("group", "text", "", "communication group"),
    ),
    columns=(
        _STEP_NS,
        Column("calls", "float", "count", "operations of this kind and group per step"),
        Column("small_calls", "float", "count", "of these: below the size from which a link is used well"),
        Column("small_bytes", "float", "B", "median size of the small ones, over all links"),
        Column("small_bandwidth", "float", "B/s", "bytes over moving time of the small ones"),
        Column("best_bandwidth", "float", "B/s", "the same for the operations of this rank that use the links best"),
        Column("transmit_ns", "float", "ns", "uncovered moving time of the small ones, per step"),
        Column("fixed_ns", "float", "ns", "time of one whatever its size, by a line through time and size of all"),
        Column("saveable_ns", "float", "ns", "of it and of their launch gaps: what fewer and larger ones would save"),
        Column("saveable_share", "float", "ratio", "saveable_ns over wall time"),
    ),
)
def small_calls(facts: Facts, params: Params) -> Observations:
    """Operations too small to use the links, and the time that this costs."""
    calls, steps, wall = _in_steps(facts), step_count(facts), step_ns(facts)
    known = calls[(calls["bytes"] > 0) & (calls["moving_ns"] > 0)].reset_index(drop=True)
    if known.empty:
        raise Unavailable(message("communication.no_sizes"), message("communication.no_sizes.collect"), ("level1",))
    rates = known["bytes"] / known["moving_ns"] * 1e9
    wide = _over_rdma(facts[COLLECTIVE_BANDWIDTH], known["name"])
    small = (known["bytes"] < np.where(wide, params["small_rdma"], params["small_sdma"])).to_numpy()
    # Operations over RDMA are compared with each other, those inside a server with each other.
    best = rates.groupby(wide).transform("max")
    known["kind"] = known.groupby(["operation", "group", wide], observed=True).ngroup()
    fixed = known["kind"].map(time_by_size(known)["fixed_ns"])
    sizes = message_bytes(known).fillna(known["bytes"])
    joined = sizes < float(params["bucket"])
    kept = _kept_operations(known[joined], sizes, float(params["bucket"])).reindex(known.index, fill_value=1.0)
    # What is moved at the best bandwidth needs the rest of the time; of one size alone that is all that can be said.
    usual = known["moving_ns"] - known["bytes"] / best * 1e9
    lost = (fixed.fillna(usual) * (1 - kept)).clip(lower=0, upper=known["moving_ns"])
    bare = known["transmit_ns"] / known["moving_ns"]
    known["saveable"] = (lost * bare + known["launch_gap_ns"] * (1 - kept)).where(joined, 0.0)
    known["fixed"] = fixed
    known["best"] = best
    known["small"] = small
    groups = known.groupby(["operation", "group"], sort=True)
    frame = groups.agg(calls=("name", "size"), small_calls=("small", "sum"), saveable_ns=("saveable", "sum")).astype(
        float
    )
    tiny = known[small].groupby(["operation", "group"])
    sums = tiny[["bytes", "moving_ns", "transmit_ns"]].sum().reindex(frame.index)
    frame["small_bytes"] = tiny["bytes"].median().reindex(frame.index)
    frame["small_bandwidth"] = sums["bytes"] / sums["moving_ns"] * 1e9
    frame["best_bandwidth"] = groups["best"].max()
    frame["fixed_ns"] = groups["fixed"].median()
    frame["transmit_ns"] = sums["transmit_ns"].fillna(0.0)
    for column in ("calls", "small_calls", "transmit_ns", "saveable_ns"):
        frame[column] = frame[column] / steps
    frame = frame.reset_index()
    frame["step_ns"] = wall
    frame["saveable_share"] = frame["saveable_ns"] / wall

    def evidence(number: int) -> Sequence[Reference]:
        subject = frame.iloc[number]
        own = known[
            (known["operation"] == subject["operation"]) & (known["group"] == subject["group"]) & known["small"]
        ]
        own = own.sort_values("saveable", ascending=False, kind="stable")
        own = own.assign(rate=own["bytes"] / own["moving_ns"] * 1e9)
        rows = records(own, operation="name", size="bytes", moving="moving_ns", bandwidth="rate", packets="packets")
        units = {"size": "B", "moving": "ns", "bandwidth": "B/s", "packets": "count"}
        found: list[Reference] = [Metric(message("communication.small"), rows, units)]
        table = facts[COLLECTIVE_BANDWIDTH]
        names = table["name"].astype(str).str.split("@").str[0]
        moved = np.flatnonzero((names.isin(own["name"]) & (table["bytes"] > 0)).to_numpy())
        if len(moved):
            columns = ("name", "transport", "bytes", "transit_ns", "bandwidth", "packets")
            found.append(Rows(message("communication.bandwidth_rows"), COLLECTIVE_BANDWIDTH, moved, columns))
        return found

    return Observations(frame, evidence)


def _kept_operations(joined: pd.DataFrame, sizes: pd.Series, bucket: float) -> pd.Series:
    """Which part of each operation stays when those of one kind and step are put together in messages of ``bucket``
    bytes."""
    groups = sizes[joined.index].groupby([joined["kind"], joined["step"]])
    kept: pd.Series = np.ceil(groups.transform("sum") / bucket) / groups.transform("size")
    return kept.clip(upper=1.0)


def _over_rdma(bandwidth: pd.DataFrame, names: pd.Series) -> np.ndarray:
    """Which operations moved more over RDMA than inside the server."""
    table = bandwidth.assign(name=bandwidth["name"].astype(str).str.split("@").str[0])
    sums = table.groupby(["name", "transport"], observed=True)["bytes"].sum().unstack(fill_value=0)
    none = pd.Series(0, index=sums.index)
    wide = sums.get("RDMA", none) > sums.get("SDMA", none)
    return names.map(wide).fillna(False).to_numpy(dtype=bool)


# --- CO006: AllReduce


@advisor(
    "communication.all_reduce",
    needs=(steps, ledger, collective_calls, collective_state, PROFILE),
    wants=(KERNELS, COLLECTIVES),
    about=(Column("group", "text", "", "communication group"),),
    columns=(
        _STEP_NS,
        Column("calls", "float", "count", "AllReduce operations per step"),
        Column(
            "transmit_ns", "float", "ns", "their uncovered moving time less what waiting for a rank made late, per step"
        ),
        Column("transmit_share", "float", "ratio", "transmit_ns over wall time"),
        Column("bytes", "float", "B", "moved per step over all links, unknown without communication.json"),
        Column("members", "float", "count", "ranks in the group"),
        Column("tensor_parallel", "float", "count", "size of tensor parallelism, where it is recorded"),
    ),
)
def all_reduce(facts: Facts, params: Params) -> Observations:
    """AllReduce operations whose two halves could be done apart."""
    calls, steps, wall = _in_steps(facts), step_count(facts), step_ns(facts)
    profile = facts[PROFILE]
    calls = calls[calls["operation"].str.lower() == "allreduce"].reset_index(drop=True)
    if calls.empty:
        raise NotApplicable(message("communication.no_all_reduce"))
    groups = calls.assign(known=calls["bytes"].where(calls["bytes"] >= 0)).groupby("group", sort=True)
    frame = groups.agg(
        calls=("name", "size"), transmit_ns=("transmit_ns", "sum"), bytes=("known", "sum"), members=("members", "max")
    ).reset_index()
    late = {group: float(chains(found)["displaced_ns"].sum()) for group, found in calls.groupby("group")}
    frame["transmit_ns"] -= frame["group"].map(late)
    for column in ("calls", "transmit_ns", "bytes"):
        frame[column] = frame[column] / steps
    frame["bytes"] = frame["bytes"].where(groups["known"].count().to_numpy() > 0)
    frame["members"] = frame["members"].where(frame["members"] > 0).astype(float)
    frame["step_ns"] = wall
    frame["transmit_share"] = frame["transmit_ns"] / wall
    frame["tensor_parallel"] = float(profile.parallel.get("tp", np.nan))

    def evidence(number: int) -> Sequence[Reference]:
        own = calls[calls["group"] == frame["group"].iloc[number]]
        own = own.sort_values("transmit_ns", ascending=False, kind="stable")
        return [_call_metric(own), *_call_rows(facts, own)]

    return Observations(frame, evidence)


# --- CO007: slow links


@advisor(
    "communication.links",
    needs=(collective_calls, LINKS, steps, ledger),
    params=("min_links",),
    about=(
        Column("group", "text", "", "communication group"),
        Column("source_rank", "int", "", "rank within the group that sends"),
        Column("target_rank", "int", "", "rank within the group that receives"),
        Column("transport", "text", "", "HCCS, RDMA, PCIE or SIO"),
    ),
    columns=(
        _STEP_NS,
        Column("bandwidth", "float", "B/s", "bytes over transit time of this link"),
        Column("median_bandwidth", "float", "B/s", "median over the other links of this transport"),
        Column("ratio", "float", "ratio", "bandwidth over median_bandwidth"),
        Column("links", "int", "count", "links of this transport"),
        Column("bytes", "float", "B", "moved over this link, per step"),
        Column("lost_ns", "float", "ns", "transit time more than at the median bandwidth, per step"),
        Column("lost_share", "float", "ratio", "lost_ns over wall time"),
    ),
)
def links(facts: Facts, params: Params) -> Observations:
    """Links against the other links of the same transport."""
    table, steps, wall = facts[LINKS], step_count(facts), step_ns(facts)
    # The exporter lists some operations (top, middle, bottom) and their total: only the totals count each once.
    totals = table["name"].astype(str).str.contains(r"-total(?:@|$)", regex=True)
    between = (table["transport"] != "LOCAL") & (table["source_rank"] != table["target_rank"])
    moved = (table["transit_ns"] > 0) & (table["bytes"] > 0)
    chosen = (between & moved & (totals if totals.any() else True)).to_numpy()
    own = table[chosen].assign(row=np.flatnonzero(chosen))
    keys = ["group", "source_rank", "target_rank", "transport"]
    frame = own.groupby(keys, observed=True, sort=True)[["bytes", "transit_ns"]].sum().reset_index()
    frame["bandwidth"] = frame["bytes"] / frame["transit_ns"] * 1e9
    kind = frame.groupby(["transport", "group"], observed=True)["bandwidth"]
    frame["links"] = kind.transform("size")
    frame = frame[frame["links"] >= params["min_links"]].reset_index(drop=True)
    if frame.empty:
        raise NotApplicable(message("communication.few_links", links=params["min_links"]))
    frame["median_bandwidth"] = _median_of_others(frame)
    frame["ratio"] = frame["bandwidth"] / frame["median_bandwidth"]
    usual = frame["bytes"] / frame["median_bandwidth"] * 1e9
    frame["lost_ns"] = np.maximum(frame["transit_ns"] - usual, 0) / steps
    frame["bytes"] = frame["bytes"] / steps
    frame["step_ns"] = wall
    frame["lost_share"] = frame["lost_ns"] / wall
    for column in ("group", "transport"):
        frame[column] = frame[column].astype(str)

    def evidence(number: int) -> Sequence[Reference]:
        subject = frame.iloc[number]
        alike = frame[(frame["transport"] == subject["transport"]) & (frame["group"] == subject["group"])]
        slowest = alike.sort_values("bandwidth", kind="stable")
        rows = records(slowest, source="source_rank", target="target_rank", bandwidth="bandwidth", moved="bytes")
        mine = (own["source_rank"] == subject["source_rank"]) & (own["target_rank"] == subject["target_rank"])
        mine &= (own["transport"] == subject["transport"]) & (own["group"] == subject["group"])
        columns = ("name", "op", "source_rank", "target_rank", "transport", "bytes", "transit_ns", "bandwidth")
        return [
            Metric(message("communication.links"), rows, {"bandwidth": "B/s", "moved": "B"}),
            Rows(message("communication.link_rows"), LINKS, own.loc[mine, "row"].to_numpy(), columns),
        ]

    return Observations(frame, evidence)


def _median_of_others(frame: pd.DataFrame) -> pd.Series:
    """For each link the median bandwidth of the other links of its transport and group, from the sorted values: without
    one of them the middle moves by at most one place."""
    result = pd.Series(np.nan, index=frame.index)
    for _, kind in frame.groupby(["transport", "group"], observed=True):
        order = kind["bandwidth"].sort_values(kind="stable")
        values, count = order.to_numpy(), len(order)
        place = np.arange(count)
        left, right = (count - 2) // 2, (count - 1) // 2

        def without(target: int, place: np.ndarray = place, values: np.ndarray = values) -> np.ndarray:
            """For each link the value that stands at ``target`` when the link itself is left out."""
            return np.asarray(values[np.minimum(target + (place <= target), len(values) - 1)])

        result.loc[order.index] = (without(left) + without(right)) / 2
    return result


# --- CO014: all links are slow


@advisor(
    "communication.bandwidth",
    needs=(steps, collective_calls, collective_state, LINKS),
    params=("usual_hccs", "usual_rdma", "large"),
    about=(
        Column("group", "text", "", "communication group"),
        Column("transport", "text", "", "HCCS or RDMA"),
    ),
    columns=(
        _STEP_NS,
        Column("bandwidth", "float", "B/s", "of the large operations on single links, the fastest"),
        Column("usual_bandwidth", "float", "B/s", "what large operations reach on such a link in healthy jobs"),
        Column("ratio", "float", "ratio", "bandwidth over usual_bandwidth"),
        Column("operations", "int", "count", "large operations on single links that were recorded"),
        Column("moving_ns", "float", "ns", "in which the operations of the group move data, per step"),
        Column("transmit_ns", "float", "ns", "of it uncovered, per step"),
        Column("saveable_ns", "float", "ns", "uncovered time that the usual bandwidth would save, per step"),
        Column("saveable_share", "float", "ratio", "saveable_ns over wall time"),
    ),
)
def bandwidth(facts: Facts, params: Params) -> Observations:
    """Links of a group that are all slow: the fastest of them against what such links usually reach."""
    calls, steps, wall, table = _in_steps(facts), step_count(facts), step_ns(facts), facts[LINKS]
    usual = {"HCCS": float(params["usual_hccs"]), "RDMA": float(params["usual_rdma"])}
    single = ~table["name"].astype(str).str.contains(r"-total(?:@|$)", regex=True)
    known = single & table["transport"].isin(list(usual)) & (table["source_rank"] != table["target_rank"])
    chosen = (known & (table["bytes"] >= params["large"]) & (table["transit_ns"] > 0)).to_numpy()
    own = table[chosen].assign(row=np.flatnonzero(chosen))
    if own.empty:
        raise NotApplicable(message("communication.no_large"))
    own["bandwidth"] = own["bytes"] / own["transit_ns"] * 1e9
    keys = ["group", "transport"]
    frame = own.groupby(keys, observed=True, sort=True).agg(bandwidth=("bandwidth", "max"), operations=("op", "size"))
    frame = frame.reset_index()
    for column in keys:
        frame[column] = frame[column].astype(str)
    frame["usual_bandwidth"] = frame["transport"].map(usual)
    frame["ratio"] = frame["bandwidth"] / frame["usual_bandwidth"]
    traced = calls[calls["moving_ns"] >= 0].groupby("group")[["moving_ns", "transmit_ns"]].sum() / steps
    for column in ("moving_ns", "transmit_ns"):
        frame[column] = frame["group"].map(traced[column]).astype(float)
    tails = {group: float(chains(found)["tail_ns"].sum()) / steps for group, found in calls.groupby("group")}
    # The end of a transfer stays uncovered, however fast it becomes.
    stays = np.minimum(frame["group"].map(tails).astype(float), frame["transmit_ns"]) * frame["ratio"].clip(upper=1)
    faster = frame["moving_ns"] * (1 - frame["ratio"])
    frame["saveable_ns"] = np.minimum(frame["transmit_ns"] - stays, faster).clip(lower=0)
    frame["step_ns"] = wall
    frame["saveable_share"] = frame["saveable_ns"] / wall

    def evidence(number: int) -> Sequence[Reference]:
        subject = frame.iloc[number]
        mine = own[(own["group"].astype(str) == subject["group"]) & (own["transport"] == subject["transport"])]
        mine = mine.sort_values("bandwidth", ascending=False, kind="stable")
        columns = ("name", "op", "source_rank", "target_rank", "transport", "bytes", "transit_ns", "bandwidth")
        return [
            Rows(message("communication.fastest_rows"), LINKS, mine["row"].to_numpy()[:LARGEST], columns),
            _call_metric(calls[calls["group"] == subject["group"]].sort_values("transmit_ns", ascending=False)),
        ]

    return Observations(frame, evidence)


# --- CO008: pipeline


@advisor(
    "communication.pipeline",
    needs=(steps, ledger, collective_calls, PROFILE),
    wants=(KERNELS, COLLECTIVES, STEP_TRACE),
    columns=(
        _STEP_NS,
        Column("wait_ns", "float", "ns", "uncovered waiting in send and receive operations, per step"),
        Column("wait_share", "float", "ratio", "wait_ns over wall time"),
        Column("calls", "float", "count", "send and receive operations per step"),
        Column("data_included", "bool", "", "waiting and moving data could not be told apart: wait_ns is both"),
        Column("bubble_ns", "float", "ns", "the exporter's Bubble, which knows hcom_receive only, per step"),
        Column("stages", "float", "count", "pipeline stages, where they are recorded"),
    ),
)
def pipeline(facts: Facts, params: Params) -> Observations:
    """Waiting for the neighbour in the pipeline."""
    calls, steps, wall, per_leaf = _in_steps(facts), step_count(facts), step_ns(facts), leaves(facts)
    calls = calls[calls["operation"].str.contains(POINT_TO_POINT.pattern, case=False, regex=True)]
    if calls.empty:
        raise NotApplicable(message("communication.no_p2p"))
    untold = bool((calls["moving_ns"] < 0).any())
    mixed = float(calls["unknown_ns"].sum()) / steps if untold else 0.0
    waited = under(per_leaf, "communication/wait/pipeline") + mixed
    reported = facts.get(STEP_TRACE)
    frame = row(
        step_ns=wall,
        wait_ns=waited,
        wait_share=share(waited, wall),
        calls=len(calls) / steps,
        data_included=untold,
        bubble_ns=float(reported["bubble_ns"].mean()) if reported is not None and len(reported) else np.nan,
        stages=float(facts[PROFILE].parallel.get("pp", np.nan)),
    )

    def evidence(number: int) -> Sequence[Reference]:
        largest = calls.sort_values("uncovered_ns", ascending=False, kind="stable")
        return [_leaf_metric(per_leaf, wall), _call_metric(largest), *_call_rows(facts, largest)]

    return Observations(frame, evidence)


ADVISORS = (
    overlap,
    late_rank,
    transmit,
    launch_gaps,
    outliers,
    small_calls,
    all_reduce,
    links,
    bandwidth,
    pipeline,
)
