"""NS051: BatchNorm behind a convolution in inference."""

from __future__ import annotations

from advisor_core.api.testing import Scene, judge_rule

IMAGE, WEIGHT, STATISTICS = "8,64,56,56 FLOAT", "64,64,3,3 FLOAT", ["64 FLOAT"] * 4


def network(*, training: bool = False, between: bool = False, convolved: bool = True) -> Scene:
    scene = Scene()
    for number in range(4):
        now = 200.0 * number
        if convolved:
            scene.tensors(now, 100, "Conv2D", [IMAGE, WEIGHT], [IMAGE], core="AI_CORE")
        if between:
            scene.tensors(now + 105, 10, "TransData", [IMAGE], [IMAGE], core="AI_VECTOR_CORE")
        norm = "BNTrainingUpdate" if training else "BNInfer"
        scene.tensors(now + 120, 50, norm, [IMAGE, *STATISTICS], [IMAGE], core="AI_VECTOR_CORE")
    return scene


def test_norms_that_read_a_convolution_are_counted() -> None:
    for between in (False, True):
        found = judge_rule("NS051", network(between=between).store())
        seen = found.first.observation
        assert found.state == "fail" and (seen["norms"], seen["others"]) == (4, 0)
        assert seen["norm_ns"] == 200_000 and "56,56" in str(seen["example"])


def test_norms_behind_something_else_stay() -> None:
    found = judge_rule("NS051", network(convolved=False).store())
    assert found.state == "pass" and found.observed is not None
    assert found.observed.frame["others"].tolist() == [4]


def test_statistics_of_training_cannot_be_folded() -> None:
    assert judge_rule("NS051", network(training=True).store()).state == "not_applicable"
