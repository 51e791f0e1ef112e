"""Cases of docs/cases.yaml that name a cause, written down as scenes with the numbers of their threads: the rule that
is given there finds them at its thresholds."""

from __future__ import annotations

import pytest

from advisor_core.api.testing import Scene, judge_rule

MS = 1_000.0


def request(length_ms: float, *, sync_ms: float) -> Scene:
    """Two parts of a request on the device. The host synchronises after the first, for ``sync_ms`` longer than that
    takes, and launches the second only then."""
    half = (length_ms - sync_ms) / 2 * MS
    scene = Scene().step(1, -50, length_ms * MS + 100)
    scene.kernel(0, half, op="aten::mm")
    end = half + sync_ms * MS
    scene.event("runtime", "AscendCL@aclrtSynchronizeStreamWithTimeout", 20, end - 20)
    return scene.kernel(end + 30, half, launched=end + 10, op="aten::mm")


def test_case_20_a_needless_synchronisation_of_15_ms() -> None:
    """The thread gives no length of a request: below 1.5 s the call is named, above it is not worth 1 %."""
    found = judge_rule("HD004", request(1_000, sync_ms=15).store())
    assert found.state == "fail"
    assert found.first.observation["saved_ns"] == pytest.approx(15 * MS * 1_000, rel=0.02)
    assert judge_rule("HD004", request(2_000, sync_ms=15).store()).state == "pass"


def decode(turns: int, *, host_ms: float, kernel_ms: float) -> Scene:
    """Turns of a decode loop: a product, its mask read on the host, and ``host_ms`` of an operator on the CPU before
    the next product can be launched."""
    scene, now = Scene(), 0.0
    scene.step(1, -50, turns * (host_ms + kernel_ms + 0.2) * MS + 200)
    for _ in range(turns):
        scene.kernel(now + 20, kernel_ms * MS, launched=now + 10, op="aten::mm")
        read = now + 20 + kernel_ms * MS
        scene.event("cpu_op", "aten::item", now + 30, read - now)
        scene.event("runtime", "AscendCL@aclrtSynchronizeStreamWithTimeout", now + 40, read - now - 30)
        scene.event("cpu_op", "aten::masked_fill_", read + 40, host_ms * MS - 40)
        scene.event("runtime", "AscendCL@aclrtMemcpy", read + host_ms * MS + 1, 3)
        now = read + host_ms * MS + 10
    return scene


def test_case_22_a_grammar_mask_on_the_cpu_between_decode_steps() -> None:
    """4.48 ms of 77.69 ms per token. What the host does after the call that reads back belongs to that call: without it
    the host would be ahead. HD002 does not tell the same time again."""
    scene = decode(6, host_ms=4.48, kernel_ms=73.2)
    found = judge_rule("HD004", scene.store())
    assert found.state == "fail"
    assert found.first.observation["saved_share"] == pytest.approx(5 * 4.48 / (6 * 73.2 + 5 * 4.48), rel=0.02)
    assert judge_rule("HD002", scene.store()).state == "pass"
    seen = judge_rule("HD017", scene.store()).first.observation
    assert seen["operator"] == "aten::masked_fill_"
    assert seen["idle_share"] == pytest.approx(5 * 4.48 / (6 * 73.2 + 5 * 4.48), rel=0.03)


def expanded(copies: int, copy_ms: float, between_ms: float) -> Scene:
    """In every layer a copy to the host, an operator on the CPU and a copy back; the device has nothing to do."""
    scene, now = Scene(), 0.0
    scene.step(1, -50, copies * (2 * copy_ms + between_ms + 0.5) * MS + 200)
    for _ in range(copies):
        scene.kernel(now + 20, 400, launched=now + 10, op="aten::mm")
        at = now + 420
        scene.event("runtime", "AscendCL@aclrtMemcpy", at, copy_ms * MS)
        scene.event("cpu_op", "aten::cumsum", at + copy_ms * MS, between_ms * MS)
        scene.event("runtime", "AscendCL@aclrtMemcpy", at + (copy_ms + between_ms) * MS, copy_ms * MS)
        now = at + (2 * copy_ms + between_ms) * MS + 10
    return scene


def test_case_34_copies_around_an_operator_on_the_cpu_in_every_layer() -> None:
    found = judge_rule("HD012", expanded(8, copy_ms=0.2, between_ms=0.3).store())
    assert found.state == "fail" and found.first.severity == "high"
    assert found.first.observation["idle_ns"] == pytest.approx(7 * 0.4 * MS * 1_000, rel=0.1)
    seen = judge_rule("HD017", expanded(8, copy_ms=0.2, between_ms=0.3).store()).first.observation
    assert (seen["operator"], seen["calls"], seen["fallbacks"]) == (
        "aten::cumsum",
        7,
        0,
    )  # the last one runs after the work of the step
    assert seen["idle_ns"] == pytest.approx(7 * 0.3 * MS * 1_000, rel=0.1)


def weights(form: str) -> Scene:
    """A token of a model of 28 layers: five products a layer that read 382 ms of weights, and the cores of a 310P3."""
    scene, each = Scene().step(1, -10, 28 * 5 * 2_720 + 20), 2_700.0
    for number in range(28 * 5):
        reads = [f"1,{3584 + 16 * (number % 5)} FLOAT16", f"{3584 + 16 * (number % 5)},3584 FLOAT16 {form}"]
        scene.tensors(number * 2_720, each, "MatMulV2", reads, ["1,3584 FLOAT16"], core="AI_CORE")
        scene.busy(8, aic_mac=300, aic_mte2=2_600)
    return scene


def test_case_11_weights_in_nd_on_a_310p() -> None:
    chip = {"ai_core_num": 8, "aiv_num": 8, "aic_frequency": 1060}
    found = judge_rule("PB019", weights("ND").store(chip=chip))
    seen = found.first.observation
    assert found.state == "fail" and found.first.severity == "high"
    assert (seen["nd_products"], seen["kernels"], seen["share_of_products"]) == (5, 140, 1.0)
    assert seen["total_ns"] == 140 * 2_700_000
    assert judge_rule("PB019", weights("FRACTAL_NZ").store(chip=chip)).state == "pass"
    of_a2 = {"ai_core_num": 24, "aiv_num": 48, "aic_frequency": 1800}
    assert judge_rule("PB019", weights("ND").store(chip=of_a2)).state in ("pass", "not_applicable")


def layers_behind_a_copy(layers: int, *, computing_ms: float, gather_ms: float) -> Scene:
    """In every layer the sequence lengths are read back behind its computing; the parameters of the next layer are
    gathered only then, and its computing waits for them."""
    scene, now = Scene(), 0.0
    scene.step(1, -50, layers * (computing_ms + gather_ms + 0.1) * MS + 100)
    for _ in range(layers):
        scene.kernel(now, computing_ms * MS, launched=now - 8, op="aten::mm")
        end = now + computing_ms * MS
        scene.event("cpu_op", "aten::to", now + 20, end - now - 10)
        scene.event("runtime", "AscendCL@aclrtSynchronizeStreamWithTimeout", now + 30, end - now - 30)
        begin = end + 40
        scene.collective(begin, gather_ms * MS, [(begin, begin + gather_ms * MS, None)], operation="allGather")
        now = begin + gather_ms * MS + 40
    return scene


def test_case_4_parameters_gathered_behind_a_copy_in_the_forward_pass() -> None:
    """The thread gives no division of the step. Where the gathers could run beside the computing, all of them count."""
    found = judge_rule("CO017", layers_behind_a_copy(4, computing_ms=10, gather_ms=6).store())
    seen = found.first.observation
    assert found.state == "fail" and seen["operator"] == "aten::to"
    assert seen["saveable_ns"] == pytest.approx(4 * 6 * MS * 1_000, rel=0.01)
