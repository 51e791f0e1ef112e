"""The parts of a renderer: the result of a run with its views, numbers with units, headings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor_core.contracts.registry import Renderer
from advisor_core.result.balance import Balance, RankBalance, StageBalance
from advisor_core.result.evidence import Evidence, Source
from advisor_core.result.finding import SEVERITIES, Advice, Basis, Finding, Severity
from advisor_core.result.iteration import Iteration
from advisor_core.result.links import Link, LinkMatrix
from advisor_core.result.places import Kind as PlaceKind
from advisor_core.result.places import Place, places
from advisor_core.result.plan import Action, Limit, Owner, Plan, Varying
from advisor_core.result.problem import Problem, Unexplained
from advisor_core.result.run import (
    Diagnostic,
    LedgerEntry,
    LedgerStep,
    LedgerWindow,
    MeanStep,
    PhaseSummary,
    PhaseTime,
    ReplayModel,
    RuleOutcome,
    RunResult,
    State,
)
from advisor_core.result.side_by_side import PipelinePasses, SideBySide
from advisor_core.result.slack import Slack
from advisor_core.result.spread import RankTime, Spread
from advisor_core.result.timeline import Arrow, RankTimeline, Timeline, Track, Window
from advisor_core.result.view import (
    BarRow,
    Bars,
    BarsView,
    Cell,
    CurveView,
    Drawn,
    Flame,
    FlameView,
    FrameKind,
    Grid,
    Heatmap,
    HeatmapView,
    StackedBarsView,
    StackRow,
    StretchMark,
    StripView,
    TableColumn,
    TableView,
    View,
)
from advisor_core.text.headings import heading_key
from advisor_core.text.kept import kept
from advisor_core.text.plural import countable
from advisor_core.text.units import format_quantity, microseconds

if TYPE_CHECKING:
    from advisor_core.result.comparison import (
        Amounts,
        Cause,
        CollectiveDifference,
        ComparedRun,
        Comparison,
        ComparisonResult,
        ComputedDifference,
        Division,
        DrawnDifference,
        DrawnPart,
        FindingDifference,
        OperatorDifference,
        Origin,
        PassDifference,
        Promise,
        Verdict,
    )

__all__ = [
    "SEVERITIES",
    "Action",
    "Advice",
    "Amounts",
    "Arrow",
    "Balance",
    "BarRow",
    "Bars",
    "BarsView",
    "Basis",
    "Cause",
    "Cell",
    "CollectiveDifference",
    "ComparedRun",
    "Comparison",
    "ComparisonResult",
    "ComputedDifference",
    "CurveView",
    "Diagnostic",
    "Division",
    "Drawn",
    "DrawnDifference",
    "DrawnPart",
    "Evidence",
    "Finding",
    "FindingDifference",
    "Flame",
    "FlameView",
    "FrameKind",
    "Grid",
    "Heatmap",
    "HeatmapView",
    "Iteration",
    "LedgerEntry",
    "LedgerStep",
    "LedgerWindow",
    "Limit",
    "Link",
    "LinkMatrix",
    "MeanStep",
    "OperatorDifference",
    "Origin",
    "Owner",
    "PassDifference",
    "PhaseSummary",
    "PhaseTime",
    "PipelinePasses",
    "Place",
    "PlaceKind",
    "Plan",
    "Problem",
    "Promise",
    "RankBalance",
    "RankTime",
    "RankTimeline",
    "Renderer",
    "ReplayModel",
    "RuleOutcome",
    "RunResult",
    "Severity",
    "SideBySide",
    "Slack",
    "Source",
    "Spread",
    "StackRow",
    "StackedBarsView",
    "StageBalance",
    "State",
    "StretchMark",
    "StripView",
    "TableColumn",
    "TableView",
    "Timeline",
    "Track",
    "Unexplained",
    "Varying",
    "Verdict",
    "View",
    "Window",
    "countable",
    "format_quantity",
    "heading_key",
    "kept",
    "microseconds",
    "places",
]


def __getattr__(name: str) -> object:
    """The names about comparisons, imported when they are asked for: a run has no use for them. Importing from a module
    asks for names that are none of ours, such as ``__path__``."""
    if name in __all__:
        from advisor_core.result import comparison

        if hasattr(comparison, name):
            return getattr(comparison, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
