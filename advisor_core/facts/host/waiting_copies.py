"""Copies that hold the host until the device has done them: a synchronisation without a call of that name.

A copy into memory of the host that is not pinned returns when it has ended, whatever the call is called
(docs/sources.md#copies-that-wait). So the call is told by what was recorded of it: its own copy ended before it did.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from advisor_core.facts.host.launches import arrows_to_tasks
from advisor_core.facts.matching import matching
from advisor_core.nesting import enclosing_of
from advisor_core.vocabulary.vocabulary import Vocabulary

if TYPE_CHECKING:
    import numpy.typing as npt


def waiting_copies(
    events: pd.DataFrame, tasks: pd.DataFrame, flows: pd.DataFrame, skew_ns: int, words: Vocabulary
) -> npt.NDArray[np.bool_]:
    """Mask of the events of the host (rows of ``host_events``) that are such calls. ``tasks``, ``flows``: the tables
    ``device_tasks`` and ``flows``, whose arrows lead from a call to its copy; ``skew_ns``: as in `Launches`."""
    waiting = np.zeros(len(events), dtype=np.bool_)
    calls = events[(events["category"] == "runtime").to_numpy() & matching(events["name"], words.copy_calls)]
    copies = tasks[matching(tasks["task_type"], words.copy_tasks)]
    if calls.empty or copies.empty or (arrows := arrows_to_tasks(flows)) is None:
        return waiting
    copied = copies.merge(arrows, left_on=["start_ns", "stream"], right_on=["time_ns", "thread"])
    call = enclosing_of(calls, copied["thread_host"].to_numpy(), copied["time_ns_host"].to_numpy())
    copied, call = copied[call >= 0], call[call >= 0]
    returned = (events["start_ns"] + events["duration_ns"]).to_numpy()[call] - skew_ns
    waiting[call[returned >= (copied["start_ns"] + copied["duration_ns"]).to_numpy()]] = True
    return waiting
