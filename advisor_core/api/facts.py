"""The parts of a fact: its declaration, the tables and facts of ours, intervals, shapes, words."""

from __future__ import annotations

from advisor_core.contracts.columns import Column
from advisor_core.contracts.computed import COMPUTED_COLUMNS, COMPUTED_WORK, KINDS_OF_SHAPES, ComputedWork
from advisor_core.contracts.doubt import DOUBT
from advisor_core.contracts.facts import Fact, Facts, JobFacts, fact
from advisor_core.contracts.frames import Held, frame_of, narrowed, picked
from advisor_core.contracts.keys import AnyKey, Key
from advisor_core.contracts.ledger_paths import LedgerPath, covered
from advisor_core.contracts.missing import Missing, NotApplicable, Unavailable
from advisor_core.contracts.profile import HOST_SLOWING_OPTIONS, PROFILE, Profile
from advisor_core.contracts.tables import (
    AI_CPU_NODES,
    API_STATISTIC,
    COLLECTIVE_BANDWIDTH,
    COLLECTIVES,
    COMMUNICATION_TASKS,
    CORE_COUNTERS,
    COUNTERS,
    DEVICE_TASKS,
    FLOWS,
    FREQUENCY,
    GRAPH_MEMORY,
    HOST_EVENTS,
    KERNELS,
    L2_CACHE,
    LINKS,
    MEMORY_RECORD,
    MODULE_MEMORY,
    OP_STATISTIC,
    OPERATOR_MEMORY,
    OPERATORS,
    OVERLAP,
    PORTS,
    SCHEMAS,
    SOURCE_ROW,
    STEP_TRACE,
    RowRef,
    row_refs,
)
from advisor_core.facts.communication.calls import collective_calls, name_of_group, operation_names
from advisor_core.facts.communication.links import TOTAL, link_speeds, transfers
from advisor_core.facts.communication.state import POINT_TO_POINT, CollectiveState, collective_state
from advisor_core.facts.context import context
from advisor_core.facts.device.chip import Chip, chip
from advisor_core.facts.device.peaks import Peaks, peaks
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
from advisor_core.facts.device.work import operator_types, work
from advisor_core.facts.grouping import Groups, aggregated
from advisor_core.facts.host.activity import HostActivity, host_activity
from advisor_core.facts.host.call_site import call_site, frames_of
from advisor_core.facts.host.calls import late_gaps, sync_calls
from advisor_core.facts.host.host_steps import host_steps
from advisor_core.facts.host.launches import NO_TIME, Launches, launches
from advisor_core.facts.host.pauses import PAUSE_NS, TIMES_USUAL, host_pauses, paused
from advisor_core.facts.inference import WIDEST_HEAD
from advisor_core.facts.intervals import Layer, complement, cut, union
from advisor_core.facts.ledger.bookings import LATENCY_NS, Bookings
from advisor_core.facts.ledger.settled import bookings
from advisor_core.facts.ledger.totals import ledger
from advisor_core.facts.matching import matching
from advisor_core.facts.memory import (
    Capacity,
    PeakMemory,
    memory_capacity,
    memory_curve,
    memory_peak,
    memory_steps,
    of_graph_engine,
)
from advisor_core.facts.replay.capture import Capturing
from advisor_core.facts.replay.changes import LONGEST, Change, HostChange, Merging, Shortening, joined
from advisor_core.facts.replay.overlapping import Overlapping, outlasting
from advisor_core.facts.replay.replay import Replay, replay
from advisor_core.facts.steps.backlog import Backlog, backlog
from advisor_core.facts.steps.judged_parts import PART, JudgedPart, judged_parts
from advisor_core.facts.steps.kernel_list import KernelList, kernel_list
from advisor_core.facts.steps.parts import part_ledger, part_of, parts
from advisor_core.facts.steps.phases import phase_ledger, phases
from advisor_core.facts.steps.rank_summary import rank_summary
from advisor_core.facts.steps.start_up import StartUp, start_up
from advisor_core.facts.steps.steps import steps
from advisor_core.facts.steps.timeline import Timeline, timeline
from advisor_core.facts.steps.warm_up import WarmUp, warm_up
from advisor_core.nesting import enclosing_of
from advisor_core.nesting import parents as parents_of
from advisor_core.vocabulary.operator_class import kernel_type
from advisor_core.vocabulary.vocabulary import Vocabulary

__all__ = [
    "AI_CPU_NODES",
    "API_STATISTIC",
    "COLLECTIVES",
    "COLLECTIVE_BANDWIDTH",
    "COMMUNICATION_TASKS",
    "COMPUTED_COLUMNS",
    "COMPUTED_WORK",
    "CORE_COUNTERS",
    "COUNTERS",
    "DEVICE_TASKS",
    "DOUBT",
    "DTYPE_BYTES",
    "FLOWS",
    "FREQUENCY",
    "GRAPH_MEMORY",
    "HOST_EVENTS",
    "HOST_SLOWING_OPTIONS",
    "KERNELS",
    "KINDS_OF_SHAPES",
    "L2_CACHE",
    "LATENCY_NS",
    "LINKS",
    "LONGEST",
    "MEMORY_RECORD",
    "MODULE_MEMORY",
    "NO_TIME",
    "OPERATORS",
    "OPERATOR_MEMORY",
    "OP_STATISTIC",
    "OVERLAP",
    "PART",
    "PAUSE_NS",
    "POINT_TO_POINT",
    "PORTS",
    "PROFILE",
    "SCHEMAS",
    "SOURCE_ROW",
    "STEP_TRACE",
    "TIMES_USUAL",
    "TOTAL",
    "WIDEST_HEAD",
    "AnyKey",
    "Backlog",
    "Bookings",
    "Capacity",
    "Capturing",
    "Change",
    "Chip",
    "CollectiveState",
    "Column",
    "ComputedWork",
    "Fact",
    "Facts",
    "Groups",
    "Held",
    "HostActivity",
    "HostChange",
    "JobFacts",
    "JudgedPart",
    "KernelList",
    "Key",
    "Launches",
    "Layer",
    "LedgerPath",
    "Merging",
    "Missing",
    "NotApplicable",
    "Overlapping",
    "PeakMemory",
    "Peaks",
    "Profile",
    "Replay",
    "RowRef",
    "Shape",
    "Shortening",
    "StartUp",
    "Timeline",
    "Unavailable",
    "Vocabulary",
    "WarmUp",
    "aggregated",
    "backlog",
    "bookings",
    "call_site",
    "chip",
    "collective_calls",
    "collective_state",
    "complement",
    "context",
    "covered",
    "cut",
    "elements",
    "enclosing_of",
    "fact",
    "frame_of",
    "frames_of",
    "host_activity",
    "host_pauses",
    "host_steps",
    "joined",
    "judged_parts",
    "kernel_list",
    "kernel_type",
    "late_gaps",
    "launches",
    "ledger",
    "link_speeds",
    "matching",
    "memory_capacity",
    "memory_curve",
    "memory_peak",
    "memory_steps",
    "moved_bytes",
    "name_of_group",
    "narrowed",
    "of_graph_engine",
    "operation_names",
    "operator_types",
    "outlasting",
    "parents_of",
    "part_ledger",
    "part_of",
    "parts",
    "paused",
    "peaks",
    "per_text",
    "phase_ledger",
    "phases",
    "picked",
    "pipes",
    "rank_summary",
    "replay",
    "row_refs",
    "shapes_of",
    "start_up",
    "steps",
    "sync_calls",
    "tensor_bytes",
    "timeline",
    "transfers",
    "union",
    "warm_up",
    "work",
]
