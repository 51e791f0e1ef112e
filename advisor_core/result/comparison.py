"""Comparison: what `advisor compare` says of two or more results, and the content of compare.json.

All times are ns of a step: of the mean step of the ranks that are compared. A difference is the later value less the
earlier one, so that less than nothing is a win.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from advisor_core.result.finding import Severity
from advisor_core.result.run import Tool
from advisor_core.text.base import Model, Text

COMPARISON_VERSION = "1.1"

Conclusion = Literal["verdict", "causes", "operators", "communication", "host", "memory", "findings", "promises"]
Outcome = Literal["slower", "faster", "within_noise", "cannot_tell", "not_comparable", "across_vendors"]
"""``across_vendors``: no regression and no progress, but two devices; `Comparison.origins` says where the difference
comes from."""


class ComparedRun(Model):
    """One of the runs. ``name``: of its path. ``ranks``: those recorded; ``steps``: of the ledger, of the rank with
    fewest; ``step_ns``: the mean step of all its ranks, ``parts`` the trunk of its ledger, which add up to it.
    ``findings``: how many of each severity."""

    name: str
    vendor: str
    kind: str
    chip: str
    ranks: list[int]
    world_size: int | None
    steps: int
    step_ns: int
    parts: dict[str, int]
    findings: dict[Severity, int]


class Obstacle(Model):
    """Something that the two runs do not have in common. ``spoils``: the conclusions that are not drawn because of
    it; none for what the reader should only know."""

    about: str
    text: Text
    spoils: list[Conclusion] = Field(default_factory=list)


class Verdict(Model):
    """Whether the step became slower or faster. ``before_ns`` and ``after_ns``: the mean step of the ranks that are
    compared. ``ratio``: the difference, of the earlier step. ``interval``: the ratios that the steps allow with a
    confidence of 95 %, by ``method``; ``None`` where they allow no statement. ``reason``: why there is none, or
    why the runs cannot be compared. ``steps``: how many were compared on each side."""

    outcome: Outcome
    before_ns: int
    after_ns: int
    difference_ns: int
    ratio: float
    interval: tuple[float, float] | None = None
    method: Literal["bootstrap", "permutation", "none"] = "none"
    steps: tuple[int, int]
    reason: Text | None = None


class LedgerDifference(Model):
    """An entry of the ledger on both sides. The differences of all entries add up to that of the step exactly."""

    path: str
    before_ns: int
    after_ns: int
    difference_ns: int


class Cause(Model):
    """An entry of the ledger whose difference matters, with what explains it; all waiting for other ranks is one entry,
    as it can be for another rank in each run. ``findings``: places in `Comparison.findings` of those about this entry
    that came or grew where it grew, that went or shrank where it shrank. ``operators`` and ``collectives``: places in
    those lists of the comparison, of what moved the same way, most first."""

    path: str
    difference_ns: int
    findings: list[int] = Field(default_factory=list)
    operators: list[int] = Field(default_factory=list)
    collectives: list[int] = Field(default_factory=list)


class Division(Model):
    """A difference of kernel time between two devices, divided. ``calls_before`` and ``calls_after``: how often it is
    computed in a step of a rank, ``kernels``: by how many kernels. ``least_before_ns`` and ``least_after_ns``: what the
    kernels need at least on their own chip, ``None`` where that is not known for most of their time.

    The four parts add up to the difference. ``chip_ns``: the same work at the peak rates of the other chip;
    ``work_ns``: operations and bytes that one side has and the other has not, at these rates; ``above_ns``: the time
    above the bounds; ``untold_ns``: what no bound is known for. With a work ``w`` and a chip ``c`` as (before, after)
    and ``b(w, c)`` the bound, ``chip`` is the mean of b(w1, c2) - b(w1, c1) and b(w2, c2) - b(w2, c1), and ``work``
    that of b(w2, c2) - b(w1, c2) and b(w2, c1) - b(w1, c1), so that the order of the runs does not matter."""

    calls_before: float
    calls_after: float
    kernels_before: float
    kernels_after: float
    least_before_ns: int | None
    least_after_ns: int | None
    chip_ns: int
    work_ns: int
    above_ns: int
    untold_ns: int


class Origin(Model):
    """Where a part of the difference between two devices comes from. ``path``: an entry of the ledger that is not
    computing, or below ``compute``: ``product``, ``convolution``, ``attention``, ``computation/NAME`` (a formula),
    ``operation/NAME`` (kernels that are part of none) and ``beside`` (kernels that run beside others, or beside
    communication: their times count in full, and in the step once). ``division``: of kernel times. All origins add up
    to the difference of the step, where the ledgers are compared."""

    path: str
    before_ns: int
    after_ns: int
    difference_ns: int
    division: Division | None = None


class ComputedDifference(Model):
    """What kernels compute, on both sides: see `advisor_core.result.work.ComputedTime`; all passes and parts of the
    model together. ``what`` ``None``: all of the kind that is not listed on both sides. ``dtypes``: of the operands,
    before and after, where there are several with commas between them."""

    role: str | None
    kind: str
    what: str | None
    dtypes: tuple[str, str]
    before_ns: int
    after_ns: int
    difference_ns: int
    division: Division


class PassDifference(Model):
    """The kernels of one pass and one part of the model, per step of a rank. ``in_pass``: forward, recomputation,
    backward or optimizer; ``block``: attention, ffn, norm and so on, '' where the layers of a side are not known. What
    is not listed by itself has neither."""

    role: str | None
    in_pass: str
    block: str
    kernels_before: float
    kernels_after: float
    before_ns: int
    after_ns: int
    difference_ns: int


class Amounts(Model):
    """How much work two devices do in a step of a rank, and how well. ``same``: whether it is the same work, by the
    shapes of products, convolutions and attentions; ``None`` where shapes do not tell. ``shared``: the share of the
    operations that both compute alike. ``flops``: of the matrix unit; ``samples``: tokens and images that the steps
    read, where both sides tell; ``ns_per_sample``: time of the step for each, where there is a step on both sides;
    ``ns_per_tflop``: the same for 10^12 operations; ``kernel_ns``: kernel time; ``kernel_ns_per_tflop``. ``mfu``:
    operations of the step over what the matrix unit could do in its time, ``bandwidth``: the same of bytes and the
    memory; ``None`` where a chip, or the work of half of the kernel time, is not known."""

    same: bool | None
    shared: float | None
    flops: tuple[float, float] | None
    samples: dict[str, tuple[float, float]] = Field(default_factory=dict)
    ns_per_sample: dict[str, tuple[int, int]] = Field(default_factory=dict)
    ns_per_tflop: tuple[int, int] | None = None
    kernel_ns: tuple[int, int]
    kernel_ns_per_tflop: tuple[int, int] | None = None
    mfu: tuple[float | None, float | None] = (None, None)
    bandwidth: tuple[float | None, float | None] = (None, None)


class RankDifference(Model):
    """A rank and the rank of the other side in the same place of the layout; the mean step of each."""

    role: str | None
    rank: int
    rank_after: int
    before_ns: int
    after_ns: int
    difference_ns: int


class StepDifference(Model):
    """A step and the step of the other side that it is compared with: that of the same id where both sides have the
    same ids, else the one in the same place. The mean over the ranks that are compared."""

    step: int | None
    step_after: int | None
    before_ns: int
    after_ns: int


class PhaseDifference(Model):
    """A phase of an iteration, by name; ``None``: the other side has no such phase."""

    phase: str
    kind: str
    before_ns: int | None
    after_ns: int | None


class OperatorDifference(Model):
    """The kernels of an operator type, or of those of one list of shapes, per step of a rank. ``shapes`` ``None``: all
    shapes of the type, or in `Comparison.operator_shapes` all that are not listed on both sides; ``type`` ``None``:
    all types that are not. ``by_count_ns``: what the difference would be if only the calls had changed, at the earlier
    time per call; ``by_time_ns``: the rest, which is of the time per call: of a type also of which shapes it runs with.
    They add up to the difference. What came or went is all count."""

    role: str | None
    type: str | None
    shapes: str | None
    operator_class: str
    change: Literal["gone", "new", "calls", "time"]
    calls_before: float
    calls_after: float
    before_ns: int
    after_ns: int
    difference_ns: int
    by_count_ns: int
    by_time_ns: int


class ApiDifference(Model):
    """The calls of one API of the runtime, per recorded step of a rank: the exporter's totals of the whole recording,
    what lies between steps among them."""

    role: str | None
    level: str
    name: str
    calls_before: float
    calls_after: float
    before_ns: int
    after_ns: int
    difference_ns: int


class CollectiveDifference(Model):
    """Collectives of one kind, size and layout of group, per step of a rank. The times that are compared are those that
    no computing covers; ``waiting``: of them, while a rank is awaited. ``listed`` false: all that are not listed on
    both sides."""

    role: str | None
    operation: str | None
    members: int | None
    spacing: int | None
    bytes: int | None
    listed: bool
    calls_before: float
    calls_after: float
    before_ns: int
    after_ns: int
    difference_ns: int
    waiting_before_ns: int
    waiting_after_ns: int

    def at(self, path: str) -> int:
        """The part of the difference that an entry of the ledger can have: its waiting, or all else; none of other
        trunks."""
        trunk, _, rest = path.partition("/")
        if trunk != "communication" or not rest:
            return self.difference_ns if trunk == "communication" else 0
        waiting = self.waiting_after_ns - self.waiting_before_ns
        return waiting if rest.partition("/")[0] == "wait" else self.difference_ns - waiting


class MemoryDifference(Model):
    """The most memory of a rank on both sides."""

    role: str | None
    rank: int
    rank_after: int
    allocated_before: int
    allocated_after: int
    reserved_before: int
    reserved_after: int


class DrawnPart(Model):
    """A row of a drawing on both sides, in the unit of the drawing; ``None``: that side does not draw it, as it is too
    small there or does not exist. ``depth``: how many rows above contain it."""

    label: str | Text
    depth: int
    before: float | None
    after: float | None


class DrawnDifference(Model):
    """A drawing that divides a whole by rows, on both sides; means over the ranks that have it on both. ``kind``: its
    id without the rank, ``title``: that of the earlier side."""

    kind: str
    role: str | None
    title: Text
    unit: str
    parts: list[DrawnPart]


FindingState = Literal[
    "new", "worse", "other_subject", "unknown_before", "gone", "better", "unknown_after", "same", "judged_differently"
]


class FindingDifference(Model):
    """A finding on both sides, matched by its fingerprint. ``before`` and ``after``: the number of its problem in the
    report of each side, ``None`` where that side has none; times: what its rule measured, for the rank it is shown for.

    ``state``: ``unknown_before`` and ``unknown_after``: there is none on that side, where its rule could not be
    answered or was left out; ``other_subject``: the same rule found one thing before and another one after;
    ``judged_differently``: its rule has other thresholds or conditions on the two sides."""

    state: FindingState
    rule: str
    fingerprint: str
    title: Text
    before: str | None
    after: str | None
    severity_before: Severity | None
    severity_after: Severity | None
    before_ns: int | None
    after_ns: int | None


class Promise(Model):
    """A promise of the earlier report about a finding whose change was made. ``finding``: its place in
    `Comparison.findings`. ``settings``: what the advice sets and the later run has, and the earlier had not.
    ``promised_ns``: what the replay said that the change wins alone, in ``range_ns``; where the earlier run had no
    replay, what the finding claimed; ``None`` where no change of it could be replayed. ``own_ns``: by how much the
    time that its rule measured shrank."""

    finding: int
    settings: list[str] = Field(default_factory=list)
    promised_ns: int | None
    range_ns: tuple[int, int] | None
    own_ns: int | None


class Promises(Model):
    """Promise against outcome. ``together_ns``: what all changes that were made should win together; ``basis``: how
    that is known: ``alone``, of one change; ``together``, as the replay told it of these changes together; ``in_turn``,
    the sum of what each wins on top of those before it in the plan, which holds when all of these are made too;
    ``claims``: the sum of what the findings claimed, where there was no replay.
    ``came_ns``: by how much the mean step became shorter, whatever the reason; ``came_range_ns``: what the noise of the
    steps allows; ``came_in_plan_ns``: the same of the step that the plans of the two reports are about, which is one of
    a long run and no mean of those recorded, ``None`` where one has no plan."""

    items: list[Promise]
    together_ns: int | None
    basis: Literal["alone", "together", "in_turn", "claims", "none"]
    came_ns: int
    came_range_ns: tuple[int, int] | None
    came_in_plan_ns: int | None = None


class Comparison(Model):
    """Two runs. ``before`` and ``after``: their places in `ComparisonResult.runs`. ``withheld``: conclusions that the
    obstacles spoil, whose parts are empty here. The largest come first in each list."""

    before: int
    after: int
    obstacles: list[Obstacle]
    withheld: list[Conclusion]
    verdict: Verdict
    ledger: list[LedgerDifference]
    causes: list[Cause]
    rest_ns: int = Field(description="of the difference: all entries that are too small to be causes")
    ranks: list[RankDifference]
    steps: list[StepDifference]
    phases: list[PhaseDifference]
    operators: list[OperatorDifference] = Field(description="by type; types that did not change are left out")
    operator_shapes: list[OperatorDifference] = Field(description="the same by type and shapes")
    collectives: list[CollectiveDifference]
    covered: tuple[float | None, float | None] = Field(
        (None, None), description="share of the communication that computing covers, before and after"
    )
    apis: list[ApiDifference] = Field(
        default_factory=list, description="calls of the host by API; empty where a side has no totals of them"
    )
    memory: list[MemoryDifference]
    drawings: list[DrawnDifference] = Field(
        default_factory=list,
        description="parts of the model, modules and holders of memory, where both sides draw them",
    )
    settings: dict[str, tuple[str | None, str | None]] = Field(
        description="environment variables that differ; `None`: not recorded"
    )
    findings: list[FindingDifference]
    promises: Promises | None
    amounts: Amounts | None = Field(None, description="across vendors: how much work each side does")
    origins: list[Origin] = Field(
        default_factory=list, description="across vendors: where the difference comes from, largest first"
    )
    computed: list[ComputedDifference] = Field(
        default_factory=list, description="across vendors: what the kernels of both sides compute, largest first"
    )
    passes: list[PassDifference] = Field(
        default_factory=list,
        description="across vendors: kernels by pass and part of the model, in the order of a step",
    )


class ComparisonResult(Model):
    """The runs in the order in which they were named, and each but the first compared with the first."""

    schema_version: str = COMPARISON_VERSION
    tool: Tool
    runs: list[ComparedRun]
    comparisons: list[Comparison]
    labels: dict[str, Text] = Field(default_factory=dict, description="what plugins call parts of the ledger")
