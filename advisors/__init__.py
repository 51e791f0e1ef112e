"""The built-in advisors, one module per bottleneck, registered as a plugin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor_core.api import Registry, hookimpl

if TYPE_CHECKING:
    from advisor_core.api.advisors import Advisor
    from advisor_core.api.facts import Fact


@hookimpl
def advisor_register_facts(registry: Registry[Fact[object]]) -> None:
    from advisors import (
        capture_job,
        fewer_kernels,
        fusion,
        memory,
        parallel_job,
        pipeline_bound_job,
        products,
        step_kernels,
        without_waiting,
    )

    registry.add(*capture_job.FACTS)
    registry.add(*parallel_job.FACTS)
    registry.add(*step_kernels.FACTS)
    registry.add(*fusion.FACTS)
    registry.add(*products.FACTS)
    registry.add(*fewer_kernels.FACTS)
    registry.add(*memory.FACTS)
    registry.add(*without_waiting.FACTS)
    registry.add(*pipeline_bound_job.FACTS)


@hookimpl
def advisor_register_advisors(registry: Registry[Advisor]) -> None:
    from advisors import (
        capture,
        capture_job,
        communication,
        communication_job,
        eager_chains,
        fusion,
        host_dispatch,
        memory,
        network_structure,
        operator_classes,
        parallel_job,
        pipeline_bound,
        pipeline_bound_job,
        product_alignment,
        rl,
        shape_affinity,
    )

    registry.add(*capture.ADVISORS)
    registry.add(*capture_job.ADVISORS)
    registry.add(*host_dispatch.ADVISORS)
    registry.add(*communication.ADVISORS)
    registry.add(*communication_job.ADVISORS)
    registry.add(*parallel_job.ADVISORS)
    registry.add(*network_structure.ADVISORS)
    registry.add(*operator_classes.ADVISORS)
    registry.add(*fusion.ADVISORS)
    registry.add(*eager_chains.ADVISORS)
    registry.add(*pipeline_bound.ADVISORS)
    registry.add(*pipeline_bound_job.ADVISORS)
    registry.add(*shape_affinity.ADVISORS)
    registry.add(*product_alignment.ADVISORS)
    registry.add(*memory.ADVISORS)
    registry.add(*rl.ADVISORS)
