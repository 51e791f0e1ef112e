"""CO007: links that are slower than the others of their transport."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from advisor_core.api.advisors import Column, Metric, Observations, Params, Reference, Rows, advisor
from advisor_core.api.facts import LINKS, Facts, Merging, NotApplicable, collective_calls, ledger, matching, steps
from advisors.columns import GROUP, STEP_NS
from advisors.communication.calls import TOTAL, calls_in_steps, shared_out, shorter
from advisors.measuring import records, step_count, step_ns
from advisors.messages import message


@advisor(
    "communication.links",
    needs=(collective_calls, LINKS, steps, ledger),
    params=("min_links",),
    about=(
        GROUP,
        Column("source_rank", "int", "", "rank within the group that sends", zh="源 rank"),
        Column("target_rank", "int", "", "rank within the group that receives", zh="目标 rank"),
        Column("transport", "text", "", "HCCS, RDMA, PCIE or SIO", zh="传输方式"),
    ),
    columns=(
        STEP_NS,
        Column("bandwidth", "float", "B/s", "bytes over transit time of this link", zh="带宽"),
        Column("median_bandwidth", "float", "B/s", "median over the other links of this transport", zh="带宽中位数"),
        Column("ratio", "float", "ratio", "bandwidth over median_bandwidth", zh="比值"),
        Column("links", "int", "count", "links of this transport", zh="链路"),
        Column("bytes", "float", "B", "moved over this link, per step", zh="字节数"),
        Column("lost_ns", "float", "ns", "transit time more than at the median bandwidth, per step", zh="损失"),
        Column("lost_share", "float", "ratio", "lost_ns over wall time", zh="损失占比"),
    ),
    evidence=(
        Column("source", "int", "", "rank that sends", zh="来源"),
        Column("target", "int", "", "rank that receives", zh="目标"),
        Column("moved", "float", "B", "moved over the link per step", zh="搬运量"),
    ),
)
def links(facts: Facts, params: Params) -> Observations:
    """Links against the other links of the same transport."""
    table, steps, wall = facts[LINKS], step_count(facts), step_ns(facts)
    # The exporter lists some operations (top, middle, bottom) and their total: only the totals count each once.
    totals = matching(table["name"], TOTAL)
    between = (table["transport"] != "LOCAL") & (table["source_rank"] != table["target_rank"])
    moved = (table["transit_ns"] > 0) & (table["bytes"] > 0)
    chosen = (between & moved & (totals if totals.any() else True)).to_numpy()
    transfers = table[chosen].assign(row=np.flatnonzero(chosen))
    keys = ["group", "source_rank", "target_rank", "transport"]
    frame = transfers.groupby(keys, observed=True, sort=True)[["bytes", "transit_ns"]].sum().reset_index()
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
        of_link = (transfers["source_rank"] == subject["source_rank"]) & (
            transfers["target_rank"] == subject["target_rank"]
        )
        of_link &= (transfers["transport"] == subject["transport"]) & (transfers["group"] == subject["group"])
        columns = ("name", "op", "source_rank", "target_rank", "transport", "bytes", "transit_ns", "bandwidth")
        return [
            Metric(message("communication.links"), rows),
            Rows(message("communication.link_rows"), LINKS, transfers.loc[of_link, "row"].to_numpy(), columns),
        ]

    def cure(number: int) -> Merging:
        calls = calls_in_steps(facts)
        of_group = calls[calls["group"] == frame["group"][number]]
        return shorter(of_group, shared_out(frame["lost_ns"][number] * steps, of_group["moving_ns"]))

    return Observations(frame, evidence, cure=cure)


def _median_of_others(frame: pd.DataFrame) -> pd.Series:
    """For each link the median bandwidth of the other links of its transport and group, from the sorted values: without
    one of them the middle moves by at most one place."""
    result = pd.Series(np.nan, index=frame.index)
    for _, kind in frame.groupby(["transport", "group"], observed=True):
        order = kind["bandwidth"].sort_values(kind="stable")
        values, count = order.to_numpy(), len(order)
        place = np.arange(count)
        below, above = (count - 2) // 2, (count - 1) // 2

        def without(target: int, place: np.ndarray = place, values: np.ndarray = values) -> np.ndarray:
            """For each link the value that stands at ``target`` when the link itself is left out."""
            return np.asarray(values[np.minimum(target + (place <= target), len(values) - 1)])

        result.loc[order.index] = (without(below) + without(above)) / 2
    return result
