"""All that a plugin may import; what is not here is private and may change without notice.

Importing this module imports pandas: do it inside the hooks, not at the top of the module that holds them
(`hookimpl` and the registries are in `advisor_core.plugins.hookspecs` and `advisor_core.contracts.registry`, which are
light).
"""

from __future__ import annotations

from advisor_core.contracts.advisor import (
    Advisor,
    Column,
    Interval,
    Metric,
    Observations,
    Params,
    Reference,
    Rows,
    Scope,
    Setting,
    Stack,
    advisor,
)
from advisor_core.contracts.facts import Fact, Facts, NotApplicable, Unavailable, fact
from advisor_core.contracts.profile import InputError, Loader, Profile, RankInput
from advisor_core.contracts.registry import Registry, Renderer, Ruleset
from advisor_core.contracts.tables import SCHEMAS, RowSource, Table, TableSchema
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
from advisor_core.facts.host.activity import (
    ACTIVITIES,
    ANNOTATION,
    CALLS,
    LOADER,
    SYNC_OPERATORS,
    HostActivity,
    matching,
)
from advisor_core.facts.host.launches import NO_TIME, Launches
from advisor_core.facts.host.pauses import PAUSE_NS, TIMES_USUAL, paused
from advisor_core.facts.intervals import Layer, complement, cut, union
from advisor_core.facts.ledger.bookings import Bookings
from advisor_core.facts.memory import Capacity, PeakMemory, of_graph_engine
from advisor_core.facts.steps.timeline import Timeline
from advisor_core.plugins.hookspecs import hookimpl
from advisor_core.result.run import Diagnostic, InputFile, RunResult
from advisor_core.result.view import View
from advisor_core.text.base import Scalar, Text
from advisor_core.text.packaged import packaged_yaml
from advisor_core.vocabulary.operator_class import class_of, classes, kernel_type

__all__ = [
    "ACTIVITIES",
    "ANNOTATION",
    "CALLS",
    "DTYPE_BYTES",
    "LOADER",
    "NO_TIME",
    "PAUSE_NS",
    "POINT_TO_POINT",
    "SCHEMAS",
    "SYNC_OPERATORS",
    "TIMES_USUAL",
    "Advisor",
    "Bookings",
    "Capacity",
    "Chip",
    "CollectiveState",
    "Column",
    "Diagnostic",
    "Fact",
    "Facts",
    "HostActivity",
    "InputError",
    "InputFile",
    "Interval",
    "Launches",
    "Layer",
    "Loader",
    "Metric",
    "NotApplicable",
    "Observations",
    "Params",
    "PeakMemory",
    "Profile",
    "RankInput",
    "Reference",
    "Registry",
    "Renderer",
    "RowSource",
    "Rows",
    "Ruleset",
    "RunResult",
    "Scalar",
    "Scope",
    "Setting",
    "Shape",
    "Stack",
    "Table",
    "TableSchema",
    "Text",
    "Timeline",
    "Unavailable",
    "View",
    "advisor",
    "class_of",
    "classes",
    "complement",
    "cut",
    "elements",
    "fact",
    "hookimpl",
    "kernel_type",
    "matching",
    "moved_bytes",
    "of_graph_engine",
    "packaged_yaml",
    "paused",
    "per_text",
    "shapes_of",
    "tensor_bytes",
    "union",
]
