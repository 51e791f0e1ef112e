"""The run of kernels in which the data of transfers is made."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from advisor_core.plugins.host import load_host
from advisors.communication.producing import gradients_begin, run_begins
from advisors.transfers import chains

MODEL, AUTOGRAD = 1, 2
NEVER = np.iinfo(np.int64).min


def tasks(*rows: tuple[int, int, int, bool]) -> tuple[pd.DataFrame, np.ndarray]:
    """Start, end, thread of the caller, whether it communicates."""
    frame = pd.DataFrame(rows, columns=["start_ns", "end_ns", "caller", "communication"])
    return frame.drop(columns="caller"), frame["caller"].to_numpy()


MICRO_BATCHES = (
    (0, 100, MODEL, False), (100, 300, AUTOGRAD, False), (300, 400, MODEL, False), (400, 500, AUTOGRAD, False),
    (500, 600, AUTOGRAD, False), (600, 610, MODEL, False), (610, 700, MODEL, True),
)  # fmt: skip


@pytest.mark.parametrize(
    ("rows", "begins"),
    [
        (MICRO_BATCHES, 400),  # behind the forward pass of the last micro-batch
        (MICRO_BATCHES[1:2] + MICRO_BATCHES[-1:], NEVER),  # how much was computed before it is not known to be the run
        (MICRO_BATCHES[:1] + MICRO_BATCHES[-1:], NEVER),  # nothing of another thread
        ((*MICRO_BATCHES[:-1], (610, 700, -1, True)), NEVER),  # who called the transfer is not known
    ],
)
def test_gradients_are_made_in_the_last_backward_pass(
    rows: tuple[tuple[int, int, int, bool], ...], begins: int
) -> None:
    device, caller = tasks(*rows)
    found = run_begins(device, caller, np.array([610]), np.array([len(rows) - 1]), np.array([0]))
    assert found.tolist() == [begins]


@pytest.mark.parametrize(
    ("names", "begins"),
    [
        (["Conv2D", "Gradients/Default/Conv2D-op3", "Gradients/Default/Conv2D-op4"], 100),  # a graph of MindSpore
        (["MatMul", "SoftmaxGrad", "MatMul"], 100),
        (["ApplyAdamW", "MatMul", "GeluGrad"], 300),  # the update of the step before
        (["MatMul", "MatMul", "Add"], 0),
    ],
)
def test_without_threads_names_tell_where_gradients_begin(names: list[str], begins: int) -> None:
    texts = pd.Series(names, dtype="category")
    classes = pd.Series(["optimizer" if name.startswith("Apply") else "other" for name in names], dtype="category")
    device = pd.DataFrame(
        {"start_ns": [10, 100, 300], "type": texts.astype("category"), "name": texts, "operator_class": classes}
    )
    words = load_host().vocabulary("ascend")
    assert gradients_begin(device, words, np.array([400]), np.array([0])).tolist() == [begins]


def test_a_pass_before_the_transfers_before_is_not_counted() -> None:
    device, caller = tasks(*MICRO_BATCHES)
    assert run_begins(device, caller, np.array([610]), np.array([6]), np.array([605])).tolist() == [NEVER]


def test_the_share_of_the_first_transfer_is_that_of_its_moving() -> None:
    calls = pd.DataFrame(
        {"operation": "allReduce", "step": 0, "start_ns": [0, 10, 40], "end_ns": [10, 40, 100],
         "moving_ns": [10, 30, 60], "transmit_ns": [10, 30, 60], "elapse_ns": [10, 30, 60],
         "uncovered_ns": [10, 30, 60]}
    )  # fmt: skip
    assert chains(calls)[["first", "first_share"]].to_numpy().tolist() == [[0, 0.1]]
    assert chains(calls.iloc[:1])["first_share"].tolist() == [0.5]
