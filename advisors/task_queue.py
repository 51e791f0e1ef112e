"""The task queue between the thread that runs the model and the one that launches, as a trace shows it."""

from __future__ import annotations

import pandas as pd


def seen_task_queue(events: pd.DataFrame, memory: pd.DataFrame | None) -> str:
    """``off``, ``on``, ``workspace`` (level 2) or ``unknown``.

    ``TASK_QUEUE_ENABLE`` is not recorded, but 2 allocates workspace from a pool of its own and 0 queues nothing."""
    if memory is not None and (memory["component"] == "WORKSPACE").any():
        return "workspace"
    categories = events["category"]
    if categories.isin(["enqueue", "dequeue"]).any():
        return "on"
    return "off" if (categories == "cpu_op").any() and (categories == "runtime").any() else "unknown"
