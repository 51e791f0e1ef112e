"""CO014: links of a group that are all slow."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from advisor_core.api.advisors import Column, Observations, Params, Reference, Rows, advisor
from advisor_core.api.facts import (
    LINKS,
    TOTAL,
    Facts,
    Merging,
    NotApplicable,
    aggregated,
    collective_calls,
    collective_state,
    matching,
    narrowed,
    steps,
)
from advisors.columns import GROUP, SAVEABLE_SHARE, STEP_NS
from advisors.communication.calls import CALL, call_metric, calls_in_steps, shared_out, shorter
from advisors.measuring import LARGEST, step_count, step_ns
from advisors.messages import message
from advisors.transfers import chains


@advisor(
    "communication.bandwidth",
    needs=(steps, collective_calls, collective_state, LINKS),
    params=("usual_hccs", "usual_rdma", "large"),
    about=(
        GROUP,
        Column("transport", "text", "", "HCCS or RDMA", zh="传输方式"),
    ),
    columns=(
        STEP_NS,
        Column("bandwidth", "float", "B/s", "of the large operations on single links, the fastest", zh="带宽"),
        Column(
            "usual_bandwidth",
            "float",
            "B/s",
            "what large operations reach on such a link in healthy jobs",
            zh="通常带宽",
        ),
        Column("ratio", "float", "ratio", "bandwidth over usual_bandwidth", zh="比值"),
        Column("operations", "int", "count", "large operations on single links that were recorded", zh="操作数"),
        Column("moving_ns", "float", "ns", "in which the operations of the group move data, per step", zh="传输"),
        Column("transmit_ns", "float", "ns", "of it uncovered, per step", zh="传输"),
        Column(
            "saveable_ns", "float", "ns", "uncovered time that the usual bandwidth would save, per step", zh="可节省"
        ),
        SAVEABLE_SHARE,
    ),
    evidence=(*CALL,),
)
def bandwidth(facts: Facts, params: Params) -> Observations:
    """Links of a group that are all slow: the fastest of them against what such links usually reach."""
    calls, steps, wall, table = calls_in_steps(facts), step_count(facts), step_ns(facts), facts[LINKS]
    usual = {"HCCS": float(params["usual_hccs"]), "RDMA": float(params["usual_rdma"])}
    single = ~matching(table["name"], TOTAL)
    is_link = single & table["transport"].isin(list(usual)) & (table["source_rank"] != table["target_rank"])
    chosen = (is_link & (table["bytes"] >= params["large"]) & (table["transit_ns"] > 0)).to_numpy()
    transfers = table[chosen].assign(row=np.flatnonzero(chosen))
    if transfers.empty:
        raise NotApplicable(message("communication.no_large"))
    transfers["bandwidth"] = transfers["bytes"] / transfers["transit_ns"] * 1e9
    keys = ["group", "transport"]
    frame = aggregated(transfers, keys, bandwidth=("bandwidth", "max"), operations=("op", "size"))
    for column in keys:
        frame[column] = frame[column].astype(str)
    frame["usual_bandwidth"] = frame["transport"].map(usual)
    frame["ratio"] = frame["bandwidth"] / frame["usual_bandwidth"]
    moving = narrowed(calls, ("group", "moving_ns", "transmit_ns"))[calls["moving_ns"] >= 0]
    traced = aggregated(moving, "group", moving_ns=("moving_ns", "sum"), transmit_ns=("transmit_ns", "sum"))
    traced = traced.set_index("group") / steps
    for column in ("moving_ns", "transmit_ns"):
        frame[column] = frame["group"].map(traced[column]).astype(float)
    tails = {
        group: float(chains(calls_of_group)["tail_ns"].sum()) / steps
        for group, calls_of_group in calls.groupby("group")
    }
    # The end of a transfer stays uncovered, however fast it becomes.
    stays = np.minimum(frame["group"].map(tails).astype(float), frame["transmit_ns"]) * frame["ratio"].clip(upper=1)
    faster = frame["moving_ns"] * (1 - frame["ratio"])
    frame["saveable_ns"] = np.minimum(frame["transmit_ns"] - stays, faster).clip(lower=0)
    frame["step_ns"] = wall
    frame["saveable_share"] = frame["saveable_ns"] / wall

    def evidence(number: int) -> Sequence[Reference]:
        subject = frame.iloc[number]
        of_link = transfers[
            (transfers["group"].astype(str) == subject["group"]) & (transfers["transport"] == subject["transport"])
        ]
        of_link = of_link.sort_values("bandwidth", ascending=False, kind="stable")
        columns = ("name", "op", "source_rank", "target_rank", "transport", "bytes", "transit_ns", "bandwidth")
        return [
            Rows(message("communication.fastest_rows"), LINKS, of_link["row"].to_numpy()[:LARGEST], columns),
            call_metric(calls[calls["group"] == subject["group"]].sort_values("transmit_ns", ascending=False)),
        ]

    def cure(number: int) -> Merging:
        of_group = calls[calls["group"] == frame["group"][number]]
        return shorter(of_group, shared_out(frame["saveable_ns"][number] * steps, of_group["transmit_ns"]))

    return Observations(frame, evidence, cure=cure)
