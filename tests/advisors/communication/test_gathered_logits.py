"""CO024: logits that all ranks gather for the loss."""

from __future__ import annotations

import pytest

from advisor_core.api.testing import Scene, judge_rule
from advisor_core.facts.replay.changes import Merging

ROWS, PART = 4096, 64_128


def logits(
    *,
    parts: int = 2,
    operation: str = "allGather",
    backward: bool = True,
    loss: str = "LogSoftmaxV2",
    scene: Scene | None = None,
) -> Scene:
    """The end of a forward and the begin of a backward pass: a product writes a part of the vocabulary, the gather
    takes 2,000 us, putting together and cutting out 150 and 50, the kernels of the loss 200 each and, backward, 400."""
    whole = parts * PART
    scene = (Scene() if scene is None else scene).step(1, 0, 10_000)
    hidden, part, all_, wide = (
        f"{ROWS},2048 BF16",
        f"{ROWS},{PART} BF16",
        f"{ROWS},{whole} BF16",
        f"{ROWS},{whole} FLOAT",
    )
    scene.tensors(0, 1_000, "MatMulV3", [hidden, f"{PART},2048 BF16"], [part])
    scene.collective(1_000, 2_000, [(1_000, 3_000, None)], operation=operation, size=ROWS * PART * 2)
    scene.tensors(3_000, 150, "ConcatD", [part] * parts, [all_])
    scene.tensors(3_150, 200, "Cast", [all_], [wide])
    scene.tensors(3_350, 200, loss, [wide], [wide])
    scene.tensors(3_550, 10, "Cast", ["2048 BF16"], ["2048 FLOAT"])
    if backward:
        scene.tensors(3_560, 400, loss.replace("V2", "") + "Grad", [wide, wide], [wide])
        scene.tensors(3_960, 200, "Cast", [wide], [all_])
        scene.tensors(4_160, 50, "Slice", [all_], [part])
    scene.tensors(4_210, 1_000, "MatMulV3", [part, f"{PART},2048 BF16"], [hidden])
    scene.tensors(5_210, 500, "Cast", [all_], [wide])
    return scene


@pytest.mark.parametrize("parts", [2, 4])
def test_the_gather_and_what_every_rank_computes_of_the_whole_can_go(parts: int) -> None:
    """2,000 us of the gather, 200 of joining, and of the loss, 1,000 us, all but one part; what runs behind the next
    product stays."""
    found = judge_rule("CO024", logits(parts=parts).store())
    seen = found.first.observation
    assert (seen["members"], seen["vocabulary"], seen["logit_tokens"], seen["gathers"]) == (
        parts,
        parts * PART,
        ROWS,
        1,
    )
    assert (seen["gather_ns"], seen["join_ns"], seen["loss_ns"]) == (2_000_000, 200_000, 1_000_000)
    exchanged = 3 * 2_000_000 * ROWS * 4 / (ROWS * PART * 2)
    assert found.first.impact_ns == pytest.approx(2_200_000 + 1_000_000 * (1 - 1 / parts) - exchanged)
    assert found.observed is not None and found.observed.cure is not None
    cure = found.observed.cure(0)
    assert isinstance(cure, Merging)
    assert sorted(cure.before_ns - cure.after_ns) == pytest.approx(
        sorted(
            [
                2_000_000 - exchanged,
                150_000,
                50_000,
                *(of * (1 - 1 / parts) for of in (200_000, 200_000, 400_000, 200_000)),
            ]
        )
    )


@pytest.mark.parametrize(
    "scene",
    [
        logits(operation="allReduce"),
        logits(backward=False),
        logits(loss="Gelu"),
    ],
    ids=["a sum", "an engine that samples", "no loss"],
)
def test_other_gathers_are_none_of_logits(scene: Scene) -> None:
    assert judge_rule("CO024", scene.store()).state == "not_applicable"


def test_where_no_shapes_are_recorded_it_is_not_known() -> None:
    scene = Scene().step(1, 0, 5_000).kernel(0, 100)
    gathering = scene.collective(100, 50, [(100, 150, None)], operation="allGather")
    assert judge_rule("CO024", gathering.store()).state == "cannot_answer"


def test_without_a_gather_there_is_nothing_to_say() -> None:
    assert judge_rule("CO024", Scene().step(1, 0, 5_000).kernel(0, 100).store()).state == "not_applicable"
