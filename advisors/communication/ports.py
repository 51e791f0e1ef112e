"""CO021: packets that network ports lost, by their own counters."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from advisor_core.api.advisors import Column, Observations, Params, Reference, Rows, advisor
from advisor_core.api.facts import COLLECTIVE_BANDWIDTH, PORTS, Facts, NotApplicable, steps
from advisors.measuring import step_count, step_ns
from advisors.messages import message

_SHOWN = ("port", "time_ns", "error_packets", "dropped_packets", "sent_again", "pause_frames", "congestion_notices")


@advisor(
    "communication.ports",
    needs=(steps,),
    wants=(PORTS, COLLECTIVE_BANDWIDTH),
    about=(Column("port", "text", "", "port of the network", zh="端口"),),
    columns=(
        Column("port_samples", "int", "count", "samples of the port", zh="采样数"),
        Column(
            "lossy_samples",
            "int",
            "count",
            "of these: packets had errors, were dropped, or were sent again",
            zh="有丢包的采样",
        ),
        Column("sent_again", "float", "count", "packets sent again, NaN where they are not counted", zh="超时重传包"),
        Column("loses", "bool", "", "the port lost packets", zh="有丢包"),
        Column("resends", "bool", "", "packets were sent again, as far as they are counted", zh="有重传"),
        Column(
            "lost_ns",
            "float",
            "ns",
            "what packets that were sent again held up at most, per step; NaN where they are not counted",
            zh="损失",
        ),
    ),
    params=("timeout",),
)
def ports(facts: Facts, params: Params) -> Observations:
    """Packets that each network port of the device lost over the recording."""
    table = facts.get(PORTS)
    if table is None:
        moved = facts.get(COLLECTIVE_BANDWIDTH)
        if moved is not None and not (moved["transport"] == "RDMA").any():
            raise NotApplicable(message("communication.no_rdma"))
        reason = facts.missing(PORTS)
        assert reason is not None
        raise reason.error()
    port = table["port"].astype(str).to_numpy()
    again = table["sent_again"].to_numpy(dtype=np.float64)
    lossy = table["faulty"].to_numpy() | (again > 0)
    by_port = pd.DataFrame({"port": port, "lossy_samples": lossy, "sent_again": again}).groupby("port", sort=True)
    frame = by_port["lossy_samples"].sum().astype(np.int64).to_frame().assign(port_samples=by_port.size())
    frame["sent_again"] = by_port["sent_again"].sum(min_count=1)
    frame["loses"] = frame["lossy_samples"] > 0
    frame["resends"] = frame["sent_again"] > 0
    waits = frame["sent_again"] * float(params["timeout"]) / step_count(facts)
    frame["lost_ns"] = waits.clip(upper=step_ns(facts))
    frame = frame.reset_index()

    def evidence(number: int) -> Sequence[Reference]:
        rows = np.flatnonzero(lossy & (port == frame["port"][number]))
        return [Rows(message("communication.lossy_samples"), PORTS, rows, _SHOWN)]

    return Observations(frame, evidence)
