"""CO019: collectives of BatchNorm layers that share their statistics."""

from __future__ import annotations

from advisor_core.api.testing import Scene, judge_rule


def layers(*, shared: bool, covered: bool = False) -> Scene:
    """Eight layers: a kernel of 100 us, then an AllGather of 30 us that was launched in the pass of the layer."""
    scene = Scene()
    for number in range(8):
        now = 150.0 * number
        scene.kernel(now, 100, "BNTrainingReduce")
        if shared:
            scene.event("cpu_op", "SyncBatchNorm", now + 80, 20)
        planes = [(now + 105, now + 135, None)]
        scene.collective(now + 105, 30, planes, operation="allGather", size=8192, launched=now + 90)
        if covered:
            scene.kernel(now + 100, 40, stream=3)
    return scene


def test_collectives_of_such_layers_are_summed_up() -> None:
    found = judge_rule("CO019", layers(shared=True).store())
    seen = found.first.observation
    assert found.state == "fail" and found.first.severity == "high"
    assert (seen["norm_passes"], seen["collectives"], seen["median_bytes"]) == (8, 8, 8192)
    assert seen["uncovered_ns"] == 8 * 30_000
    assert [str(item.title.en) for item in found.evidence()][-1] == "the longest passes of SyncBatchNorm on the host"


def test_beside_computing_they_cost_nothing() -> None:
    assert judge_rule("CO019", layers(shared=True, covered=True).store()).state == "pass"


def test_other_collectives_are_none_of_them() -> None:
    assert judge_rule("CO019", layers(shared=False).store()).state == "not_applicable"
    scene = layers(shared=True)
    for row in scene.rows["host_events"]:
        if row["name"] == "SyncBatchNorm":
            row["start_us"] += 25  # the launches lie before the passes
    assert judge_rule("CO019", scene.store()).state == "pass"
