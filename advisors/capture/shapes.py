"""DQ008: shapes that differ from step to step."""

from __future__ import annotations

from collections.abc import Sequence

from advisor_core.api.advisors import Column, Observations, Params, Reference, Rows, advisor
from advisor_core.api.facts import (
    KERNELS,
    PROFILE,
    Facts,
    Unavailable,
    parts,
    steps,
)
from advisors.capture.schedule import schedule_evidence, steps_before
from advisors.measuring import row
from advisors.messages import message
from advisors.shape_changes import compared, computing, parts_of, varying, varying_share


@advisor(
    "capture.shapes",
    needs=(PROFILE, steps, KERNELS),
    wants=(parts,),
    columns=(
        Column(
            "varying_share",
            "float",
            "ratio",
            "of the kernels: their type with these shapes is not in every step",
            zh="shape 变化占比",
        ),
        Column(
            "warm_up_steps",
            "float",
            "count",
            "steps before the first profiled one, unknown if not recorded",
            zh="预热步数",
        ),
    ),
)
def shapes(facts: Facts, params: Params) -> Observations:
    """Whether shapes differ from step to step, and how many steps ran before. Kernels of prefill and of decode are held
    against the steps that run these: both can have the same shapes in all of theirs."""
    windows, kernels = facts[steps], facts[KERNELS]
    if len(windows) < 2:
        raise Unavailable(message("capture.one_step"), message("capture.few_steps.collect"), ("steps",))
    own = computing(kernels, windows)
    if not (own["input_shapes"] != "").any():
        raise Unavailable(message("kernels.unshaped"), message("kernels.unshaped.collect"), ("level1",))
    part = parts_of(facts, own)
    changes = varying(own, len(windows), part) & compared(own, part)
    frame = row(varying_share=varying_share(own, len(windows), part), warm_up_steps=steps_before(facts[PROFILE]))

    def evidence(number: int) -> Sequence[Reference]:
        rows = own.index.to_numpy()[changes]
        columns = ("step", "type", "input_shapes", "duration_ns")
        return [*schedule_evidence(facts[PROFILE]), Rows(message("capture.varying"), KERNELS, rows, columns)]

    return Observations(frame, evidence)
