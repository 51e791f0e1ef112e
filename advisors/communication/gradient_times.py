"""When the data of transfers of gradients is ready: as PyTorch marks each gradient that is done.

Around what stores or adds up a gradient PyTorch puts a mark (``torch::autograd::AccumulateGrad``), one for each weight
of a backward pass, with the shape of the gradient where shapes are recorded. Its data is there when the kernels that
were handed over up to the end of the mark are done. Which gradients a transfer carries is not recorded; transfers in
the order in which their data is ready carry gradients in the order of these. So a transfer waits for as many bytes of
gradients as it and those before it move. The backward pass begins with the loss and the output layer, which make few
gradients for their time; the table of an embedding is ready last.

Source: torch/csrc/autograd/functions/accumulate_grad.h and torch/csrc/autograd/engine.cpp of PyTorch: a weight that is
used several times is accumulated once, when all that contribute to it are done.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pandas as pd

from advisor_core.api.facts import HOST_EVENTS, Facts, elements, launches, shapes_of, timeline, work
from advisors.communication.calls import reduces
from advisors.optimizer_marks import gradient_marks

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats: TypeAlias = "npt.NDArray[np.float64]"
    Ints: TypeAlias = "npt.NDArray[np.int64]"

BYTES_OF_ELEMENT = (0.9, 4.5)
"""What is moved for each element of a gradient: 1 byte (FP8) to 4 (FP32), with room for padding of buckets. Other
transfers are not those of these gradients."""

LEFT = 0.01
"""Share of its bytes that a transfer does not wait for: padding, and sizes that are told by the bytes on links. Our
choice."""


def gradients_ready(facts: Facts) -> pd.DataFrame | None:
    """``ready_ns``, when each gradient is there, device time, and its ``elements``, in order; ``None`` where marks,
    their shapes or launches are not recorded."""
    if launches not in facts or HOST_EVENTS not in facts:
        return None
    marks, device, launched = gradient_marks(facts), facts[work], facts[launches]
    if marks.empty:
        return None
    sizes = [elements(shapes[0]) if (shapes := shapes_of(str(text))) else 0 for text in marks["input_shapes"]]
    done = (marks["start_ns"] + marks["duration_ns"]).to_numpy() - launched.skew_ns
    computes = ~device["communication"].to_numpy() & launched.known().to_numpy()
    entered, end = launched.frame["entered_ns"].to_numpy()[computes], device["end_ns"].to_numpy()[computes]
    order = np.argsort(entered, kind="stable")
    count = np.searchsorted(entered[order], done, side="right")
    known = (count > 0) & (np.array(sizes) > 0)
    ready = np.maximum.accumulate(end[order])[np.maximum(count - 1, 0)] if len(order) else done
    return pd.DataFrame({"ready_ns": ready[known], "elements": np.array(sizes, dtype=np.int64)[known]})


def leads_ns(
    facts: Facts, transfers: pd.DataFrame, found: pd.DataFrame, began: Ints, told: npt.NDArray[np.bool_]
) -> Floats:
    """Of each transfer the computing between the moment when its data is ready and the begin of its chain, ns; infinite
    where that is not known, as `Overlapping` has it.

    ``transfers``: in order of time, with ``operation``, the ``bytes`` of its message and ``chain``, its row in
    ``found`` (`advisors.transfers.chains`). ``began``: when the computing begins that makes the data of each chain, and
    whether that is ``told`` for sure to be the backward pass of the last micro-batch."""
    leads = np.full(len(transfers), np.inf)
    gradients = gradients_ready(facts)
    if gradients is None:
        return leads
    computing, starts = facts[timeline].computing, found["start_ns"].to_numpy()
    ready, size = gradients["ready_ns"].to_numpy(), gradients["elements"].to_numpy()
    moved, sums_up = transfers["bytes"].to_numpy(dtype=np.float64), reduces(transfers["operation"]).to_numpy()
    chain = transfers["chain"].to_numpy()
    for number in np.flatnonzero(told).tolist():
        own, made = np.flatnonzero(chain == number), (ready > began[number]) & (ready <= starts[number])
        if not len(own) or not sums_up[own].all():
            continue
        moment = moments(ready[made], size[made], moved[own])
        if moment is not None:
            leads[own] = computing.measure(starts[[number]]) - computing.measure(moment)
    return leads


def moments(ready_ns: Ints, elements: Ints, moved: Floats) -> Ints | None:
    """When the data of each of some transfers is ready that move the gradients of a backward pass one after the other.
    ``ready_ns`` and ``elements``: of the gradients; ``moved``: bytes of the transfers. ``None`` where a size is not
    known, or they do not move these gradients."""
    per_element = float(moved.sum()) / max(1, int(elements.sum()))
    least, most = BYTES_OF_ELEMENT
    if not (moved > 0).all() or not least <= per_element <= most:
        return None
    order = np.argsort(ready_ns, kind="stable")
    there = np.cumsum(elements[order]) / elements.sum()
    wanted = np.minimum((np.cumsum(moved) - LEFT * moved) / moved.sum(), 1.0)
    found: Ints = ready_ns[order][np.searchsorted(there, wanted)]
    return found
