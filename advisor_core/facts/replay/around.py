"""The host time between two steps, and between the end of a recording and its begin, where it comes round again.

The marks of the framework (``ProfilerStep#N``) lie around the program of a step: the profiler starts before the first
of them and stops behind the last one. So what the host did in the first step before it handed over its first task, and
in the last one after it had handed over its last, is time of the program, as recorded as that between two steps. Only
where the profiler still starts or stops within them is it not: the first steps of two public recordings of one job
begin with 49 and 51 ms, where the others have 6 to 15 ms, and a last one ends with 85 ms in place of 0.1.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from advisor_core.facts.intervals import Layer
from advisor_core.facts.replay.nodes import FEED, FEEDERS, Nodes
from advisor_core.replay.graph import Graph, Ints

STRANGE = 2.0
"""The factor from which the time around a recording is unlike that between its steps, longer or shorter: starting or
stopping the profiler is part of it then. Of eight public recordings with several steps (Kineto) the first step begins
with 1.0 to 1.2 times the time of the others in five, and with 3.7 to 7 times in three. Our choice, between the two."""


def leading_to(nodes: Nodes, places: Ints) -> tuple[Ints, ...]:
    """Of each step but the first the nodes of the feeding threads from the end of the step before to its first task.
    ``places``: of that task, among all that were handed over, as of `advisor_core.facts.replay.nodes.openings`. Calls
    that wait for the device are of the step before as many as there are behind the last task of the last step."""
    fed = np.flatnonzero(nodes.chain == FEEDERS)
    tasks = np.flatnonzero(nodes.kind[fed] == FEED)
    behind = len(fed) - 1 - int(tasks[-1]) if len(tasks) else 0
    lasts, firsts = tasks[places - 1], tasks[places]
    begins = np.minimum(lasts + 1 + behind, firsts)
    return tuple(fed[begin : first + 1] for begin, first in zip(begins.tolist(), firsts.tolist(), strict=True))


def between_steps_ns(graph: Graph, leading: Sequence[Ints]) -> int:
    """The host time between two recorded steps, the median; 0 where there are none. ``leading``: as of `leading_to`."""
    return int(np.median([graph.duration[nodes].sum() for nodes in leading])) if leading else 0


def around_ns(nodes: Nodes, marks: Layer, syncs: Layer, usual_ns: int) -> int | None:
    """The host time from the last node of the feeding threads to the end of its step and from the begin of the first
    step to the first node, ns, but for what they wait for the device. ``marks``: of the steps on the host, one after
    the other, and ``syncs``, the calls that wait, in device time; ``usual_ns``: the time between two recorded steps.
    ``None`` where there are no marks, or starting or stopping the profiler is part of it."""
    fed = np.flatnonzero(nodes.chain == FEEDERS)
    if not len(fed) or not len(marks):
        return None
    first, last = int(nodes.start_ns[fed].min()), int(nodes.end_ns[fed].max())
    own = np.searchsorted(marks.starts, [first, last], side="right") - 1
    if own[0] < 0 or marks.ends[own[0]] < first:
        return None
    head = _busy(syncs, int(marks.starts[own[0]]), first)
    tail = _busy(syncs, last, max(last, int(marks.ends[own[1]])))
    around = head + tail
    return around if usual_ns <= STRANGE * around and around <= STRANGE * usual_ns else None


def _busy(syncs: Layer, begin: int, end: int) -> int:
    """The time in which a thread does not wait for the device."""
    waits: Ints = syncs.measure(np.array([begin, end]))
    return end - begin - int(waits[1] - waits[0])
