"""What a cause of lost time is, and the ways in which causes change a job."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, fields, replace

from ..described import FROM_FILES
from ..loops.reinforcement import Reinforcement
from ..loops.serving import Serving
from ..loops.training import Training
from ..models.model import Implementation
from ..setup import RankSetup, Setup


@dataclass(frozen=True, slots=True)
class Cause(ABC):
    """One cause. ``dose``: the share of its strength that the job has, more than 0 and at most 1; a cause that is
    either there or not (``divisible`` is false) has no other dose than 1."""

    __pydantic_config__ = FROM_FILES
    dose: float = field(default=1.0, kw_only=True)

    def __post_init__(self) -> None:
        if not 0 < self.dose <= 1:
            raise ValueError("a dose is more than 0 and at most 1")
        if self.dose != 1 and not self.divisible:
            raise ValueError(f"{self.name} is either there or not: it has no dose but 1")

    @property
    @abstractmethod
    def name(self) -> str:
        """The name by which a job asks for it."""

    @property
    @abstractmethod
    def cure(self) -> str:
        """The change that removes the cause."""

    @abstractmethod
    def afflict(self, setup: Setup) -> Setup:
        """The same job with this cause. Raises :class:`ValueError` for a job that cannot have it."""

    def remedy(self, setup: Setup) -> Setup:
        """The job as the cure leaves it: without the cause, but with what stays of it."""
        return setup

    @property
    def where(self) -> tuple[int, ...]:
        """The ranks that have it, empty for all."""
        return ()

    @property
    def involved(self) -> tuple[int, ...]:
        """The ranks that it names, which the job must have."""
        return self.where

    @property
    def risk(self) -> bool:
        """Whether it must be found even where it costs no time: it makes the job fail sooner or later."""
        return False

    @property
    def divisible(self) -> bool:
        """Whether a job can have a part of it."""
        return False

    def is_called(self, called: str) -> bool:
        """Whether ``called`` means this cause: its name, or ``name@rank`` for that on one rank."""
        name, _, rank = called.partition("@")
        return name == self.name and (not rank or rank in map(str, self.where))

    def part(self, healthy: int, ill: int) -> int:
        """The size that the dose gives, between that of a healthy job and that of the whole cause."""
        return ill if self.dose == 1 else round(healthy + self.dose * (ill - healthy))

    def factor(self, ill: float, healthy: float = 1.0) -> float:
        """The same of a factor or a share."""
        return ill if self.dose == 1 else healthy + self.dose * (ill - healthy)

    def rate(self, healthy: float, ill: float) -> float:
        """The same of a rate, such as a bandwidth or a clock: the dose is a share of the time that is lost."""
        return ill if self.dose == 1 else 1 / (1 / healthy + self.dose * (1 / ill - 1 / healthy))


class CauseOnRanks(Cause):
    """A cause that is on some ranks: its field ``ranks``, empty for all."""

    __slots__ = ()
    ranks: tuple[int, ...]

    @property
    def where(self) -> tuple[int, ...]:
        return self.ranks

    def before(self, setup: Setup) -> RankSetup:
        """A rank as it is without the cause."""
        return setup.ranks[self.ranks[0] if self.ranks else 0]


def change_host(setup: Setup, **changes: int) -> Setup:
    """The job with other costs of its host."""
    return replace(setup, host=replace(setup.host, **changes))


def change_work(setup: Setup, **changes: object) -> Setup:
    """The job with another loop. Raises :class:`ValueError` for one that does not have what changes."""
    kind = type(setup.training)
    if missing := changes.keys() - {field.name for field in fields(kind)}:
        raise ValueError(f"work of the kind {kind.__name__} has no {', '.join(sorted(missing))}")
    return replace(setup, training=replace(setup.training, **changes))  # type: ignore[arg-type]


def change_code(setup: Setup, **changes: object) -> Setup:
    """The job with other code of its model."""
    implementation: Implementation = replace(transformer(setup).implementation, **changes)  # type: ignore[arg-type]
    return change_work(setup, implementation=implementation)


def change_shape(setup: Setup, **changes: int) -> Setup:
    """The job with another size of its model."""
    return change_work(setup, shape=replace(transformer(setup).shape, **changes))


def transformer(setup: Setup) -> Training | Serving | Reinforcement:
    """The work of a job with a transformer. Raises :class:`ValueError` for another one."""
    work = setup.training
    if not isinstance(work, Training | Serving | Reinforcement):
        raise ValueError("a convolutional network or a recorded program does not have what this cause changes")
    return work
