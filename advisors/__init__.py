"""The advisors: one module per bottleneck, each registered like any third party's."""

from __future__ import annotations

from advisor_core.advisor import Advisor
from advisor_core.facts.spec import Fact
from advisor_core.hookspecs import hookimpl
from advisor_core.registry import Registry


@hookimpl
def advisor_register_facts(registry: Registry[Fact]) -> None:
    from advisors import capture_job, fusion, products, step_kernels

    registry.add(*capture_job.FACTS)
    registry.add(*step_kernels.FACTS)
    registry.add(*fusion.FACTS)
    registry.add(*products.FACTS)


@hookimpl
def advisor_register_advisors(registry: Registry[Advisor]) -> None:
    from advisors import (
        capture,
        capture_job,
        communication,
        communication_job,
        fusion,
        host_dispatch,
        memory,
        network_structure,
        pipeline_bound,
        rl,
        shape_affinity,
    )

    registry.add(*capture.ADVISORS)
    registry.add(*capture_job.ADVISORS)
    registry.add(*host_dispatch.ADVISORS)
    registry.add(*communication.ADVISORS)
    registry.add(*communication_job.ADVISORS)
    registry.add(*network_structure.ADVISORS)
    registry.add(*fusion.ADVISORS)
    registry.add(*pipeline_bound.ADVISORS)
    registry.add(*shape_affinity.ADVISORS)
    registry.add(*rl.ADVISORS)
    registry.add(*memory.ADVISORS)
