"""Everything the simulation of a job needs to know: what it runs, on which ranks, hosts, chips and links."""

from __future__ import annotations

from dataclasses import dataclass, replace

from .described import FROM_FILES
from .layout import Layout
from .loops.recorded import RecordedServing, RecordedTraining
from .loops.recorded_reinforcement import RecordedReinforcement
from .loops.reinforcement import Reinforcement
from .loops.serving import Serving
from .loops.training import Training
from .loops.vision import VisionTraining
from .machine.allocator import WHOLE_DEVICE, DeviceMemory
from .machine.chip import ASCEND_910B, Chip
from .machine.context import TUNED_HOST, HostCosts
from .machine.links import HCCS, Link
from .machine.physics import IDEAL, Physics

Recorded = RecordedTraining | RecordedServing | RecordedReinforcement
"""The work of a job that runs a recorded program."""

Work = Training | Serving | Reinforcement | VisionTraining | Recorded
"""The work of a job on its devices."""


@dataclass(frozen=True, slots=True)
class RankSetup:
    """The settings that may differ from rank to rank.

    ``loading_ns``: what the data loader needs for a batch; ``host_factor``: how much slower than `Setup.host` its host
    is; ``load``: its share of samples, 1 is that of the others; ``mhz``: the clock of its chip; ``longest``: its
    longest responses as a multiple of a typical one; ``falls_after_ns``: when in the profile its clock falls to
    ``falls_to_mhz``, 0 for never.
    """

    loading_ns: int = 900_000
    host_factor: float = 1.0
    load: float = 1.0
    mhz: int = ASCEND_910B.mhz
    longest: float = 1.0
    falls_after_ns: int = 0
    falls_to_mhz: int = 0


@dataclass(frozen=True, slots=True)
class Dispatch:
    """The way from operators to CANN: through the task queue or on the thread that calls them, whether the thread
    behind the queue takes care of their workspace as well (TASK_QUEUE_ENABLE 1, 0 and 2), and whether every call waits
    for its task (ASCEND_LAUNCH_BLOCKING)."""

    __pydantic_config__ = FROM_FILES
    task_queue: bool = True
    blocking: bool = False
    queued_workspace: bool = False


QUEUED = Dispatch()
ONE_RANK = (RankSetup(),)


@dataclass(frozen=True, slots=True)
class Setup:
    """A job. ``slow_pairs``: links between two ranks that are slower than the others by a factor; ``variables``:
    environment variables that are set; ``gc_threshold_ms``: the profiler records garbage collections at least this
    long, ``None`` for none; ``layout``: how the ranks are arranged, ``None`` for data parallelism alone; ``chip``: that
    of all ranks, but for their clocks."""

    training: Work
    host: HostCosts = TUNED_HOST
    ranks: tuple[RankSetup, ...] = ONE_RANK
    dispatch: Dispatch = QUEUED
    link: Link = HCCS
    slow_pairs: tuple[tuple[int, int, float], ...] = ()
    variables: tuple[tuple[str, str], ...] = ()
    gc_threshold_ms: float | None = None
    layout: Layout | None = None
    memory: DeviceMemory = WHOLE_DEVICE
    chip: Chip = ASCEND_910B
    physics: Physics = IDEAL

    @property
    def arrangement(self) -> Layout:
        """The layout of the job. Raises :class:`ValueError` if it is not one of as many ranks as the job has."""
        layout = Layout(data=len(self.ranks)) if self.layout is None else self.layout
        if layout.ranks != len(self.ranks):
            raise ValueError(f"a layout of {layout.ranks} ranks for a job of {len(self.ranks)}")
        return layout

    def with_ranks(self, chosen: tuple[int, ...], **changes: float) -> Setup:
        """The same job with some ranks changed; no rank chosen means all."""
        ranks = tuple(
            replace(rank, **changes) if not chosen or number in chosen else rank  # type: ignore[arg-type]
            for number, rank in enumerate(self.ranks)
        )
        return replace(self, ranks=ranks)

    def training_of(self, rank: int) -> Work:
        """The work of one rank: its share of samples. Raises :class:`ValueError` where it cannot have more or fewer."""
        load = self.ranks[rank].load
        if load == 1.0:
            return self.training
        if isinstance(self.training, Recorded):
            raise ValueError("a recorded program has the batch that it was recorded with")
        batch = max(1, round(self.training.shape.batch * load))
        return replace(self.training, shape=replace(self.training.shape, batch=batch))  # type: ignore[arg-type]
