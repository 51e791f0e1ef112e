"""When gradients are there: by the marks of PyTorch, against a hand-made backward pass."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from advisor_core.api.testing import Scene
from advisor_core.facts.store import FactStore
from advisors.communication.gradient_times import gradients_ready, leads_ns, moments

US = 1000
BEGIN_US = 500


def backward(*shapes: str) -> FactStore:
    """A kernel of 100 us for each gradient; behind its launch PyTorch marks that the gradient is added up."""
    scene = Scene()
    for number, shape in enumerate(shapes):
        scene.kernel(BEGIN_US + 100 * number, 100, launched=100 + 10 * number)
        scene.event("cpu_op", "torch::autograd::AccumulateGrad", 105 + 10 * number, 2, input_shapes=shape)
    return scene.store()


def leads(store: FactStore, *moved: int, operation: str = "allReduce", told: bool = True) -> list[float]:
    begin = (BEGIN_US + 4 * 100) * US
    transfers = pd.DataFrame({"operation": [operation] * len(moved), "bytes": moved, "chain": 0})
    found = leads_ns(store, transfers, pd.DataFrame({"start_ns": [begin]}), np.array([-1]), np.array([told]))
    return [round(one / US) if np.isfinite(one) else -1 for one in found]


def test_a_gradient_is_there_when_what_was_handed_over_before_its_mark_is_done() -> None:
    found = gradients_ready(backward("8,4", "4", "8,8", ""))
    assert found is not None  # without its shape a gradient is left out
    assert found["elements"].tolist() == [32, 4, 64]
    assert found["ready_ns"].diff().tolist()[1:] == [100 * US, 100 * US]
    assert gradients_ready(Scene().kernel(0, 100).store()) is None


def test_a_transfer_waits_for_the_bytes_that_it_and_those_before_it_move() -> None:
    """Half of the bytes are those of the table, which is ready last."""
    store = backward("100", "200", "300", "600")
    assert leads(store, 600, 600, 1200) == [200, 100, 0]
    assert leads(store, 2400) == [0]
    assert leads(store, 200, 400, 600, 1200) == [300, 200, 100, 0]


@pytest.mark.parametrize(
    ("moved", "about"),
    [
        ((600, 600, 12_000), {}),  # more than these gradients have
        ((600, -1, 1200), {}),
        ((600, 600, 1200), {"operation": "alltoallv"}),
        ((600, 600, 1200), {"told": False}),  # they may be those of several micro-batches
    ],
)
def test_of_other_transfers_it_is_not_known(moved: tuple[int, ...], about: dict[str, object]) -> None:
    store = backward("100", "200", "300", "600")
    assert leads(store, *moved, **about) == [-1] * len(moved)  # type: ignore[arg-type]


def test_buckets_of_a_real_job_carry_the_gradients_in_the_order_in_which_they_are_ready() -> None:
    """AlexNet under DistributedDataParallel (docs/sources.md#recorded-alexnet-job), in FP32."""
    elements = np.array(
        [1000, 4096000, 4096, 16777216, 4096, 37748736, 589824, 256, 884736, 256, 663552, 384, 307200, 192, 23232, 64]
    )
    moved = np.array([16369846.0, 67108864.0, 150994944.0, 9866971.0])
    found = moments(np.arange(len(elements)), elements, moved)
    assert found is not None and found[:3].tolist() == [1, 3, 5] and found[3] >= 12


def test_padding_of_buckets_does_not_wait_for_the_next_gradient() -> None:
    ready, elements = np.array([10, 20, 30]), np.array([100, 100, 200])
    assert moments(ready, elements, np.array([201.0, 200.0, 400.0])).tolist() == [10, 20, 30]  # type: ignore[union-attr]
