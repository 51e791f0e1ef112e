"""Register the facts of the host, by the same hook as any plugin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor_core.plugins.hookspecs import hookimpl

if TYPE_CHECKING:
    from advisor_core.contracts.facts import Fact
    from advisor_core.contracts.registry import Registry


@hookimpl
def advisor_register_facts(registry: Registry[Fact[object]]) -> None:
    from advisor_core.facts import context, memory
    from advisor_core.facts.communication import calls as collective_calls
    from advisor_core.facts.communication import links
    from advisor_core.facts.communication import state as collective_state
    from advisor_core.facts.device import chip, peaks, pipes, work
    from advisor_core.facts.host import activity as host_activity
    from advisor_core.facts.host import calls as host_calls
    from advisor_core.facts.host import full_queues, host_steps, launches, software
    from advisor_core.facts.host import pauses as host_pauses
    from advisor_core.facts.ledger import bookings, settled
    from advisor_core.facts.ledger import totals as ledger
    from advisor_core.facts.replay import contention, critical_path, explained, rank_graph, replay
    from advisor_core.facts.steps import (
        backlog,
        judged_parts,
        kernel_list,
        marks,
        parts,
        phases,
        rank_summary,
        recorded_steps,
        stage_passes,
        start_up,
        steps,
        timeline,
        warm_up,
    )

    registry.add(
        work.work,
        kernel_list.kernel_list,
        start_up.start_up,
        marks.step_marks,
        backlog.backlog,
        recorded_steps.recorded_steps,
        warm_up.warm_up,
        steps.steps,
        timeline.timeline,
        launches.launches,
        full_queues.full_queues,
        host_activity.host_activity,
        host_calls.late_gaps,
        host_calls.sync_calls,
        host_pauses.host_pauses,
        host_steps.host_steps,
        software.software,
        collective_state.collective_state,
        collective_calls.recorded_calls,
        collective_calls.collective_calls,
        links.link_speeds,
        bookings.recorded_bookings,
        settled.bookings,
        ledger.ledger,
        rank_graph.rank_graph,
        replay.replay,
        explained.explained,
        contention.contention,
        critical_path.critical_path,
        rank_summary.rank_summary,
        chip.chip,
        peaks.peaks,
        pipes.pipes,
        context.context,
        stage_passes.passes,
        phases.phases,
        phases.phase_ledger,
        parts.parts,
        parts.part_ledger,
        judged_parts.judged_parts,
        memory.memory_capacity,
        memory.memory_curve,
        memory.memory_steps,
        memory.memory_peak,
    )
