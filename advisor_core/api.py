"""All that a plugin may import; what is not here is private and may change without notice.

Importing this module imports pandas: do it inside the hooks, not at the top of the module that holds them
(`hookimpl` and the registries are in `advisor_core.plugins.hookspecs` and `advisor_core.contracts.registry`, which are
light).
"""

from __future__ import annotations

from advisor_core.contracts.advisor import (
    Advisor,
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
    job_advisor,
)
from advisor_core.contracts.columns import Column
from advisor_core.contracts.facts import Fact, Facts, JobFacts, fact
from advisor_core.contracts.keys import AnyKey, Key
from advisor_core.contracts.ledger_paths import LedgerPath, covered
from advisor_core.contracts.missing import Missing, NotApplicable, Unavailable
from advisor_core.contracts.profile import PROFILE, InputError, Loader, Profile, RankInput
from advisor_core.contracts.registry import Registry, Renderer, Ruleset
from advisor_core.contracts.tables import (
    API_STATISTIC,
    COLLECTIVE_BANDWIDTH,
    COLLECTIVES,
    COMMUNICATION_TASKS,
    DEVICE_TASKS,
    FLOWS,
    FREQUENCY,
    HOST_EVENTS,
    KERNELS,
    LINKS,
    MEMORY_RECORD,
    MODULE_MEMORY,
    OP_STATISTIC,
    OPERATOR_MEMORY,
    OPERATORS,
    OVERLAP,
    SCHEMAS,
    STEP_TRACE,
    RowRef,
    RowSource,
    Table,
    TableSchema,
    row_refs,
)
from advisor_core.facts.communication.calls import collective_calls
from advisor_core.facts.communication.state import POINT_TO_POINT, CollectiveState, collective_state
from advisor_core.facts.context import context
from advisor_core.facts.device.chip import Chip, chip
from advisor_core.facts.device.pipes import pipes
from advisor_core.facts.device.shapes import (
    DTYPE_BYTES,
    Shape,
    elements,
    moved_bytes,
    per_text,
    shapes_of,
    tensor_bytes,
)
from advisor_core.facts.device.work import work
from advisor_core.facts.host.activity import (
    ACTIVITIES,
    ANNOTATION,
    CALLS,
    LOADER,
    SYNC_OPERATORS,
    HostActivity,
    host_activity,
    matching,
)
from advisor_core.facts.host.calls import late_gaps, sync_calls
from advisor_core.facts.host.launches import NO_TIME, Launches, launches
from advisor_core.facts.host.pauses import PAUSE_NS, TIMES_USUAL, host_pauses, paused
from advisor_core.facts.intervals import Layer, complement, cut, union
from advisor_core.facts.ledger.bookings import Bookings, bookings
from advisor_core.facts.ledger.totals import ledger
from advisor_core.facts.memory import (
    Capacity,
    PeakMemory,
    memory_capacity,
    memory_curve,
    memory_peak,
    memory_steps,
    of_graph_engine,
)
from advisor_core.facts.steps.phases import stage_ledger, stages
from advisor_core.facts.steps.rank_summary import rank_summary
from advisor_core.facts.steps.steps import steps
from advisor_core.facts.steps.timeline import Timeline, timeline
from advisor_core.plugins.hookspecs import hookimpl
from advisor_core.result.run import Diagnostic, InputFile, RunResult, View
from advisor_core.text.base import Scalar, Text
from advisor_core.text.packaged import packaged_yaml
from advisor_core.vocabulary.operator_class import class_of, classes, kernel_type

__all__ = [
    "ACTIVITIES",
    "ANNOTATION",
    "API_STATISTIC",
    "CALLS",
    "COLLECTIVES",
    "COLLECTIVE_BANDWIDTH",
    "COMMUNICATION_TASKS",
    "DEVICE_TASKS",
    "DTYPE_BYTES",
    "FLOWS",
    "FREQUENCY",
    "HOST_EVENTS",
    "KERNELS",
    "LINKS",
    "LOADER",
    "MEMORY_RECORD",
    "MODULE_MEMORY",
    "NO_TIME",
    "OPERATORS",
    "OPERATOR_MEMORY",
    "OP_STATISTIC",
    "OVERLAP",
    "PAUSE_NS",
    "POINT_TO_POINT",
    "PROFILE",
    "SCHEMAS",
    "STEP_TRACE",
    "SYNC_OPERATORS",
    "TIMES_USUAL",
    "Advisor",
    "AnyKey",
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
    "JobFacts",
    "Key",
    "Launches",
    "Layer",
    "LedgerPath",
    "Loader",
    "Metric",
    "Missing",
    "NotApplicable",
    "Observations",
    "Params",
    "PeakMemory",
    "Profile",
    "RankInput",
    "Reference",
    "Registry",
    "Renderer",
    "RowRef",
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
    "bookings",
    "chip",
    "class_of",
    "classes",
    "collective_calls",
    "collective_state",
    "complement",
    "context",
    "covered",
    "cut",
    "elements",
    "fact",
    "hookimpl",
    "host_activity",
    "host_pauses",
    "job_advisor",
    "kernel_type",
    "late_gaps",
    "launches",
    "ledger",
    "matching",
    "memory_capacity",
    "memory_curve",
    "memory_peak",
    "memory_steps",
    "moved_bytes",
    "of_graph_engine",
    "packaged_yaml",
    "paused",
    "per_text",
    "pipes",
    "rank_summary",
    "row_refs",
    "shapes_of",
    "stage_ledger",
    "stages",
    "steps",
    "sync_calls",
    "tensor_bytes",
    "timeline",
    "union",
    "work",
]
