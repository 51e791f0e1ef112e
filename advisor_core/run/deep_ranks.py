"""Choice of the ranks of a large job to read in depth: those that explain it, by the sums of the steps of all.

A job of hundreds of ranks is terabytes of traces, and the small file with the sums of each step tells which ranks
differ. Ranks that work in step end their steps together: the one that communicates least is the one the others wait
for, whatever keeps it. Beside it the longest step, the most computing and the most idle time, and a rank in the middle
to compare them with. Stages of a pipeline do different work, so each has its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Final

from advisor_core.contracts.profile import InputError, Loader, RankInput
from advisor_core.contracts.tables import STEP_TRACE
from advisor_core.result.layout import Layout
from advisor_core.result.run import Diagnostic
from advisor_core.text.messages import message

MOST_RANKS: Final = 64
MOST_BYTES: Final = 8 << 30
"""Up to here all ranks are read in depth unless somebody asks for less: on two cores about a minute for 64 small ranks,
and a few minutes for 8 GiB (docs/speed.md)."""

CHOSEN: Final = 16
"""Ranks of a larger job that are read in depth."""

NEXT: Final = 4
"""Further ranks that are named, which would tell most of those that were not read."""

_PARTS: Final = ["computing_ns", "uncovered_communication_ns", "free_ns"]


class RankError(InputError):
    """A rank is asked for that is not there, or that cannot be read as asked."""


@dataclass(frozen=True)
class DeepRanks:
    """The ranks to read in depth: ``everything``, so many (``count``), or these ``ranks``; by default as many as the
    size of the job allows."""

    everything: bool = False
    count: int | None = None
    ranks: tuple[int, ...] = ()

    @classmethod
    def of(cls, text: str) -> DeepRanks:
        """As it is written: ``all``, a number, or ranks such as ``0,8-15``. Raises ValueError."""
        if text.strip().lower() == "all":
            return cls(everything=True)
        if text.strip().isdecimal():
            if not (count := int(text)):
                raise ValueError("at least one rank is read in depth")
            return cls(count=count)
        ranks: list[int] = []
        for part in text.split(","):
            first, dash, last = part.partition("-")
            low, high = int(first), int(last if dash else first)
            if high < low:
                raise ValueError(f"{part.strip()} has its ends in the wrong order")
            ranks += range(low, high + 1)
        return cls(ranks=tuple(dict.fromkeys(ranks)))


BY_SIZE: Final = DeepRanks()
"""All ranks of a small job, some of a large one."""


def in_depth(
    loaders: Mapping[str, Loader], sources: Sequence[RankInput], wanted: DeepRanks
) -> tuple[list[RankInput], list[Diagnostic]]:
    """The ranks of a job as they are to be read, with those that are not read in depth as ``coarse``, and what to tell
    of that. Ranks of which there are no sums are read in depth, unless others were asked for by number. Raises
    `RankError`."""
    usable = [source for source in sources if not source.problem and not source.coarse]
    small = len(usable) <= MOST_RANKS and sum(source.bytes for source in usable) <= MOST_BYTES
    if wanted.everything or (wanted == BY_SIZE and small):
        return list(sources), []
    if wanted.ranks:
        return _asked(sources, usable, wanted.ranks)
    sums = {source: steps for source in usable if (steps := _sums(loaders, source)) is not None}
    count = wanted.count or CHOSEN
    roles = sorted({source.role for source in sums})
    orders = [list(telling({one: sums[one] for one in sums if one.role == role})) for role in roles]
    chosen = {source for order in orders for source in order[:count]}
    further = [source for order in orders for source in order[count : count + NEXT]]
    return _read(sources, [source for source in sums if source not in chosen], further)


@dataclass(frozen=True)
class StepSums:
    """The parts of the middle step of a rank in ns, and its stage of the pipeline."""

    stage: int
    computing_ns: float
    uncovered_ns: float
    idle_ns: float

    @property
    def wall_ns(self) -> float:
        return self.computing_ns + self.uncovered_ns + self.idle_ns


def telling(sums: Mapping[RankInput, StepSums]) -> Iterator[RankInput]:
    """The ranks of one job, those that tell most of it first; each once."""
    stages: dict[int, list[RankInput]] = {}
    for source in sorted(sums, key=lambda source: source.rank):
        stages.setdefault(sums[source].stage, []).append(source)
    middle = {stage: median(sums[source].wall_ns for source in ranks) for stage, ranks in stages.items()}
    orders: list[Callable[[StepSums], float]] = [
        lambda own: own.uncovered_ns,
        lambda own: -own.wall_ns,
        lambda own: -own.computing_ns,
        lambda own: -own.idle_ns,
        lambda own: abs(own.wall_ns - middle[own.stage]),
        lambda own: own.wall_ns,
    ]
    queues = [
        iter(sorted(stages[stage], key=lambda source, order=order: order(sums[source])))  # type: ignore[misc]
        for order in orders
        for stage in sorted(stages)
    ]
    told: set[RankInput] = set()
    while len(told) < len(sums):
        for queue in queues:
            for source in queue:
                if source not in told:
                    told.add(source)
                    yield source
                    break


def _sums(loaders: Mapping[str, Loader], source: RankInput) -> StepSums | None:
    """The sums of the steps of a rank; ``None`` where there are none that can be used."""
    if not source.has_sums:
        return None
    try:
        profile = loaders[source.loader].load(replace(source, coarse=True))
    except InputError:
        return None
    table = profile.tables.get(STEP_TRACE.name)
    if table is None or (steps := table.frame[_PARTS].dropna()).empty:
        return None
    stage = Layout(profile.parallel, profile.world_size).stage(source.rank)
    return StepSums(stage or 0, *(float(part) for part in steps.median()))


def _asked(
    sources: Sequence[RankInput], usable: Sequence[RankInput], ranks: Sequence[int]
) -> tuple[list[RankInput], list[Diagnostic]]:
    if absent := sorted(set(ranks) - {source.rank for source in usable}):
        raise RankError(f"--deep: no profile of rank {', '.join(map(str, absent))} can be read in depth")
    others = [source for source in usable if source.rank not in ranks]
    nothing = [source for source in others if not source.has_sums]
    kept, told = _read([source for source in sources if source not in nothing], [one for one in others if one.has_sums])
    if nothing:
        told.append(_note(nothing[0], "deep.left_out", ranks=_numbers(nothing)))
    return kept, told


def _read(
    sources: Sequence[RankInput], coarse: Sequence[RankInput], further: Sequence[RankInput] = ()
) -> tuple[list[RankInput], list[Diagnostic]]:
    """The sources, some of them ``coarse``, and what is told of that."""
    if not coarse:
        return list(sources), []
    sums = set(coarse)
    read = [replace(source, coarse=True, bytes=0) if source in sums else source for source in sources]
    deep = [source for source in read if not source.coarse and not source.problem]
    told = [_note(coarse[0], "deep.chosen", ranks=_numbers(deep), count=len(deep), total=len(deep) + len(sums))]
    if further:
        told.append(_note(coarse[0], "deep.next", ranks=_numbers(further)))
    return read, told


def _numbers(sources: Sequence[RankInput]) -> str:
    return ", ".join(f"{source.role} {source.rank}".strip() for source in sources)


def _note(of: RankInput, key: str, **about: str | int) -> Diagnostic:
    return Diagnostic(severity="info", source=of.root.absolute().name, message=message(key, **about))
