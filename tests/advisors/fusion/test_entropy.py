"""The entropy of logits in the forms that programs have, and other sums of probabilities."""

from __future__ import annotations

from advisor_core.api.testing import Scene, judge_rule
from tests.advisors.fusion.chains import (
    LOG_PROBS,
    LOGITS,
    LOGITSW,
    LOSS,
    SPREAD,
    SPREAD_BACK,
    VOCABULARY,
    Kernel,
    found_in,
    scene_of,
)

NUMBERS, BACK = "1000 FLOAT", (LOGITSW, LOGITSW)

# logsumexp(x) - sum(softmax(x) * x), of logits that are cast.
BY_SOFTMAX: list[Kernel] = [
    ("Cast", 10, (LOGITS,), (LOGITSW,)),
    ("SoftmaxV2", 10, (LOGITSW,), (LOGITSW,)),
    ("ReduceLogSumExp", 10, (LOGITSW,), (NUMBERS,)),
    ("Mul", 10, BACK, (LOGITSW,)),
    ("ReduceSum", 10, (LOGITSW,), (NUMBERS,)),
    ("Sub", 10, (NUMBERS, NUMBERS), (NUMBERS,)),
]

BY_SOFTMAX_BACK: list[Kernel] = [
    ("BroadcastTo", 10, (LOGITSW,), (LOGITSW,)),
    ("Mul", 10, BACK, (LOGITSW,)),
    ("BroadcastTo", 10, (LOGITSW,), (LOGITSW,)),
    ("Mul", 10, BACK, (LOGITSW,)),
    ("Sub", 10, (LOGITSW, "1000,1 FLOAT"), (LOGITSW,)),
    ("Exp", 10, (LOGITSW,), (LOGITSW,)),
    ("Mul", 10, ("1000,1 FLOAT", LOGITSW), (LOGITSW,)),
    ("Add", 10, BACK, (LOGITSW,)),
    ("SoftmaxGrad", 10, BACK, (LOGITSW,)),
    ("Add", 10, BACK, (LOGITSW,)),
    ("Cast", 10, (LOGITSW,), (LOGITS,)),
]

# The largest logit, the logarithm of the sum, and less what the mean of the logits is.
LAST: list[Kernel] = [
    ("Log", 5, (LOSS,), (LOSS,)),
    ("Add", 5, (LOSS, LOSS), (LOSS,)),
    ("Sub", 5, (LOSS, LOSS), (LOSS,)),
]


def test_both_forms_and_what_autograd_runs_for_them() -> None:
    assert found_in(scene_of(SPREAD, SPREAD_BACK)) == [("entropy", False, 5), ("entropy", True, 5)]
    assert found_in(scene_of(BY_SOFTMAX, BY_SOFTMAX_BACK)) == [("entropy", False, 6), ("entropy", True, 11)]


def test_a_shared_log_softmax_belongs_to_the_log_probabilities() -> None:
    assert found_in(scene_of([*LOG_PROBS, *SPREAD[1:]])) == [("log_probs", False, 2), ("entropy", False, 4)]


def test_other_sums_of_probabilities_are_no_entropy() -> None:
    """The loss of a distillation multiplies by the log-softmax of another model, its divergence by a difference."""
    assert found_in(scene_of([BY_SOFTMAX[1], SPREAD[0], *SPREAD[2:]])) == []
    assert found_in(scene_of([SPREAD[0], *SPREAD[:2], ("Sub", 10, BACK, (LOGITSW,)), *SPREAD[2:]])) == []
    assert found_in(scene_of([*BY_SOFTMAX[:2], *BY_SOFTMAX[3:5]])) == [], "an expectation"


def test_over_a_divided_vocabulary_it_reaches_across_collectives() -> None:
    """Its softmax is that of a loss over a divided vocabulary, which multiplies it by nothing."""
    scene, at = Scene().step(1, -10, 1020), 0.0
    for part in (VOCABULARY[0], [VOCABULARY[1][0], *VOCABULARY[1][2:]], [VOCABULARY[2][2], *SPREAD[2:4]], LAST):
        for type_, duration, reads, writes in part:
            scene.tensors(at, duration, type_, reads, writes)
            at += duration
        scene.collective(at, 10)
        at += 10
    assert found_in(scene) == [("vocab_parallel_entropy", False, 11)]
    assert judge_rule("NS042", scene.store()).first.observation["pattern"] == "vocab_parallel_entropy"
