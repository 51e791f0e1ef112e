"""The entries of the ledger that name what lies on a critical path: nodes, and what passes before them."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from advisor_core.facts.ledger.bookings import LONGEST_LATENCY_NS, host_path
from advisor_core.facts.replay.edges import FOLLOWS, HANDED, LAUNCHED
from advisor_core.facts.replay.nodes import LAUNCH, RETURN, TASK
from advisor_core.replay.critical_path import BEGINNING, ON_CHAIN
from advisor_core.replay.graph import Ints

COLLECTIVE: Final = "communication"
FEEDING: Final = host_path("unknown")
"""Of the threads that feed the device: what they did is told by time, not by node."""

Paths = npt.NDArray[np.object_]


def node_paths(kind: Ints, talks: npt.NDArray[np.bool_], classes: Paths) -> Paths:
    """The entry of each node. ``kind``: of `advisor_core.facts.replay.nodes`; ``talks``: it is a collective;
    ``classes``: its operator class where it is a kernel."""
    named: Paths = np.select(
        [talks, kind == TASK, kind == LAUNCH, kind == RETURN],
        [COLLECTIVE, "compute/" + classes, host_path("runtime"), host_path("sync")],
        default=FEEDING,
    ).astype(object)
    return named


def waited_kinds(kinds: Ints, waited_for: Ints) -> Ints:
    """The kind of the edge that each node waited for, or `ON_CHAIN` or `BEGINNING`. ``kinds``: of each edge;
    ``waited_for``: as of `advisor_core.replay.critical_path.binding`."""
    found: Ints = np.append(kinds, [BEGINNING, ON_CHAIN])[waited_for]
    return found


def delay_paths(waited_for: Ints, delay_ns: Ints) -> Paths:
    """The entry of what passes before a node. ``waited_for``: the kind of the edge that it waited for
    (`advisor_core.facts.replay.edges`), or `ON_CHAIN` or `BEGINNING`."""
    held_up = (waited_for == LAUNCHED) & (delay_ns > LONGEST_LATENCY_NS)
    named: Paths = np.select(
        [
            waited_for == ON_CHAIN,
            waited_for == BEGINNING,
            held_up | (waited_for == FOLLOWS),
            waited_for == LAUNCHED,
            waited_for == HANDED,
        ],
        ["idle/task_switch", "idle/step_boundary", "idle/unknown", "idle/launch_latency", host_path("runtime")],
        default="idle/dependency",
    ).astype(object)
    return named
