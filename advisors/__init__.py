"""The built-in advisors, one module or package per bottleneck, registered as a plugin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor_core.api import Registry, hookimpl

if TYPE_CHECKING:
    from advisor_core.api.advisors import Advisor, Drawing
    from advisor_core.api.facts import Fact


@hookimpl
def advisor_register_facts(registry: Registry[Fact[object]]) -> None:
    from advisors import (
        capture_job,
        communication_job,
        memory,
        pipeline_bound_job,
        step_kernels,
    )
    from advisors.call_stacks import paths
    from advisors.computed import work as computed_work
    from advisors.fusion import adapters, chains, clipping, expert_loops, nodes, reads, regions
    from advisors.host_dispatch import dispatch_layers
    from advisors.layers import layers, modules
    from advisors.pipeline_bound import streams
    from advisors.roofline import bounds, products, work

    registry.add(*capture_job.FACTS)
    registry.add(*communication_job.FACTS)
    registry.add(*step_kernels.FACTS)
    registry.add(*nodes.FACTS)
    registry.add(*adapters.FACTS)
    registry.add(*reads.FACTS)
    registry.add(*clipping.FACTS)
    registry.add(*chains.FACTS)
    registry.add(*regions.FACTS)
    registry.add(*expert_loops.FACTS)
    registry.add(*layers.FACTS)
    registry.add(*modules.FACTS)
    registry.add(*products.FACTS)
    registry.add(*work.FACTS)
    registry.add(*bounds.FACTS)
    registry.add(*computed_work.FACTS)
    registry.add(*memory.FACTS)
    registry.add(*pipeline_bound_job.FACTS)
    registry.add(*streams.FACTS)
    registry.add(*dispatch_layers.FACTS)
    registry.add(*paths.FACTS)


@hookimpl
def advisor_register_advisors(registry: Registry[Advisor]) -> None:
    from advisors import (
        capture,
        capture_job,
        communication,
        communication_job,
        host_dispatch,
        memory,
        network_structure,
        pipeline_bound,
        pipeline_bound_job,
        rl,
        shape_affinity,
    )

    registry.add(*capture.ADVISORS)
    registry.add(*capture_job.ADVISORS)
    registry.add(*host_dispatch.ADVISORS)
    registry.add(*communication.ADVISORS)
    registry.add(*communication_job.ADVISORS)
    registry.add(*network_structure.ADVISORS)
    registry.add(*pipeline_bound.ADVISORS)
    registry.add(*pipeline_bound_job.ADVISORS)
    registry.add(*shape_affinity.ADVISORS)
    registry.add(*memory.ADVISORS)
    registry.add(*rl.ADVISORS)


@hookimpl
def advisor_register_drawings(registry: Registry[Drawing]) -> None:
    from advisors.call_stacks import flames
    from advisors.call_stacks import memory as of_blocks
    from advisors.communication import group_overlap, lag
    from advisors.communication import groups as of_groups
    from advisors.counters import operators, preparing, rates
    from advisors.environment import drawings as of_variables
    from advisors.host_dispatch import drawings as of_host
    from advisors.host_dispatch import engine_passes, pass_sizes, stages
    from advisors.layers import attention, collectives, module_views, passes
    from advisors.layers import drawings as of_layers
    from advisors.memory import graphs as of_graphs
    from advisors.pipeline_bound import inside, streams, weight_bytes
    from advisors.roofline import drawings as of_bounds
    from advisors.roofline import first_looks, quantities

    registry.add(*of_layers.DRAWINGS)
    registry.add(*module_views.DRAWINGS)
    registry.add(*collectives.DRAWINGS)
    registry.add(*attention.DRAWINGS)
    registry.add(*passes.DRAWINGS)
    registry.add(*of_bounds.DRAWINGS)
    registry.add(*quantities.DRAWINGS)
    registry.add(*first_looks.DRAWINGS)
    registry.add(*of_host.DRAWINGS)
    registry.add(*stages.DRAWINGS)
    registry.add(*engine_passes.DRAWINGS)
    registry.add(*pass_sizes.DRAWINGS)
    registry.add(*streams.DRAWINGS)
    registry.add(*inside.DRAWINGS)
    registry.add(*weight_bytes.DRAWINGS)
    registry.add(*of_variables.DRAWINGS)
    registry.add(*of_groups.DRAWINGS)
    registry.add(*group_overlap.DRAWINGS)
    registry.add(*lag.DRAWINGS)
    registry.add(*operators.DRAWINGS)
    registry.add(*rates.DRAWINGS)
    registry.add(*preparing.DRAWINGS)
    registry.add(*of_graphs.DRAWINGS)
    registry.add(*flames.DRAWINGS)
    registry.add(*of_blocks.DRAWINGS)
