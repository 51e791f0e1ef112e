"""Runs the ranks of a scenario against each other and returns what each of them recorded.

    main / autograd thread -> task queue -> CANN thread -> stream -> cores or links

The framework threads only describe work. It passes a bounded queue to a second thread, which calls
CANN; CANN puts tasks on streams, which run them in order. A device therefore idles when the first
part is slower than the last one, or when a thread waits for the device before it goes on.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import accumulate

from .loops.communicator import Place
from .loops.pipeline import PipelineLoop
from .loops.recorded import RecordedLoop, RecordedServing, RecordedServingLoop, RecordedTraining
from .loops.recorded_reinforcement import RecordedReinforcement, RecordedReinforcementLoop
from .loops.reinforcement import Reinforcement, ReinforcementLoop
from .loops.serving import ServingLoop
from .loops.training import Training, TrainingLoop
from .loops.vision import VisionLoop, VisionTraining
from .machine.allocator import Allocator
from .machine.cann import CannThread
from .machine.chip import Costs
from .machine.context import RankContext
from .machine.des import Chain, Process, Simulator
from .machine.device import Device
from .machine.draws import Draws
from .machine.framework import FrameworkThread
from .machine.group import Groups
from .program import Instruction, first_step
from .scenario import Scenario
from .setup import Setup
from .shift import shift
from .timeline import Timeline

EPOCH_NS = 1_736_408_883_600_000_000
"""The time at which the simulated profile begins."""
FIRST_PID = 418_120


def simulate(scenario: Scenario, seed: int) -> list[Timeline]:
    """Simulate all ranks of a scenario; the same seed gives the same timelines."""
    setup = scenario.setup
    with _without_collection():
        timelines, _ = _run(scenario, setup, _programs(setup), Draws(f"{scenario.name}/{seed}"))
    for timeline in timelines:
        timeline.collectives.sort(key=lambda collective: collective.start)
        if offset := setup.physics.clock_offset_ns(timeline.rank):
            shift(timeline, offset)
    return timelines


@dataclass(frozen=True, slots=True)
class Times:
    """Start and end of a simulated job, and the moments at which all devices have done what each step in turn handed
    over: ns since the epoch."""

    start: int
    steps: tuple[int, ...]
    end: int


def times(scenario: Scenario, draws: Iterable[Draws]) -> Iterator[Times]:
    """The times of a scenario with each of these random numbers, in turn. Nothing is recorded: they are those of
    recorded ranks, in a fraction of the time."""
    setup = scenario.setup
    with _without_collection():
        programs = _programs(setup)
    for numbers in draws:
        with _without_collection():
            timelines, devices = _run(scenario, setup, programs, numbers, records=False)
        done: dict[int, int] = {}
        for device in devices:
            for steps in device.done.values():
                for number, at in steps.items():
                    done[number] = max(at, done.get(number, at))
        in_turn = accumulate((at for _, at in sorted(done.items())), max)
        yield Times(min(one.start for one in timelines), tuple(in_turn), max(one.end for one in timelines))


@dataclass(frozen=True, slots=True)
class _Program:
    """The instructions of a rank, and the memory that it holds before."""

    instructions: list[Instruction]
    resident_bytes: int


def _programs(setup: Setup) -> list[_Program]:
    loops = [_loop(setup, number) for number in range(len(setup.ranks))]
    return [_Program(loop.program(), loop.resident_bytes) for loop in loops]


def _run(
    scenario: Scenario, setup: Setup, programs: Sequence[_Program], draws: Draws, *, records: bool = True
) -> tuple[list[Timeline], list[Device]]:
    simulator = Simulator(EPOCH_NS)
    count = len(setup.ranks)
    groups, layout = Groups(setup.link, draws.key, setup.slow_pairs), setup.arrangement
    costs = Costs(setup.chip)
    timelines, devices = [], []
    for number, rank in enumerate(setup.ranks):
        program = programs[number]
        pid = FIRST_PID + number
        timeline = Timeline(
            rank=number,
            device=scenario.first_device + number,
            world_size=count,
            pid=pid,
            autograd_tid=pid + 4_571,
            acl_tid=pid + 1_198,
            chip=replace(setup.chip, mhz=rank.mhz),
            resident_bytes=setup.memory.held + program.resident_bytes,
            start=simulator.now,
            variables=dict(setup.variables),
            gc_threshold_ms=setup.gc_threshold_ms,
            layout=layout,
            clock=[(simulator.now + rank.falls_after_ns, rank.falls_to_mhz)] if rank.falls_to_mhz else [],
        )
        allocator = Allocator(
            timeline.resident_bytes,
            setup.memory.room(count),
            expandable=setup.memory.expandable,
            uncached=setup.host.malloc_bytes,
        )
        host = setup.host.slower(rank.host_factor)
        context = RankContext(simulator, timeline, host, draws, allocator, setup.physics, records=records)
        device = Device(context, costs, groups)
        dispatch = setup.dispatch
        cann = CannThread(
            context,
            device,
            queued=dispatch.task_queue,
            blocking=dispatch.blocking,
            workspace=dispatch.task_queue and dispatch.queued_workspace,
        )
        context.warm_up(first_step(program.instructions))
        timeline.reserved_bytes = allocator.reserved
        simulator.spawn(_main(context, cann, program.instructions))
        simulator.spawn(cann.run())
        for stream in device.streams:
            simulator.spawn(device.stream(stream))
        timelines.append(timeline)
        devices.append(device)
    simulator.run()
    return timelines, devices


@contextmanager
def _without_collection() -> Iterator[None]:
    """Everything that a simulation records stays; looking through it again and again takes longer than recording it."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


_Recorded = RecordedLoop | RecordedServingLoop | RecordedReinforcementLoop
_Loop = TrainingLoop | ServingLoop | ReinforcementLoop | VisionLoop | _Recorded


def _loop(setup: Setup, number: int) -> _Loop:
    work, rank = setup.training_of(number), setup.ranks[number]
    place = Place(setup.arrangement, number)
    if isinstance(work, Training):
        loop = PipelineLoop if place.layout.pipeline > 1 else TrainingLoop
        return loop(work, place, rank.loading_ns)
    if isinstance(work, Reinforcement):
        return ReinforcementLoop(work, place, rank.loading_ns, rank.longest)
    if isinstance(work, VisionTraining):
        return VisionLoop(work, place, rank.loading_ns)
    if isinstance(work, RecordedTraining):
        return RecordedLoop(work, place, rank.loading_ns)
    if isinstance(work, RecordedReinforcement):
        return RecordedReinforcementLoop(work, place, rank.loading_ns, rank.longest)
    if isinstance(work, RecordedServing):
        return RecordedServingLoop(work, rank.loading_ns)
    return ServingLoop(work, rank.loading_ns)


def _main(context: RankContext, cann: CannThread, program: list[Instruction]) -> Process:
    chain = Chain(context.now)
    thread = FrameworkThread(context, cann, chain)
    yield from thread.run(program)
    yield from thread.synchronize_device()
    context.close(chain.at)
