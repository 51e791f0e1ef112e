"""The arrows from operators of the forward pass to those that compute their gradients."""

from __future__ import annotations

from functools import lru_cache

import pandas as pd

from advisor_core.api.facts import Held, picked


def gradient_arrows(flows: pd.DataFrame) -> pd.DataFrame:
    """One row per arrow whose ends are recorded: ``thread_forward``, ``time_ns_forward``, ``thread_backward``,
    ``time_ns_backward``. Found once for all that ask about a rank."""
    return _arrows(Held(flows))


@lru_cache(2)
def _arrows(held: Held[pd.DataFrame]) -> pd.DataFrame:
    flows = held.value
    is_arrow = (flows["kind"] == "forward_backward").to_numpy()
    forward, backward = (
        picked(flows, is_arrow & (flows["end"] == end).to_numpy(), ("flow", "thread", "time_ns")).drop_duplicates(
            "flow"
        )
        for end in ("s", "f")
    )
    return forward.merge(backward, on="flow", suffixes=("_forward", "_backward"))
