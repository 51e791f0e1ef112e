"""RL001, RL003: what a phase leaves of the device unused, and why."""

from __future__ import annotations

import numpy as np
import pandas as pd

from advisor_core.api.advisors import Observations, Params, advisor
from advisor_core.api.facts import Facts, HostChange, Layer, bookings, phases, union
from advisors.rl.columns import PHASE
from advisors.rl.phase_idle import COLUMNS, EVIDENCE, NEEDS, WANTS, PhaseIdle


@advisor("rl.idle", needs=NEEDS, wants=WANTS, about=PHASE, columns=COLUMNS, evidence=EVIDENCE)
def idle(facts: Facts, params: Params) -> Observations:
    """Idle time of the device in each phase, by cause."""
    found = PhaseIdle(facts)
    spans, gaps = facts[phases], facts[bookings].gaps

    def cure(number: int) -> HostChange | None:
        """Without the host time of the phase in which the device has nothing to do. What a rollout lacks has findings
        of its own, which say how it becomes quicker."""
        if found.frame["kind"].iloc[number] == "rollout":
            return None
        stretches = spans[spans["phase"] == found.frame["phase"].iloc[number]]
        unused = _within(stretches, union(gaps["start_ns"].to_numpy(), gaps["end_ns"].to_numpy()))
        return HostChange(unused, unused)

    return Observations(found.frame, found.evidence, cure=cure)


def _within(stretches: pd.DataFrame, layer: Layer) -> Layer:
    """The part of ``layer`` in these stretches of time."""
    spans = zip(stretches["start_ns"].tolist(), stretches["end_ns"].tolist(), strict=True)
    parts = [layer.clip(begin, finish) for begin, finish in spans]
    return union(np.concatenate([part.starts for part in parts]), np.concatenate([part.ends for part in parts]))
