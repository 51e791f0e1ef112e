"""Rooflines by part of the recording: what bounds an operator differs between prefill and decode, and between roles."""

from __future__ import annotations

from advisor_core.api.advisors import Advisor, Observations, Params, advisor
from advisor_core.api.facts import HOST_EVENTS, Facts, context, launches, parts, pipes
from advisors.layers.layers import layers
from advisors.layers.places import PLACES
from advisors.phases import PHASE, phases_of
from advisors.pipeline_bound.roofline import COLUMNS, OPERATOR, observed
from advisors.roofline.bounds import roofline as bounds
from advisors.roofline.work import kernel_work
from advisors.step_kernels import step_kernels


@advisor(
    "pipeline_bound.roofline_by_phase",
    needs=(step_kernels, kernel_work),
    wants=(bounds, pipes, launches, HOST_EVENTS, layers, parts, context),
    params=("bandwidth",),
    about=(OPERATOR, PHASE),
    columns=COLUMNS,
    evidence=PLACES,
)
def roofline_by_phase(facts: Facts, params: Params) -> Observations:
    """Operators by type and part of the recording: how near they come to what the chip can do. A product that computes
    new sequences is bound by its arithmetic, one of next tokens by the bytes of its weight: together they tell neither.
    """
    kernels = facts[step_kernels]
    if facts.get(pipes) is None:
        kernels.require_shapes()
    return observed(facts, params, phases_of(facts, kernels.frame))


ADVISORS: tuple[Advisor, ...] = (roofline_by_phase,)
