"""Runs the ranks of a scenario against each other and returns what each of them recorded.

    main / autograd thread -> task queue -> CANN thread -> stream -> cores or links

The framework threads only describe work. It passes a bounded queue to a second thread, which calls
CANN; CANN puts tasks on streams, which run them in order. A device therefore idles when the first
part is slower than the last one, or when a thread waits for the device before it goes on.
"""

from __future__ import annotations

from .cann import CannThread
from .chip import Chip
from .context import RankContext
from .des import Process, Simulator
from .device import Device
from .framework import FrameworkThread
from .group import Group
from .links import Link
from .program import Instruction
from .scenarios import Scenario
from .timeline import COMMUNICATION_STREAM, COMPUTE_STREAM, Timeline
from .training import TrainingLoop

EPOCH_NS = 1_736_408_883_600_000_000
"""When the simulated profile begins."""
FIRST_PID = 418_120


def simulate(scenario: Scenario, seed: int) -> list[Timeline]:
    """Simulate all ranks of a scenario; the same seed gives the same timelines."""
    simulator = Simulator(EPOCH_NS)
    chip = Chip()
    key = f"{scenario.name}/{seed}"
    group = Group(scenario.ranks, Link(), key)
    timelines = []
    for rank, loading_ns in enumerate(scenario.loading_ns):
        loop = TrainingLoop(scenario.training, scenario.ranks, loading_ns)
        pid = FIRST_PID + rank
        timeline = Timeline(
            rank=rank,
            device=scenario.first_device + rank,
            world_size=scenario.ranks,
            pid=pid,
            autograd_tid=pid + 4_571,
            acl_tid=pid + 1_198,
            chip=chip,
            resident_bytes=loop.resident_bytes,
            start=simulator.now,
        )
        context = RankContext(simulator, timeline, scenario.host, key)
        device = Device(context, chip, group)
        cann = CannThread(context, device)
        simulator.spawn(_main(context, cann, loop.program()))
        simulator.spawn(cann.run())
        for stream in (COMPUTE_STREAM, COMMUNICATION_STREAM):
            simulator.spawn(device.stream(stream))
        timelines.append(timeline)
    simulator.run()
    return timelines


def _main(context: RankContext, cann: CannThread, program: list[Instruction]) -> Process:
    thread = FrameworkThread(context, cann)
    yield from thread.run(program)
    yield from thread.synchronize_device()
    context.close()
