"""GHD013: the data loader in a recording of the host alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from advisor_core.api.advisors import Column, Observations, Params, Reference, advisor
from advisor_core.api.facts import HOST_EVENTS, OPERATORS, PROFILE, Facts, NotApplicable, host_steps, matching
from advisors.columns import PROFILED_STEPS, STEP_NS
from advisors.host_times import SHOWN, time_on_host
from advisors.measuring import LARGEST, host_rows, row, share
from advisors.messages import message


@advisor(
    "host_dispatch.host_only",
    needs=(HOST_EVENTS, PROFILE, host_steps),
    wants=(OPERATORS,),
    columns=(
        PROFILED_STEPS,
        STEP_NS,
        Column("loader_ns", "float", "ns", "wait for the data loader per step", zh="等待取数"),
        Column("loader_share", "float", "ratio", "loader_ns over a step on the host", zh="等待取数占比"),
        Column("longest_ns", "int", "ns", "longest call of the data loader", zh="最长"),
        Column("operator_ns", "float", "ns", "time per step with operators of the framework on any thread", zh="算子"),
        Column("rest_ns", "float", "ns", "time per step with neither", zh="其余"),
    ),
    evidence=SHOWN,
)
def host_only(facts: Facts, params: Params) -> Observations:
    """What a step on the host consists of, where no device was recorded and the loop has a data loader."""
    events, spans = facts[HOST_EVENTS], facts[host_steps]
    loading = np.flatnonzero(matching(events["name"], facts[PROFILE].vocabulary.data_loader))
    if not len(loading):
        raise NotApplicable(message("host_dispatch.no_dataloader"))
    longest = loading[np.argsort(-events["duration_ns"].to_numpy()[loading], kind="stable")]
    mean = spans[["loader_ns", "operator_ns", "rest_ns"]].mean()
    step_ns = float((spans["end_ns"] - spans["start_ns"]).mean())
    frame = row(
        steps=len(spans),
        step_ns=step_ns,
        loader_share=share(mean["loader_ns"], step_ns),
        longest_ns=int(events["duration_ns"].iloc[longest[0]]),
        **mean,
    )

    def evidence(number: int) -> Sequence[Reference]:
        return [*time_on_host(facts), *host_rows("host_dispatch.activity_calls", longest[:LARGEST])]

    return Observations(frame, evidence)
