"""NS003 to NS006, NS052, NS053: kernels that only hand a tensor over."""

from __future__ import annotations

import random

import numpy as np
import pandas as pd
import pytest

from advisor_core.api.testing import Scene, judge_rule
from advisors.network_structure.conversions import _undone
from advisors.step_kernels import StepKernels
from tests.advisors.cures import cure_of, shorter
from tests.advisors.network_structure.scenes import TENSOR, Kernel, kinds, scene_of


def converted(duration: float, *, name: str = "trans_TransData_0", training: bool = True, wall: float = 1000) -> Scene:
    """One tensor converted, used and converted back, ``duration`` us each; then another that is not undone."""
    plain, tiled = ("8,3,32,32 FLOAT NCHW",), ("8,1,32,32,8 FLOAT NC1HWC0",)
    scene = Scene().step(1, -10, wall + 20)
    scene.tensors(0, duration, "TransData", plain, tiled, name=name)
    scene.tensors(duration, 100, "Conv2D", tiled, tiled)
    scene.tensors(100 + duration, duration, "TransData", tiled, plain, name=name)
    scene.tensors(100 + 2 * duration, duration, "TransData", ("4,4 FLOAT ND",), ("4,4 FLOAT FRACTAL_NZ",), name=name)
    used = 100 + 3 * duration
    return scene.tensors(used, wall - used, "ReluGrad" if training else "Relu", plain, plain)


def test_format_conversions_fire_with_what_is_undone() -> None:
    found = judge_rule("NS003", converted(10).store())
    seen = found.first.observation
    assert (seen["kernels"], seen["total_ns"], seen["back_and_forth_ns"]) == (3, 30_000, 20_000)
    assert seen["largest_input"] == "8,3,32,32 FLOAT NCHW" and seen["largest_output"] == "8,1,32,32,8 FLOAT NC1HWC0"
    assert (seen["before"], seen["after"]) == (None, "Conv2D") and seen["inside_ns"] == 0
    assert found.first.impact_ns == 30_000 and found.first.severity == "medium"
    assert seen["share_of_step"] == pytest.approx(0.03)
    assert kinds(found) == ["investigate", "config"]
    assert found.evidence()[1].rows.tolist() == [0, 2, 3]


def test_private_formats_are_advised_last_and_with_their_hazard() -> None:
    """Operators compute differently on NZ: what turns it on never comes first, says so, and is for inference."""
    training, inference = (
        judge_rule("NS003", converted(10, training=is_).store()).first.advice for is_ in (True, False)
    )
    assert [one.hazards for one in inference] == [[], ["accuracy", "crash"]]
    assert "weight_nz_mode" in inference[1].text.en
    assert [one.hazards for one in training] == [[], ["crash"]]
    assert "allow_internal_format = False" in training[1].text.en and "NZ" in training[1].risk.en


def test_format_conversions_beyond_the_reach_are_not_paired() -> None:
    assert judge_rule("NS003", converted(10).store(), reach=0).first.observation["back_and_forth_ns"] == 0


@pytest.mark.parametrize(
    ("name", "training", "advice"),
    [
        ("aclnnMm_TransData_TransData", True, ["investigate", "investigate"]),
        ("aclnnMm_TransData_TransData", False, ["investigate", "investigate"]),
        ("trans_TransData_3", False, ["investigate", "config"]),
    ],
)
def test_no_setting_reaches_what_an_operator_converts_for_itself(name: str, training: bool, advice: list[str]) -> None:
    found = judge_rule("NS003", converted(10, name=name, training=training).store())
    assert kinds(found) == advice
    assert found.first.observation["inside_ns"] == (30_000 if name.startswith("aclnn") else 0)


@pytest.mark.parametrize(("duration", "wall", "state"), [(5, 3000, "fail"), (4.99, 3000, "pass")])
def test_format_conversions_need_half_a_percent_of_the_step(duration: float, wall: float, state: str) -> None:
    scene = converted(duration, wall=1000)
    # The rest of the step is another rank's turn: idle here, so it is a percent of the kernel time.
    scene.tensors(wall - 1, 1, "Relu", ("4,4 FLOAT",), ("4,4 FLOAT",))
    assert judge_rule("NS003", scene.store()).state == state


def test_undone_agrees_with_looking_at_all_pairs() -> None:
    chance = random.Random(7)
    for _ in range(300):
        count, reach = chance.randint(1, 12), chance.randint(0, 4)
        places = sorted(chance.sample(range(30), count))
        reads = [chance.choice("abc") for _ in places]
        writes = [chance.choice("abc") for _ in places]
        breaks = np.array([chance.random() < 0.15 for _ in range(30)])
        groups = np.cumsum(breaks)
        expected = set()
        for number, at in enumerate(places):
            for other in range(number + 1, count):
                opposite = (reads[other], writes[other]) == (writes[number], reads[number])
                if opposite and groups[places[other]] == groups[at]:
                    if places[other] - at <= reach + 1:
                        expected |= {number, other}
                    break
        part = pd.DataFrame({"reads": reads, "writes": writes}, index=places)
        own = StepKernels(pd.DataFrame(), breaks, breaks, 1, 1.0)
        assert set(np.flatnonzero(_undone(part, own, reach))) == expected


MOVES = {
    "NS004": ("ConcatD", ("64,48 FLOAT ND", "64,48 FLOAT ND"), TENSOR),
    "NS005": ("Cast", TENSOR, ("64,96 BF16 ND",)),
    "NS006": ("Transpose", TENSOR, ("96,64 FLOAT ND",)),
    "NS052": ("AsStrided", ("64,192 FLOAT ND",), TENSOR),
}


@pytest.mark.parametrize("rule", MOVES)
@pytest.mark.parametrize(
    ("duration", "state", "severity"),
    [(9.9, "pass", ""), (10, "fail", "low"), (30, "fail", "medium"), (50, "fail", "high")],
)
def test_kernels_that_only_move_data(rule: str, duration: float, state: str, severity: str) -> None:
    type_, reads, writes = MOVES[rule]
    scene = scene_of(("Relu", 50, TENSOR, TENSOR), (type_, duration, reads, writes), ("Abs", 50, writes, writes))
    found = judge_rule(rule, scene.store())
    assert found.state == state
    if state == "fail":
        assert found.first.severity == severity and found.first.impact_ns == duration * 1000
        seen = found.first.observation
        assert (seen["kernels"], seen["largest_type"]) == (1, type_)
        assert (seen["before"], seen["after"]) == ("Relu", "Abs")
        assert (seen["largest_input"], seen["largest_output"]) == (reads[0], writes[0])
        assert found.evidence()[1].rows.tolist() == [1]


@pytest.mark.parametrize("rule", MOVES)
@pytest.mark.parametrize(("duration", "state"), [(55.6, "fail"), (55.5, "pass")])
def test_a_tenth_of_the_kernel_time_counts_in_a_step_that_waits(rule: str, duration: float, state: str) -> None:
    type_, reads, writes = MOVES[rule]
    scene = scene_of((type_, duration, reads, writes), wall=555)
    # 55.6 of 556 us of kernels; the step lasts 10,000.
    scene.tensors(9999, 1, "Relu", TENSOR, TENSOR)
    found = judge_rule(rule, scene.store())
    assert found.state == state
    if state == "fail":
        assert found.first.severity == "low"


def test_conversions_that_nobody_makes_are_in_order() -> None:
    scene = scene_of(("Relu", 500, TENSOR, TENSOR))
    assert {rule: judge_rule(rule, scene.store()).state for rule in ("NS003", *MOVES)} == dict.fromkeys(
        ("NS003", *MOVES), "pass"
    )


@pytest.mark.parametrize(("duration", "state"), [(29, "pass"), (30, "fail")])
def test_reading_by_index_counts_above_the_lookup_of_tokens(duration: float, state: str) -> None:
    picked = ("GatherV2", duration, ("1024,96 FLOAT ND", "64 INT64 ND"), TENSOR)
    assert judge_rule("NS053", scene_of(("Relu", 50, TENSOR, TENSOR), picked).store()).state == state


@pytest.mark.parametrize(
    "type_", ["ScatterPaKvCache", "EmbeddingDenseGrad", "InplaceIndexCopy", "SelectV2", "MaskedFill"]
)
def test_caches_and_choices_by_element_are_not_read_by_index(type_: str) -> None:
    store = scene_of((type_, 300, (*TENSOR, *TENSOR), TENSOR)).store()
    assert {rule: judge_rule(rule, store).state for rule in ("NS052", "NS053")} == {"NS052": "pass", "NS053": "pass"}


def test_quantising_is_no_needless_cast() -> None:
    scene = scene_of(("DynamicQuant", 300, TENSOR, ("64,96 INT8",)), ("AscendQuantV2", 300, TENSOR, ("64,96 INT8",)))
    assert judge_rule("NS005", scene.store()).state == "pass"


def test_casts_of_a_chain_are_left_to_its_finding() -> None:
    x, wide, narrow = "20,50 BF16", "20,50 FLOAT", "20,1 FLOAT"
    norm: list[Kernel] = [
        ("Cast", 40, (x,), (wide,)),
        ("Pows", 5, (wide,), (wide,)),
        ("ReduceMean", 5, (wide,), (narrow,)),
        ("Add", 5, (narrow,), (narrow,)),
        ("Rsqrt", 5, (narrow,), (narrow,)),
        ("Mul", 5, (wide, narrow), (wide,)),
        ("Cast", 30, (wide,), (x,)),
        ("Mul", 5, (x, "50 BF16"), (x,)),
    ]
    found = judge_rule("NS005", scene_of(*norm, ("Cast", 20, ("9,9 INT64",), ("9,9 INT32",))).store())
    seen = found.first.observation
    assert (seen["kernels"], seen["total_ns"], seen["in_chain_ns"], seen["loose_ns"]) == (3, 90_000, 70_000, 20_000)
    assert found.first.impact_ns == 20_000


def test_conversions_without_shapes_are_counted_all_the_same() -> None:
    scene = scene_of(("Cast", 20, (), ()), filler="Relu")
    for row in scene.rows["kernels"]:
        row |= dict.fromkeys(("input_shapes", "input_dtypes", "output_shapes", "output_dtypes"), "")
        row |= {"input_formats": "", "output_formats": ""}
    seen = judge_rule("NS005", scene.store()).first.observation
    assert seen["total_ns"] == 20_000 and seen["largest_input"] is None


def test_the_cure_takes_the_conversions_away_and_nothing_else() -> None:
    store = converted(10).store()
    assert shorter(store, cure_of(judge_rule("NS003", store))) == {0: 10_000, 2: 10_000, 3: 10_000}


def test_the_cure_leaves_what_a_fused_kernel_replaces_to_that() -> None:
    """Of two casts the first is part of an unfused RMSNorm."""
    x, mean = "64,32 FLOAT", "64,1 FLOAT"
    half: Kernel = ("Cast", 20, ("64,32 BF16",), (x,))
    norm: list[Kernel] = [("Pow", 5, (x,), (x,)), ("ReduceMean", 5, (x,), (mean,)), ("Add", 5, (mean,), (mean,))]
    norm += [("Rsqrt", 5, (mean,), (mean,)), ("Mul", 5, (x, mean), (x,)), ("Mul", 5, (x, "32 FLOAT"), (x,))]
    store = scene_of(half, *norm, ("MatMulV3", 50, (x, x), (x,)), ("Cast", 30, ("9,9 BF16",), ("9,9 FLOAT",))).store()
    found = judge_rule("NS005", store)
    assert found.first.observation["in_chain_ns"] == 20_000
    assert shorter(store, cure_of(found)) == {8: 30_000}
