"""What the host itself brings, registered by the same hooks as any plugin's."""

from __future__ import annotations

from advisor_core.facts.spec import Fact
from advisor_core.hookspecs import hookimpl
from advisor_core.loaders.profile import Loader
from advisor_core.registry import Registry


@hookimpl
def advisor_register_loaders(registry: Registry[Loader]) -> None:
    from advisor_core.loaders.ascend_pytorch import AscendPytorchLoader
    from advisor_core.loaders.msprof import MsprofLoader

    registry.add(AscendPytorchLoader())
    registry.add(MsprofLoader())


@hookimpl
def advisor_register_facts(registry: Registry[Fact]) -> None:
    from advisor_core.facts import (
        bookings,
        chip,
        collective_calls,
        collective_state,
        context,
        host_activity,
        host_calls,
        launches,
        ledger,
        memory,
        pipes,
        rank_summary,
        stages,
        steps,
        timeline,
        work,
    )

    registry.add(
        work.work,
        steps.steps,
        timeline.timeline,
        launches.launches,
        host_activity.host_activity,
        host_calls.late_gaps,
        host_calls.sync_calls,
        collective_state.collective_state,
        collective_calls.collective_calls,
        bookings.bookings,
        ledger.ledger,
        rank_summary.rank_summary,
        chip.chip,
        pipes.pipes,
        context.context,
        stages.stages,
        stages.stage_ledger,
        memory.memory_capacity,
        memory.memory_curve,
        memory.memory_steps,
        memory.memory_peak,
    )
