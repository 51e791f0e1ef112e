"""What goes between ranks."""

from __future__ import annotations

from typing import Final

from advisor_core.sample.models.recorded import COMMUNICATION
from tests.programs.recording.calls import Call
from tests.programs.recording.tasks import Task
from tests.programs.recording.views import operand_of

_COLLECTIVES: Final = {
    "_c10d_functional::all_reduce": "allReduce",
    "_c10d_functional::all_gather_into_tensor": "allGather",
    "_c10d_functional::reduce_scatter_tensor": "reduceScatter",
    "c10d::allreduce_": "allReduce",
}
"""The collectives by the operator that asks for them."""


def communication(call: Call) -> list[Task] | None:
    """The transfer that an operator asks for; ``None`` for another operator. A tensor is reduced in a copy of it,
    unless that is asked for in place."""
    kind = _COLLECTIVES.get(call.name)
    if kind is None:
        return None
    (source,), (result,) = (tuple(map(operand_of, several)) for several in (call.reads[:1], call.writes[:1]))
    mark = Task(f"{COMMUNICATION}{kind}", "", (result if kind == "allReduce" else source,), (result,))
    copied = call.name == "_c10d_functional::all_reduce"
    return [*([Task("TensorMove", "aclnnInplaceCopy", (source,), (result,))] if copied else []), mark]
