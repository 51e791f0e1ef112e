"""What ran in the steps of a result, summed up: operators, collectives, and the peak of memory."""

from __future__ import annotations

from pydantic import Field

from advisor_core.text.base import Model


class OperatorTime(Model):
    """The kernels of one operator type with one list of input shapes. ``type``: as recorded, else read from the
    kernel's name; ``None`` together with ``shapes`` ``None``: all types that are not listed. ``shapes``: of the inputs,
    '' not recorded; ``None``: all shapes of the type that are not listed. ``ns``: durations of the kernels; those that
    run at the same time count in full."""

    type: str | None
    shapes: str | None
    operator_class: str = Field(description="class in the ledger; '' for what is not listed")
    calls: int
    ns: int


class CollectiveTime(Model):
    """The calls of one kind of collective, send or receive, of one size, in groups that are alike. ``operation``:
    ``None`` together with ``bytes`` ``None``: all that is not listed. ``members``: ranks of the group, ``spacing``: how
    far apart their numbers are; two groups of the same layout are alike. ``bytes``: of one call over links. What is
    ``None`` is not known, but for the sizes that are not listed.

    ``ns``: durations including waiting; ``uncovered_ns``: of it while nothing computes; ``waiting_ns``: of that while
    no data moves because a rank is awaited."""

    operation: str | None
    members: int | None
    spacing: int | None
    bytes: int | None
    listed: bool = Field(True, description="false for a row that stands for all that is not listed")
    calls: int
    ns: int
    uncovered_ns: int
    waiting_ns: int


class ApiTime(Model):
    """The calls of one API of the runtime, as the exporter sums them up over the whole recording. A call that passes
    through several levels counts at each."""

    level: str
    name: str
    calls: int
    ns: int


class ComputedTime(Model):
    """What kernels compute, whatever they are called: see `advisor_core.contracts.computed`. ``kind``: product,
    grouped, convolution, attention, computation (a formula, fused or not) or operation. ``what``: lengths of a product
    (``[batch x] shorter x longer axis of the result x length of the sum``), of a convolution (places x channels x
    values that one result sums over) and of an attention (queries x keys x channels of all heads of the batch), else a
    name; '' not told by the shapes; ``None``: all of the kind that is not listed. ``dtype``: of the operands of the
    matrix unit, '' of others. ``block``: part of the model, ``in_pass``: forward, recomputation, backward or optimizer;
    '' not known or not listed.

    ``calls``: how often it is computed, ``kernels``: how many kernels do it, ``ns``: their time. ``bounded_ns``: of it,
    kernels whose bound on the recorded chip is known; ``least_ns``: what these need at least; ``computing_ns``: their
    operations at the peak for the dtype, ``memory_ns``: their bytes at the bandwidth of the memory."""

    kind: str
    what: str | None
    dtype: str
    block: str
    in_pass: str
    calls: int
    kernels: int
    ns: int
    bounded_ns: int
    least_ns: int
    computing_ns: int
    memory_ns: int
    flops: float


class ChipPeaks(Model):
    """Peak rates of the chip. ``flops``: FLOP/s of the matrix unit by dtype; ``bytes_per_second``: of the memory,
    ``None`` unknown."""

    flops: dict[str, float] = Field(default_factory=dict)
    bytes_per_second: float | None = None


class Work(Model):
    """What ran in the steps of the ledger, on all ranks together. ``rank_steps``: of how many steps, each rank's
    counted by itself: divided by it, the times and calls are those of a step of a rank. The rows add up to all that
    ran: what is not listed by itself stands in rows of its own. ``apis``: of all ranks that have such totals, the
    longest; ``api_steps``: recorded steps of these ranks, 0 where none has. ``computed``: the same kernels by what they
    compute; none where types of operators are not recorded. ``samples``: ``tokens`` and ``images`` that all ranks read,
    where shapes tell. ``peaks``: of the chip, where all ranks have one."""

    role: str | None = None
    rank_steps: int
    operators: list[OperatorTime]
    collectives: list[CollectiveTime]
    api_steps: int = 0
    apis: list[ApiTime] = Field(default_factory=list)
    computed: list[ComputedTime] = Field(default_factory=list)
    samples: dict[str, int] = Field(default_factory=dict)
    peaks: ChipPeaks | None = None


class MemoryPeak(Model):
    """The most memory that the framework had allocated, and had reserved, while the rank was recorded."""

    role: str | None = None
    rank: int
    allocated_bytes: int
    reserved_bytes: int
