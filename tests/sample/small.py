"""Jobs of the catalogue cut down: what happens in one of their steps, a few times."""

from __future__ import annotations

from dataclasses import replace

from advisor_core.sample.loops.reinforcement import Reinforcement
from advisor_core.sample.loops.training import Training
from advisor_core.sample.scenarios import SCENARIOS, Scenario

STEPS, MICRO_BATCHES, TOKENS = 2, 4, 12


def small(name: str, tokens: int = TOKENS) -> Scenario:
    """The scenario of this name with two steps of a few micro-batches, or with short responses."""
    scenario = SCENARIOS[name]
    loop = scenario.job.training
    if isinstance(loop, Training):
        loop = replace(loop, steps=STEPS, micro_batches=min(loop.micro_batches, MICRO_BATCHES))
    elif isinstance(loop, Reinforcement):
        loop = replace(loop, steps=STEPS, response=min(loop.response, tokens))
    return replace(scenario, job=replace(scenario.job, training=loop))
