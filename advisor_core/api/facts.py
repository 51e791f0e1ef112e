"""What facts are made of: declaring one, the tables and facts of ours, intervals, shapes, words."""

from __future__ import annotations

from advisor_core.contracts.facts import Fact, Facts, NotApplicable, Unavailable, fact
from advisor_core.contracts.profile import Profile
from advisor_core.contracts.tables import SCHEMAS
from advisor_core.facts.communication.state import POINT_TO_POINT, CollectiveState
from advisor_core.facts.device.chip import Chip
from advisor_core.facts.device.shapes import (
    DTYPE_BYTES,
    Shape,
    elements,
    moved_bytes,
    per_text,
    shapes_of,
    tensor_bytes,
)
from advisor_core.facts.host.activity import HostActivity, matching
from advisor_core.facts.host.launches import NO_TIME, Launches
from advisor_core.facts.host.pauses import PAUSE_NS, TIMES_USUAL, paused
from advisor_core.facts.intervals import Layer, complement, cut, union
from advisor_core.facts.ledger.bookings import Bookings
from advisor_core.facts.memory import Capacity, PeakMemory, of_graph_engine
from advisor_core.facts.steps.timeline import Timeline
from advisor_core.vocabulary.operator_class import kernel_type
from advisor_core.vocabulary.vocabulary import Vocabulary

__all__ = [
    "DTYPE_BYTES",
    "NO_TIME",
    "PAUSE_NS",
    "POINT_TO_POINT",
    "SCHEMAS",
    "TIMES_USUAL",
    "Bookings",
    "Capacity",
    "Chip",
    "CollectiveState",
    "Fact",
    "Facts",
    "HostActivity",
    "Launches",
    "Layer",
    "NotApplicable",
    "PeakMemory",
    "Profile",
    "Shape",
    "Timeline",
    "Unavailable",
    "Vocabulary",
    "complement",
    "cut",
    "elements",
    "fact",
    "kernel_type",
    "matching",
    "moved_bytes",
    "of_graph_engine",
    "paused",
    "per_text",
    "shapes_of",
    "tensor_bytes",
    "union",
]
