"""A job to simulate, and the causes that it suffers from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from advisor_core.text.base import Text

from .causes import Cause
from .export.generation import Headers
from .setup import Setup, Work


@dataclass(frozen=True, slots=True)
class Scenario:
    """The healthy ``job``, and the ``causes`` that it suffers from. ``headers``: generation of the export."""

    name: str
    description: Text
    headers: Headers
    job: Setup
    causes: tuple[Cause, ...] = ()
    first_device: int = 0

    @property
    def setup(self) -> Setup:
        """The job with all its causes. Raises :class:`ValueError` where it cannot have one of them."""
        setup = self.job
        for cause in self.causes:
            setup = cause.afflict(setup)
        return setup

    @property
    def problems(self) -> tuple[str, ...]:
        """The names of the causes."""
        return tuple(cause.name for cause in self.causes)

    @property
    def training(self) -> Work:
        """The model and loop of the job, with all causes."""
        return self.setup.training

    @property
    def ranks(self) -> int:
        """Number of ranks."""
        return len(self.job.ranks)

    @property
    def steps(self) -> int:
        """Number of profiled steps."""
        return self.job.training.steps

    def cured(self, *cures: Cause) -> Scenario:
        """The same job without some of its causes. Raises :class:`ValueError` if it does not have one of them."""
        job = self.job
        for cause in cures:
            if cause not in self.causes:
                raise ValueError(f"scenario {self.name!r} does not have the cause {cause.name!r}")
            job = cause.remedy(job)
        return replace(self, job=job, causes=tuple(other for other in self.causes if other not in cures))

    def without(self, called: Sequence[str]) -> Scenario:
        """The same job without the causes of these names; ``name@rank`` is that on one rank. Raises
        :class:`ValueError` for one that the job does not have."""
        for name in called:
            if not any(cause.is_called(name) for cause in self.causes):
                known = ", ".join(dict.fromkeys(self.problems)) or "none"
                raise ValueError(f"{self.name!r} has no cause {name!r}; it has: {known}")
        return self.cured(*(cause for cause in self.causes if any(cause.is_called(name) for name in called)))
