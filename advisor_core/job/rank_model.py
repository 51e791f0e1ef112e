"""The model of one rank, as the job gets it: its graph and its collectives."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from advisor_core.facts.host.activity import HostActivity
from advisor_core.facts.replay.nodes import TASK, Nodes
from advisor_core.facts.replay.replay import Replay


@dataclass(frozen=True)
class RankModel:
    """``calls``: its collectives, `advisor_core.job.calls.COMPARED` of the fact ``recorded_calls``, ``None`` where it
    has none. ``operators``: ``type`` and ``operator_class`` of each row of the fact ``work``, and ``named``, the type
    or, where none is recorded, that in the name of the kernel. ``host``: what its host
    did, where that was recorded. ``slowed``: the column of the fact ``contention``, ``None`` where it is not known."""

    rank: int
    replay: Replay
    calls: pd.DataFrame | None
    operators: pd.DataFrame
    host: HostActivity | None = None
    slowed: npt.NDArray[np.float64] | None = None

    @property
    def nodes(self) -> Nodes:
        return self.replay.recorded.nodes

    @property
    def kernels(self) -> npt.NDArray[np.bool_]:
        """Which nodes compute."""
        found: npt.NDArray[np.bool_] = (self.nodes.kind == TASK) & ~self.replay.recorded.talks
        return found
