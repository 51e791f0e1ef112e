"""CO014: links of a group that are all slow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

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
    params=("usual_hccs", "usual_rdma", "best_hccs", "best_rdma", "large"),
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
    """Links of a group that are all slow: the fastest of them against what such links usually reach. That is the least
    of healthy jobs; the cure takes them to reach the middle between it and the best of these."""
    calls, steps, wall, table = calls_in_steps(facts), step_count(facts), step_ns(facts), facts[LINKS]
    usual, best = (
        {name: float(params[f"{of}_{name.lower()}"]) for name in ("HCCS", "RDMA")} for of in ("usual", "best")
    )
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
    tail = np.minimum(frame["group"].map(tails).astype(float), frame["transmit_ns"])

    def saveable_ns(reached: pd.Series) -> pd.Series:
        """Uncovered time that a bandwidth would save, ns per step."""
        ratio = (frame["bandwidth"] / reached).clip(upper=1)
        saved: pd.Series = np.minimum(frame["transmit_ns"] - tail * ratio, frame["moving_ns"] * (1 - ratio)).clip(
            lower=0
        )
        return saved

    top = frame["transport"].map(best).clip(lower=frame["usual_bandwidth"])
    frame["saveable_ns"] = saveable_ns(frame["usual_bandwidth"])
    cured = {
        "least": frame["saveable_ns"],
        "usual": saveable_ns((frame["usual_bandwidth"] + top) / 2),
        "most": saveable_ns(top),
    }
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
        least, usual, most = (
            shorter(of_group, shared_out(cured[at][number] * steps, of_group["transmit_ns"]))
            for at in ("least", "usual", "most")
        )
        return replace(usual, least=least, most=most)

    return Observations(frame, evidence, cure=cure)
