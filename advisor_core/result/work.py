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


class Work(Model):
    """What ran in the steps of the ledger, on all ranks together. ``rank_steps``: of how many steps, each rank's
    counted by itself: divided by it, the times and calls are those of a step of a rank. The rows add up to all that
    ran: what is not listed by itself stands in rows of its own. ``apis``: of all ranks that have such totals, the
    longest; ``api_steps``: recorded steps of these ranks, 0 where none has."""

    role: str | None = None
    rank_steps: int
    operators: list[OperatorTime]
    collectives: list[CollectiveTime]
    api_steps: int = 0
    apis: list[ApiTime] = Field(default_factory=list)


class MemoryPeak(Model):
    """The most memory that the framework had allocated, and had reserved, while the rank was recorded."""

    role: str | None = None
    rank: int
    allocated_bytes: int
    reserved_bytes: int
