"""CO007: links that are slower than the others of their transport."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from advisor_core.api.advisors import Column, Metric, Observations, Params, Reference, Rows, advisor
from advisor_core.api.facts import (
    LINKS,
    Facts,
    Merging,
    NotApplicable,
    collective_calls,
    ledger,
    link_speeds,
    steps,
    transfers,
)
from advisors.columns import GROUP, STEP_NS
from advisors.communication.calls import calls_in_steps, shared_out, shorter
from advisors.measuring import records, step_count, step_ns
from advisors.messages import message


@advisor(
    "communication.links",
    needs=(collective_calls, LINKS, link_speeds, steps, ledger),
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
    speeds, steps, wall = facts[link_speeds], step_count(facts), step_ns(facts)
    frame = speeds[speeds["links"] >= params["min_links"]].drop(columns=["source", "target"]).reset_index(drop=True)
    if frame.empty:
        raise NotApplicable(message("communication.few_links", links=params["min_links"]))
    usual = frame["bytes"] / frame["median_bandwidth"] * 1e9
    frame["lost_ns"] = np.maximum(frame["transit_ns"] - usual, 0) / frame["steps"]
    frame["bytes"] = frame["bytes"] / frame["steps"]
    frame["step_ns"] = wall
    frame["lost_share"] = frame["lost_ns"] / wall

    def evidence(number: int) -> Sequence[Reference]:
        subject, table = frame.iloc[number], facts[LINKS]
        alike = frame[(frame["transport"] == subject["transport"]) & (frame["group"] == subject["group"])]
        slowest = alike.sort_values("bandwidth", kind="stable")
        rows = records(slowest, source="source_rank", target="target_rank", bandwidth="bandwidth", moved="bytes")
        of_link = transfers(table)
        for name in ("source_rank", "target_rank", "transport", "group"):
            of_link = of_link & (table[name] == subject[name]).to_numpy()
        columns = ("name", "op", "source_rank", "target_rank", "transport", "bytes", "transit_ns", "bandwidth")
        return [
            Metric(message("communication.links"), rows),
            Rows(message("communication.link_rows"), LINKS, np.flatnonzero(of_link), columns),
        ]

    def cure(number: int) -> Merging:
        calls = calls_in_steps(facts)
        of_group = calls[calls["group"] == frame["group"][number]]
        return shorter(of_group, shared_out(frame["lost_ns"][number] * steps, of_group["moving_ns"]))

    return Observations(frame, evidence, cure=cure)
