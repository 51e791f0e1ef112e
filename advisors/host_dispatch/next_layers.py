"""HD025: layers of dispatch that a step waits for next, when those that it waits for now have become quicker."""

from __future__ import annotations

import pandas as pd

from advisor_core.api import Scalar
from advisor_core.api.advisors import Column, Metric, Observations, Params, Reference, advisor
from advisor_core.api.facts import Facts, ledger, replay, steps
from advisors.host_dispatch.dispatch_layers import dispatch_layers
from advisors.measuring import share, step_count, step_ns
from advisors.messages import message

_SAVED = Column("saved", "float", "ns", "what it wins by itself, per step of a long run", zh="节省")
_ON_TOP = Column("on_top", "float", "ns", "what it wins on top of the layers that come first", zh="其后节省")


@advisor(
    "host_dispatch.next_layers",
    needs=(dispatch_layers, replay, steps, ledger),
    about=(Column("layer", "text", "", "python, framework (operators) or runtime", zh="层"),),
    columns=(
        Column("awaited_layers", "text", "", "the layers that the step waits for now (HD002)", zh="等待的层"),
        Column(
            "by_itself_ns",
            "float",
            "ns",
            "what a step of a long run saves if this layer alone keeps pace",
            zh="单独节省",
        ),
        Column("on_top_ns", "float", "ns", "what it saves on top of the layers that come first", zh="其后节省"),
        Column("on_top_share", "float", "ratio", "on_top_ns over the time of a step", zh="其后节省占比"),
    ),
    evidence=(_SAVED, _ON_TOP),
)
def next_layers(facts: Facts, params: Params) -> Observations:
    """Layers of dispatch that would hold the step up next, one row each: none where the host is never late."""
    found, count = facts[dispatch_layers], step_count(facts)
    wall = max(step_ns(facts), facts[replay].recorded_ns / facts[replay].steps)
    names = list(found.on_top_ns)
    frame = pd.DataFrame(
        {
            "layer": pd.Series(names, dtype=object),
            "awaited_layers": pd.Series([", ".join(found.awaited)] * len(names), dtype=object),
            "by_itself_ns": [found.alone_ns[name] / count for name in names],
            "on_top_ns": [found.on_top_ns[name] / count for name in names],
            "on_top_share": [share(found.on_top_ns[name] / count, wall) for name in names],
        }
    )

    def evidence(number: int) -> list[Reference]:
        rows: list[dict[str, Scalar]] = [
            {"layer": name, "saved": found.alone_ns[name] / count, "on_top": found.on_top_ns[name] / count}
            for name in names
        ]
        return [Metric(message("host_dispatch.next_layers"), rows)]

    # No change of the plan: it is made only behind that of HD002, and is gone when another layer is awaited.
    return Observations(frame, evidence)
