"""CO005: operations too small to use the links."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from advisor_core.api.advisors import Column, Metric, Observations, Params, Reference, Rows, advisor
from advisor_core.api.facts import (
    COLLECTIVE_BANDWIDTH,
    COLLECTIVES,
    KERNELS,
    Facts,
    Groups,
    Merging,
    Unavailable,
    aggregated,
    collective_calls,
    collective_state,
    frame_of,
    operation_names,
    steps,
)
from advisors.columns import GROUP, SAVEABLE_SHARE, STEP_NS
from advisors.communication.calls import (
    calls_in_steps,
    divides_or_sums,
    point_to_point,
    reduces,
    shorter,
)
from advisors.measuring import records, step_count, step_ns
from advisors.messages import message
from advisors.transfers import message_bytes, time_by_size


@advisor(
    "communication.small_calls",
    needs=(steps, collective_calls, collective_state, COLLECTIVE_BANDWIDTH),
    wants=(KERNELS, COLLECTIVES),
    params=("small_sdma", "small_rdma", "bucket"),
    about=(
        Column("operation", "text", "", "kind of operation", zh="通信算子"),
        GROUP,
    ),
    columns=(
        STEP_NS,
        Column("divides_or_sums", "bool", "", "they are AllReduce, ReduceScatter or AllGather", zh="归约或收集"),
        Column("reduces", "bool", "", "they are AllReduce or ReduceScatter, as for gradients", zh="归约"),
        Column("point_to_point", "bool", "", "they send to or receive from single ranks", zh="点对点"),
        Column("calls", "float", "count", "operations of this kind and group per step", zh="次数"),
        Column(
            "small_calls", "float", "count", "of these: below the size from which a link is used well", zh="小包次数"
        ),
        Column("small_bytes", "float", "B", "median size of the small ones, over all links", zh="小包量"),
        Column("small_bandwidth", "float", "B/s", "bytes over moving time of the small ones", zh="小包带宽"),
        Column(
            "best_bandwidth",
            "float",
            "B/s",
            "the same for the operations of this rank that use the links best",
            zh="最高带宽",
        ),
        Column("transmit_ns", "float", "ns", "uncovered moving time of the small ones, per step", zh="传输"),
        Column(
            "fixed_ns",
            "float",
            "ns",
            "time of one whatever its size, by a line through time and size of all",
            zh="固定耗时",
        ),
        Column(
            "saveable_ns",
            "float",
            "ns",
            "of it and of their launch gaps: what fewer and larger ones would save",
            zh="可节省",
        ),
        SAVEABLE_SHARE,
    ),
    evidence=(
        Column("size", "int", "B", "bytes of the operation", zh="大小"),
        Column("moving", "int", "ns", "in which it moves data", zh="传输"),
        Column("bandwidth", "float", "B/s", "size over moving", zh="带宽"),
        Column("packets", "int", "count", "packets that it was sent in", zh="包数"),
    ),
)
def small_calls(facts: Facts, params: Params) -> Observations:
    """Operations too small to use the links, and the time that this costs."""
    calls, steps, wall = calls_in_steps(facts), step_count(facts), step_ns(facts)
    sized = calls[(calls["bytes"] > 0) & (calls["moving_ns"] > 0)].reset_index(drop=True)
    if sized.empty:
        raise Unavailable(message("communication.no_sizes"), message("communication.no_sizes.collect"), ("level1",))
    moving, size = sized["moving_ns"].to_numpy(), sized["bytes"].to_numpy()
    rates = size / moving * 1e9
    wide = _over_rdma(facts[COLLECTIVE_BANDWIDTH], sized["name"])
    small = size < np.where(wide, params["small_rdma"], params["small_sdma"])
    # Operations over RDMA are compared with each other, those inside a server with each other.
    best = np.where(wide, rates[wide].max(initial=0.0), rates[~wide].max(initial=0.0))
    sized["kind"] = Groups(sized.assign(wide=wide), ["operation", "group", "wide"]).codes
    fixed = sized["kind"].map(time_by_size(sized)["fixed_ns"]).to_numpy(dtype=np.float64)
    sizes = message_bytes(sized).fillna(sized["bytes"])
    joined = sizes < float(params["bucket"])
    kept = _kept_share(sized[joined], sizes, float(params["bucket"]))
    fewer = 1 - kept.reindex(sized.index, fill_value=1.0).to_numpy(dtype=np.float64)
    # What is moved at the best bandwidth needs the rest of the time; of one size alone that is all that can be said.
    lost = np.clip(np.where(np.isnan(fixed), moving - size / best * 1e9, fixed) * fewer, 0, moving)
    saveable = lost * (sized["transmit_ns"].to_numpy() / moving) + sized["launch_gap_ns"].to_numpy() * fewer
    sized = sized.assign(saveable=np.where(joined, saveable, 0.0), fixed=fixed, best=best, small=small)
    of_small = {f"small_{name}": np.where(small, sized[name], np.nan) for name in ("bytes", "moving_ns", "transmit_ns")}
    frame = aggregated(
        sized.assign(**of_small),
        ["operation", "group"],
        calls=("name", "size"),
        small_calls=("small", "sum"),
        saveable_ns=("saveable", "sum"),
        small_bytes=("small_bytes", "median"),
        small_sum=("small_bytes", "sum"),
        small_ns=("small_moving_ns", "sum"),
        best_bandwidth=("best", "max"),
        fixed_ns=("fixed", "median"),
        transmit_ns=("small_transmit_ns", "sum"),
    )
    frame["small_bandwidth"] = frame["small_sum"] / frame["small_ns"] * 1e9
    for column in ("calls", "small_calls", "transmit_ns", "saveable_ns"):
        frame[column] = frame[column] / steps
    frame["divides_or_sums"] = divides_or_sums(frame["operation"].astype(str))
    frame["reduces"] = reduces(frame["operation"].astype(str))
    frame["point_to_point"] = point_to_point(frame["operation"].astype(str))
    frame["step_ns"] = wall
    frame["saveable_share"] = frame["saveable_ns"] / wall

    def evidence(number: int) -> Sequence[Reference]:
        subject = frame.iloc[number]
        small_of_kind = sized[
            (sized["operation"] == subject["operation"]) & (sized["group"] == subject["group"]) & sized["small"]
        ]
        small_of_kind = small_of_kind.sort_values("saveable", ascending=False, kind="stable")
        small_of_kind = small_of_kind.assign(rate=small_of_kind["bytes"] / small_of_kind["moving_ns"] * 1e9)
        rows = records(
            small_of_kind, operation="name", size="bytes", moving="moving_ns", bandwidth="rate", packets="packets"
        )
        references: list[Reference] = [Metric(message("communication.small"), rows)]
        table = facts[COLLECTIVE_BANDWIDTH]
        names = operation_names(table["name"])
        moved = np.flatnonzero((names.isin(small_of_kind["name"]) & (table["bytes"] > 0)).to_numpy())
        if len(moved):
            columns = ("name", "transport", "bytes", "transit_ns", "bandwidth", "packets")
            references.append(Rows(message("communication.bandwidth_rows"), COLLECTIVE_BANDWIDTH, moved, columns))
        return references

    def cure(number: int) -> Merging:
        of_kind = (sized["operation"] == frame["operation"][number]) & (sized["group"] == frame["group"][number])
        if not frame["reduces"][number]:
            return shorter(sized[of_kind], sized["saveable"][of_kind])
        return _together(sized[of_kind], sizes[of_kind], float(params["bucket"]))

    return Observations(frame, evidence, cure=cure)


def _kept_share(joined: pd.DataFrame, sizes: pd.Series, bucket: float) -> pd.Series:
    """The share of each operation that stays when those of one kind and step are put together in messages of ``bucket``
    bytes."""
    groups = sizes[joined.index].groupby([joined["kind"], joined["step"]])
    kept_share: pd.Series = np.ceil(groups.transform("sum") / bucket) / groups.transform("size")
    return kept_share.clip(upper=1.0)


def _together(calls: pd.DataFrame, sizes: pd.Series, bucket: float) -> Merging:
    """The change that moves the calls of a kind and step in messages of ``bucket`` bytes: the last of each takes,
    beside what it took, as long as the others moved data, less what fewer of them save. The others are not called, and
    no rank is waited for in them. Larger calls stay."""
    calls = calls.assign(size=sizes).sort_values("start_ns", kind="stable")
    calls = calls[calls["size"] < bucket]
    before = calls.groupby(["kind", "step"])["size"].cumsum() - calls["size"]
    chain = calls.groupby(["kind", "step", before // bucket], sort=False).ngroup().to_numpy().astype(np.int64)
    took = calls["elapse_ns"].to_numpy(dtype=np.float64)
    is_last = np.append(chain[1:] != chain[:-1], True)[: len(chain)]
    moves = np.where(is_last, took, np.clip(calls["moving_ns"].to_numpy(dtype=np.float64), 0, took))
    saved = np.bincount(chain, calls["saveable"].to_numpy(dtype=np.float64))
    before_ns = np.bincount(chain, took).astype(np.float64)
    after_ns = np.clip(np.bincount(chain, moves) - saved, 0, before_ns)
    return Merging(calls["work"].to_numpy(dtype=np.int64), chain, before_ns, after_ns, at_end=True)


def _over_rdma(bandwidth: pd.DataFrame, names: pd.Series) -> np.ndarray:
    """Mask of the operations that moved more over RDMA than inside the server."""
    operations = Groups(frame_of({"name": operation_names(bandwidth["name"]).array}, len(bandwidth)), "name")
    transport, moved = (
        bandwidth["transport"].to_numpy()[operations.rows],
        bandwidth["bytes"].to_numpy()[operations.rows],
    )
    rdma, sdma = (
        np.bincount(operations.codes, np.where(transport == kind, moved, 0), len(operations))
        for kind in ("RDMA", "SDMA")
    )
    wide = pd.Series(rdma > sdma, index=pd.Index(operations.keys()["name"]))
    return names.map(wide).fillna(False).to_numpy(dtype=bool)
