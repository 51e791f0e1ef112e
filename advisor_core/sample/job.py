"""Runs the ranks of a scenario against each other and returns what each of them recorded.

    main / autograd thread -> task queue -> CANN thread -> stream -> cores or links

The framework threads only describe work. It passes a bounded queue to a second thread, which calls
CANN; CANN puts tasks on streams, which run them in order. A device therefore idles when the first
part is slower than the last one, or when a thread waits for the device before it goes on.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from .loops.communicator import Place
from .loops.pipeline import PipelineLoop
from .loops.recorded import RecordedLoop, RecordedServing, RecordedTraining
from .loops.reinforcement import Reinforcement, ReinforcementLoop
from .loops.serving import ServingLoop
from .loops.training import Training, TrainingLoop
from .loops.vision import VisionLoop, VisionTraining
from .machine.allocator import Allocator
from .machine.cann import CannThread
from .machine.chip import Costs
from .machine.context import RankContext
from .machine.des import Process, Simulator
from .machine.device import Device
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
    with _without_collection():
        return _simulated(scenario, seed)


def _simulated(scenario: Scenario, seed: int) -> list[Timeline]:
    simulator = Simulator(EPOCH_NS)
    setup = scenario.setup
    key = f"{scenario.name}/{seed}"
    count = len(setup.ranks)
    groups, layout = Groups(setup.link, key, setup.slow_pairs), setup.arrangement
    costs = Costs(setup.chip)
    timelines = []
    for number, rank in enumerate(setup.ranks):
        loop = _loop(setup, number)
        pid = FIRST_PID + number
        timeline = Timeline(
            rank=number,
            device=scenario.first_device + number,
            world_size=count,
            pid=pid,
            autograd_tid=pid + 4_571,
            acl_tid=pid + 1_198,
            chip=replace(setup.chip, mhz=rank.mhz),
            resident_bytes=setup.memory.held + loop.resident_bytes,
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
        context = RankContext(simulator, timeline, host, key, allocator, setup.physics)
        device = Device(context, costs, groups)
        dispatch = setup.dispatch
        cann = CannThread(
            context,
            device,
            queued=dispatch.task_queue,
            blocking=dispatch.blocking,
            workspace=dispatch.task_queue and dispatch.queued_workspace,
        )
        program = loop.program()
        context.warm_up(first_step(program))
        timeline.reserved_bytes = allocator.reserved
        simulator.spawn(_main(context, cann, program))
        simulator.spawn(cann.run())
        for stream in device.streams:
            simulator.spawn(device.stream(stream))
        timelines.append(timeline)
    simulator.run()
    for timeline in timelines:
        timeline.collectives.sort(key=lambda collective: collective.start)
        if offset := setup.physics.clock_offset_ns(timeline.rank):
            shift(timeline, offset)
    return timelines


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


def _loop(setup: Setup, number: int) -> TrainingLoop | ServingLoop | ReinforcementLoop | VisionLoop | RecordedLoop:
    work, rank = setup.training_of(number), setup.ranks[number]
    place = Place(setup.arrangement, number)
    if isinstance(work, Training):
        loop = PipelineLoop if place.layout.pipeline > 1 else TrainingLoop
        return loop(work, place, rank.loading_ns)
    if isinstance(work, Reinforcement):
        return ReinforcementLoop(work, place, rank.loading_ns, rank.longest)
    if isinstance(work, VisionTraining):
        return VisionLoop(work, place, rank.loading_ns)
    if isinstance(work, RecordedTraining | RecordedServing):
        return RecordedLoop(work, place, rank.loading_ns)
    return ServingLoop(work, rank.loading_ns)


def _main(context: RankContext, cann: CannThread, program: list[Instruction]) -> Process:
    thread = FrameworkThread(context, cann)
    yield from thread.run(program)
    yield from thread.synchronize_device()
    context.close()
