"""DQ019: a first step that warms up, and is left out."""

from __future__ import annotations

from collections.abc import Sequence

from advisor_core.api.advisors import Column, Interval, Observations, Params, Reference, advisor
from advisor_core.api.facts import HOST_EVENTS, Facts, NotApplicable, steps, warm_up
from advisors.columns import PROFILED_STEPS
from advisors.measuring import DEVICE_LANE, LARGEST, host_rows, row, share
from advisors.messages import message


@advisor(
    "capture.warm_up",
    needs=(warm_up, steps),
    wants=(HOST_EVENTS,),
    columns=(
        PROFILED_STEPS,
        Column("first_step_ns", "int", "ns", "wall time of the first step", zh="首个 step"),
        Column("usual_ns", "int", "ns", "median of the other steps", zh="常规耗时"),
        Column("first_over_rest", "float", "ratio", "first_step_ns over usual_ns", zh="首个 step 与其余之比"),
        Column("compile_ns", "int", "ns", "of the difference: calls that compile", zh="编译"),
        Column("first_calls_ns", "int", "ns", "of it: other first calls, far longer than later ones", zh="首次调用"),
        Column("wait_ns", "int", "ns", "of it: collectives that take far longer than later ones", zh="等待"),
    ),
)
def first_uses(facts: Facts, params: Params) -> Observations:
    """A first step that compiling and first calls make longer than the others."""
    found = facts[warm_up]
    if found.of_job:
        raise NotApplicable(message("capture.warm_up.of_job"))
    first = found.end_ns - found.start_ns
    frame = row(
        steps=len(facts[steps]),
        first_step_ns=first,
        usual_ns=found.usual_ns,
        first_over_rest=share(first, found.usual_ns),
        compile_ns=found.compile_ns,
        first_calls_ns=found.first_calls_ns,
        wait_ns=found.wait_ns,
    )

    def evidence(number: int) -> Sequence[Reference]:
        window = Interval(message("capture.warm_up"), found.start_ns, found.end_ns, DEVICE_LANE)
        return [window, *host_rows("capture.first_calls", found.calls[:LARGEST])]

    return Observations(frame, evidence)
