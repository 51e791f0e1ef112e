"""Pipes, peak, cores and clock: every rule fires with the numbers of a calculation by hand, stays silent and cannot
answer; real kernels against the export itself."""

from __future__ import annotations

import csv
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor_core.api.testing import JudgedRule, Scene, judge_rule
from advisors.pipeline_bound.clock import clock_at
from tests.advisors.cures import cure_of, shorter
from tests.advisors.real import real_rank

STEP_US = 10_000
CHIP = {"ai_core_num": 24, "aiv_num": 48, "aic_frequency": 1800}
PEAK = 24 * 1800e6 * 8192 / 1e12
"""TFLOP/s of that chip in 16 bit: 353.9."""
VECTOR = "AI_VECTOR_CORE"
BOUND_RULES = ("PB001", "PB002", "PB003", "PB004", "PB005", "PB013")


def until_the_end(scene: Scene) -> Scene:
    """A step of 10 ms: its last kernel is short and has no pipe times."""
    return scene.kernel(STEP_US - 1, 1, "ReduceSum", core=VECTOR)


def one(type_: str, core: str, us: float, *, blocks: int = 24, count: int = 1, **pipes: float) -> Scene:
    """``count`` equal kernels in a step; the pipes in us of each."""
    scene = Scene()
    for number in range(count):
        scene.tensors(number * us, us, type_, ["4096,1024 BF16", "512 BF16"], ["4096,1024 BF16"], core=core)
        scene.busy(blocks, **pipes)
    return until_the_end(scene)


def judged(rule: str, scene: Scene, *without: str, **about: Any) -> JudgedRule:
    return judge_rule(rule, scene.store(*without, **{"chip": CHIP, **about}))


def kinds(found: JudgedRule) -> list[str]:
    return [advice.kind for advice in found.first.advice]


# --- PB001 .. PB005, PB013: the pipe that bounds a kernel

FIRES: dict[str, tuple[str, str, dict[str, Any], str, float, float]] = {
    # rule: (type, core, pipes of 2000 us, the bound pipe, its ratio, the ratio of which 0.8 is the target)
    "PB001": ("MatMulV3", "AI_CORE", {"aic_mac": 1100, "aic_mte2": 900}, "mac", 0.55, 0.55),
    "PB002": ("MatMulV3", "AI_CORE", {"aic_mac": 400, "aic_mte2": 1000}, "mte2", 0.5, 0.5),
    "PB003": ("FlashAttentionScoreGrad", "MIX_AIC", {"aic_fixpipe": 1200, "aiv_vec": 800}, "fixpipe", 0.6, 0.6),
    "PB004": ("Conv2D", "AI_CORE", {"aic_mte1": 1000, "aic_mac": 500}, "mte1", 0.5, 0.5),
    "PB005": ("Sort", VECTOR, {"aiv_vec": 400, "aiv_mte2": 100, "aiv_scalar": 300}, "vec", 0.2, 0.2),
    "PB013": ("GatherV2", VECTOR, {"aiv_scalar": 1900, "aiv_vec": 200, "aiv_mte2": 400}, "scalar", 0.95, 0.2),
}
CLASSES = {
    "PB001": "matmul", "PB002": "matmul", "PB003": "attention", "PB004": "convolution", "PB005": "reduction",
    "PB013": "slice",
}  # fmt: skip


@pytest.mark.parametrize("rule", BOUND_RULES)
def test_a_pipe_that_waits_fires(rule: str) -> None:
    type_, core, pipes, bound, ratio, busy = FIRES[rule]
    found = judged(rule, one(type_, core, 2000, **pipes))
    assert found.state == "fail" and len(found.verdict.rows) == 1  # type: ignore[union-attr]
    seen = found.first.observation
    assert (seen["operator"], seen["bound"], seen["core"]) == (type_, bound, core)
    assert seen["operator_class"] == CLASSES[rule]
    assert seen["bound_ratio"] == pytest.approx(ratio) and seen["kernels"] == 1
    assert seen["mean_ns"] == seen["total_ns"] == 2_000_000 and seen["share_of_step"] == pytest.approx(0.2)
    # 2000 us at 0.8 instead of what it is.
    assert found.first.impact_ns == pytest.approx(2_000_000 * (1 - busy / 0.8), abs=1)
    assert found.first.severity == "high" and found.first.confidence == "medium"
    assert found.first.observation["shape"] == "4096,1024"
    assert [type(reference).__name__ for reference in found.evidence()] == ["Rows", "Metric"]


@pytest.mark.parametrize("rule", BOUND_RULES)
def test_the_other_rules_leave_that_kernel_alone(rule: str) -> None:
    """A kernel has one bound pipe, so one of these rules."""
    type_, core, pipes, *_ = FIRES[rule]
    store = one(type_, core, 2000, **pipes).store(chip=CHIP)
    assert {other for other in BOUND_RULES if judge_rule(other, store).state == "fail"} == {rule}


@pytest.mark.parametrize(
    ("rule", "type_", "core", "pipes"),
    [
        ("PB001", "MatMulV3", "AI_CORE", {"aic_mac": 1600}),  # at the target
        ("PB001", "MatMulV3", "AI_CORE", {"aic_mac": 1530}),  # 87.5 us lost of 10 ms are not one percent
        ("PB002", "MatMulV3", "AI_CORE", {"aic_mte2": 1600}),
        ("PB003", "Cast", VECTOR, {"aiv_mte3": 1600}),
        ("PB004", "Conv2D", "AI_CORE", {"aic_mte1": 1600}),
        ("PB005", "Sort", VECTOR, {"aiv_vec": 800}),  # some pipe is busy: another rule
        ("PB013", "GatherV2", VECTOR, {"aiv_scalar": 1900, "aiv_mte2": 1540}),  # loading would need as long
    ],
)
def test_a_pipe_that_is_busy_is_silent(rule: str, type_: str, core: str, pipes: dict[str, Any]) -> None:
    assert judged(rule, one(type_, core, 2000, **pipes)).state == "pass"


def test_just_over_one_percent_of_the_step_is_low() -> None:
    """1 - 0.755 / 0.8 = 5.6 % of 20 % of the step."""
    found = judged("PB001", one("MatMulV3", "AI_CORE", 2000, aic_mac=1510))
    assert found.first.severity == "low" and found.first.impact_ns == 112_500


@pytest.mark.parametrize("rule", BOUND_RULES)
def test_short_kernels_are_not_judged_however_many(rule: str) -> None:
    type_, core, pipes, *_ = FIRES[rule]
    short: dict[str, Any] = {pipe: time * 49 / 2000 for pipe, time in pipes.items()}
    assert judged(rule, one(type_, core, 49, count=60, **short)).state == "not_applicable"
    longer: dict[str, Any] = {pipe: time * 50 / 2000 for pipe, time in pipes.items()}
    assert judged(rule, one(type_, core, 50, count=60, **longer)).state == "fail"


@pytest.mark.parametrize("rule", (*BOUND_RULES, "PB012"))
def test_bound_rules_need_pipe_times_and_types(rule: str) -> None:
    type_, core, pipes, *_ = FIRES.get(rule, FIRES["PB001"])
    scene = one(type_, core, 2000)
    assert judged(rule, scene).state == "cannot_answer"
    scene = one(type_, core, 2000, **pipes)
    for row in scene.rows["kernels"]:
        row |= {"type": "", "core": ""}
    assert judged(rule, scene).state == "cannot_answer"
    assert judged(rule, scene, "kernels", "device_tasks").state == "cannot_answer"


def test_kernels_of_one_signature_are_one_row_weighted_by_time() -> None:
    """1000 us at 0.7 and 3000 us at 0.5 are 4000 us at 0.55, in two steps of 10 ms."""
    scene = Scene()
    for number, (start, us, mac) in enumerate([(0, 1000, 700), (STEP_US, 3000, 1500)], 1):
        scene.tensors(start, us, "MatMulV3", ["64,64 BF16"], ["64,64 BF16"], step=number).busy(aic_mac=mac)
    scene.kernel(2 * STEP_US - 1, 1, "ReduceSum", core=VECTOR, step=2)
    seen = judged("PB001", scene).first.observation
    assert seen["bound_ratio"] == pytest.approx(0.55) and seen["kernels"] == 1
    assert seen["mean_ns"] == seen["total_ns"] == 2_000_000 and seen["share_of_step"] == pytest.approx(0.2)


def test_the_advice_follows_the_unit_and_the_kind_of_run() -> None:
    cube = judged("PB001", one("MatMulV3", "AI_CORE", 2000, aic_mac=1000))
    vector = judged("PB001", one("FlashAttentionScoreGrad", VECTOR, 2000, aiv_vec=1000))
    assert ["team" in a.text.en for a in cube.first.advice] == [True]
    assert ["`sparse_mode`" in a.text.en for a in vector.first.advice] == [False, True]
    loading = one("MatMulV3", "AI_CORE", 2000, aic_mte2=1000)
    assert kinds(judged("PB002", loading)) == ["code", "investigate", "code", "code", "config"]
    few_rows = Scene().tensors(0, 2000, "MatMulV3", ["16,1024 BF16", "1024,512 BF16"], ["16,512 BF16"])
    decode = judged("PB002", until_the_end(few_rows.busy(aic_mte2=1000))).first.advice
    assert "npu_format_cast" in decode[3].text.en and "weight_nz_mode" in decode[4].text.en
    assert len(decode) == 5 and all("weight-sync" in advice.excludes for advice in decode[3:])
    quantised = Scene().tensors(0, 2000, "MatMulV3", ["16,1024 BF16", "1024,512 INT8"], ["16,512 BF16"])
    given = judged("PB002", until_the_end(quantised.busy(aic_mte2=1000))).first.advice
    assert not any("nz" in advice.text.en.lower() for advice in given), "its weights are not of 16 bits"
    loading.tensors(5000, 1, "RmsNormGrad", core=VECTOR)
    assert kinds(judged("PB002", loading)) == ["code", "investigate"]


@pytest.mark.parametrize(
    "type_",
    [
        "MoeDistributeDispatch", "MoeDistributeDispatchV3", "MoeDistributeCombineV2", "MoeDistributeCombineAddRmsNorm",
        "MatmulAllReduce", "MatmulAllReduceAddRmsNorm", "AllGatherMatmulV2", "MatmulReduceScatterV2",
        "DispatchFFNCombine", "DispatchGmmCombineDecode", "AlltoAllvGroupedMatMul", "GroupedMatMulAlltoAllv",
        "MatmulAlltoAll",
    ],
)  # fmt: skip
def test_a_kernel_that_communicates_is_compared_with_other_ranks(type_: str) -> None:
    found = judged("PB005", one(type_, "MIX_AIC", 2000, aic_mac=400)).first
    assert found.observation["communicates"] is True
    assert ["on all ranks" in advice.text.en for advice in found.advice] == [True, False]


@pytest.mark.parametrize("type_", ["GroupedMatmul", "MoeGatingTopK", "GatherV2", "DispatchLayout"])
def test_a_kernel_that_only_computes_is_run_alone(type_: str) -> None:
    found = judged("PB005", one(type_, "MIX_AIC", 2000, aic_mac=400)).first
    assert found.observation["communicates"] is False
    assert ["alone" in advice.text.en for advice in found.advice] == [False, True]
    assert found.advice[1].hazards == ["hang"], "it hangs where the type hides that it communicates"


def test_the_call_stack_is_evidence() -> None:
    scene = Scene().kernel(
        100, 2000, "MatMulV3", op="aten::linear", stack="/model.py(7): forward;\n/train.py(3): main;"
    )
    found = judged("PB001", until_the_end(scene.busy(aic_mac=1000)))
    assert [type(reference).__name__ for reference in found.evidence()] == ["Rows", "Metric", "Stack"]


# --- PB011


def product(
    us: float,
    m: int = 4096,
    n: int = 4096,
    k: int = 4096,
    *,
    dtype: str = "BF16",
    core: str = "AI_CORE",
    mte2: float = 0.5,
) -> Scene:
    reads, writes = [f"{m},{k} {dtype}", f"{k},{n} {dtype}"], [f"{m},{n} {dtype}"]
    scene = Scene().tensors(0, us, "MatMulV3", reads, writes, core=core)
    return until_the_end(scene.busy(24, aic_mte2=mte2 * us, aic_mac=0.3 * us))


def test_product_far_below_peak_fires() -> None:
    found = judged("PB011", product(1000))
    tflops = 2 * 4096**3 / 1000e-6 / 1e12  # 137.4
    seen = found.first.observation
    assert (seen["m"], seen["n"], seen["k"], seen["left_shape"]) == (4096, 4096, 4096, "4096,4096")
    assert seen["tflops"] == pytest.approx(tflops) and seen["peak_tflops"] == pytest.approx(PEAK)
    assert seen["efficiency"] == pytest.approx(tflops / PEAK) and seen["reuse"] == pytest.approx(4096 / 3)
    assert found.first.impact_ns == pytest.approx(1_000_000 * (1 - tflops / PEAK / 0.67), abs=1)  # 420 us
    assert found.first.severity == "medium" and kinds(found) == ["investigate"]
    assert [type(reference).__name__ for reference in found.evidence()] == ["Rows", "Metric"]


@pytest.mark.parametrize(
    ("scene", "state"),
    [
        (product(770), "pass"),  # 178.5 of 353.9 TFLOP/s, just over half
        (product(1000, dtype="FLOAT"), "not_applicable"),  # no fixed peak
        (product(1000, mte2=0.8), "not_applicable"),  # loads all the time
        (product(1000, m=16), "not_applicable"),  # decode: 16 multiply-adds per weight
        (product(1000, m=302, n=65536, k=65536), "not_applicable"),  # 299 of the 310 that it takes
        (product(49), "not_applicable"),
    ],
)
def test_product_is_silent(scene: Scene, state: str) -> None:
    assert judged("PB011", scene).state == state


def test_product_advice_names_the_cause_that_is_seen() -> None:
    assert "MIX_AIC" in judged("PB011", product(1000, core="MIX_AIC")).first.advice[0].text.en
    # 20 blocks of 128 x 128 for 32 cores, 327 multiply-adds per element.
    many = {"ai_core_num": 32, "aiv_num": 32, "aic_frequency": 1000}
    found = judged("PB011", product(3000, m=640, n=768, k=8192, dtype="FLOAT16"), chip=many)
    assert found.first.observation["peak_share"] == pytest.approx(30 / 32)
    assert kinds(found) == ["code", "investigate", "code"]
    assert found.first.advice[2].hazards == ["accuracy", "crash"], "a larger batch changes a training and needs memory"


@pytest.mark.parametrize("without", ["kernels", "pipes", "chip", "shapes"])
def test_product_cannot_answer(without: str) -> None:
    scene = product(1000)
    for row in scene.rows["kernels"]:
        if without == "pipes":
            row |= {"aic_mte2_us": 0, "aic_mac_us": 0}
        if without == "shapes":
            row |= dict.fromkeys(("input_shapes", "output_shapes"), "")
    tables = ("kernels", "device_tasks") if without == "kernels" else ()
    about: dict[str, Any] = {"chip": {}} if without == "chip" else {}
    assert judged("PB011", scene, *tables, **about).state == "cannot_answer"


# --- PB012


def divided(blocks: int, *, core: str = VECTOR, us: float = 1000) -> Scene:
    return one("ReduceSum", core, us, blocks=blocks, aiv_vec=us * 0.9)


@pytest.mark.parametrize(
    ("core", "blocks", "cores"), [(VECTOR, 12, 48), ("AI_CORE", 6, 24), ("MIX_AIC", 18, 24), ("MIX_AIV", 12, 48)]
)
def test_cores_without_a_block_fire(core: str, blocks: int, cores: int) -> None:
    found = judged("PB012", divided(blocks, core=core))
    seen = found.first.observation
    assert (seen["blocks"], seen["cores"]) == (blocks, cores)
    assert found.first.impact_ns == 1_000_000 * (cores - blocks) // cores
    assert found.first.severity == ("high" if blocks * 2 < cores else "low")


@pytest.mark.parametrize(
    ("blocks", "us", "state"),
    [
        (48, 1000, "pass"),
        (256, 1000, "pass"),  # logical blocks: more than cores
        (44, 1000, "pass"),  # 4 of 48 cores for a tenth of the step
        (1, 1000, "not_applicable"),  # not divided at all, or not recorded
        (12, 49, "not_applicable"),
    ],
)
def test_cores_with_blocks_are_silent(blocks: int, us: float, state: str) -> None:
    assert judged("PB012", divided(blocks, us=us)).state == state


def test_cores_of_an_unknown_chip_cannot_be_counted() -> None:
    assert judged("PB012", divided(12), chip={}).state == "cannot_answer"


# --- PB014


def clocked(slow: float) -> Scene:
    """Four products of 1000 us; the clock falls from 1800 MHz before the last two."""
    scene = Scene()
    for start in (0, 1000, 5000, 6000):
        scene.kernel(start, 1000, "MatMulV3")
    scene.add("frequency", time_us=0, mhz=1800.0).add("frequency", time_us=4000, mhz=slow)
    return until_the_end(scene.kernel(7000, 1000, "Add", core=VECTOR))


def test_clock_that_drops_fires() -> None:
    found = judged("PB014", clocked(1500))
    seen = found.first.observation
    assert (seen["highest_mhz"], seen["lowest_mhz"]) == (1800, 1500)
    assert seen["slow_ns"] == 2_000_000 and seen["drop"] == pytest.approx(1 / 6)
    # Two of 1000 us would take 5/6 of that at 1800 MHz.
    assert found.first.impact_ns == 333_333 and found.first.severity == "medium"
    assert kinds(found) == ["investigate"]
    assert [type(reference).__name__ for reference in found.evidence()] == ["Metric", "Rows"]


def test_clock_that_hardly_drops_is_silent() -> None:
    assert judged("PB014", clocked(1720)).state == "pass"  # 4.4 %


def test_clock_that_is_not_recorded_cannot_be_judged() -> None:
    """Cycles over time is the clock that the exporter assumed: equal values would not tell that the chip kept it."""
    scene = clocked(1500)
    for row in scene.rows["kernels"]:
        row |= {"aic_cycles": 24 * 1800.0 * 1000, "block_dim": 24}
    assert judged("PB014", scene, "frequency").state == "cannot_answer"
    del scene.rows["frequency"][0]
    scene.rows["frequency"][0]["time_us"] = 9000  # only after the last product
    assert judged("PB014", scene).state == "cannot_answer"


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(1, 9)), max_size=6, unique_by=lambda change: change[0]),
    st.lists(st.integers(-5, 60), max_size=6),
)
def test_clock_at_a_moment_is_that_of_the_last_change(changes: list[tuple[int, int]], moments: list[int]) -> None:
    frame = pd.DataFrame(changes, columns=["time_ns", "mhz"]).astype({"time_ns": "int64", "mhz": "float64"})
    found = clock_at(frame, np.array(moments, dtype=np.int64))
    for moment, mhz in zip(moments, found, strict=True):
        before = [change for change in changes if change[0] <= moment]
        assert np.isnan(mhz) if not before else mhz == max(before)[1]


# --- the real profile, calculated from the csv file


def rows_of(profiles: Path, rank: int) -> list[dict[str, str]]:
    folder = profiles / "ascend" / "alexnet-ddp-text-level1" / f"rank{rank}_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
    with (folder / "kernel_details.csv").open(encoding="utf-8") as file:
        return [row for row in csv.DictReader(file) if row["Accelerator Core"] != "HCCL"]


PIPE_FILE_COLUMNS = {
    "mac": ("aic_mac_time(us)",),
    "vec": ("aiv_vec_time(us)",),
    "mte1": ("aic_mte1_time(us)",),
    "mte2": ("aic_mte2_time(us)", "aiv_mte2_time(us)"),
    "mte3": ("aiv_mte3_time(us)",),
    "fixpipe": ("aic_fixpipe_time(us)",),
    "scalar": ("aic_scalar_time(us)", "aiv_scalar_time(us)"),
}
TEXTS = (
    "Type",
    "Input Shapes",
    "Input Data Types",
    "Input Formats",
    "Output Shapes",
    "Output Data Types",
    "Output Formats",
)


@pytest.mark.parametrize("rank", [0, 1])
def test_alexnet_kernels_agree_with_the_csv_file(profiles: Path, rank: int) -> None:
    spent: dict[tuple[str, ...], float] = defaultdict(float)
    busy: dict[tuple[str, ...], dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for row in rows_of(profiles, rank):
        duration = float(row["Duration(us)"])
        times = {
            pipe: max(min(float(row[name]), duration) if row[name] != "N/A" else 0.0 for name in names)
            for pipe, names in PIPE_FILE_COLUMNS.items()
        }
        if not any(times.values()):
            continue
        key = tuple(row[name] for name in TEXTS)
        spent[key] += duration
        for pipe, time in times.items():
            busy[key][pipe] += time
    expected = sorted((key[0], round(spent[key], 3), max(pipes.values()) / spent[key]) for key, pipes in busy.items())
    found = judge_rule("PB001", real_rank(profiles, "alexnet-ddp-text-level1", rank)).observed
    assert found is not None
    columns = (found.frame[name] for name in ("operator", "total_ns", "bound_ratio"))
    measured = sorted((str(name), round(ns / 1e3, 3), ratio) for name, ns, ratio in zip(*columns, strict=True))
    assert [row[:2] for row in measured] == [row[:2] for row in expected] and len(expected) > 50
    assert [row[2] for row in measured] == pytest.approx([row[2] for row in expected])


def test_alexnet_kernel_that_loses_most_below_the_target(profiles: Path) -> None:
    """Of the kernels from 50 us up whose busiest pipe is busy for 40 to 80 % of the time, the one that loses most to
    the target, from the file alone: a copy of 4096 x 4096, held up by loading. No two of them have equal shapes."""
    worst = ("", "", 0.0, 0.0)
    for row in rows_of(profiles, 0):
        duration = float(row["Duration(us)"])
        pipes = [float(row[name]) for names in PIPE_FILE_COLUMNS.values() for name in names if row[name] != "N/A"]
        ratio = max(pipes, default=0.0) / duration
        if duration >= 50 and 0.4 <= ratio < 0.8:
            kernel = (row["Type"], row["Input Shapes"].strip('"'), duration, ratio)
            worst = max(worst, kernel, key=lambda item: item[2] * (1 - item[3] / 0.8))
    found = judge_rule("PB002", real_rank(profiles, "alexnet-ddp-text-level1", 0)).observed
    assert found is not None
    table = found.frame[found.frame["bound_ratio"].between(0.4, 0.8, inclusive="left")]
    table = table[(table["mean_ns"] >= 50_000) & (table["in_chain_share"] < 0.5)]
    most = table.iloc[int((table["total_ns"] * (1 - table["bound_ratio"] / 0.8)).argmax())]
    assert worst[:2] == (most["operator"], most["input_shapes"]) == ("TensorMove", "4096,4096")
    assert most["bound"] == "mte2" and most["kernels"] == 1
    assert worst[2] == most["total_ns"] / 1e3 == pytest.approx(204.084)
    assert worst[3] == pytest.approx(most["bound_ratio"]) and worst[3] == pytest.approx(0.510, abs=1e-3)
    # Read and written once, 4 bytes each.
    assert most["bandwidth"] == pytest.approx(2 * 4 * 4096 * 4096 / 204.084e-6)


def test_alexnet_says_nothing_of_relevance(profiles: Path) -> None:
    """Nine tenths of this step wait for another rank: no kernel takes a percent of it below its target."""
    store = real_rank(profiles, "alexnet-ddp-text-level1", 0)
    states = {rule: judge_rule(rule, store).state for rule in (*BOUND_RULES, "PB011", "PB012", "PB014")}
    assert states.pop("PB011") == "not_applicable"  # the model computes in FP32
    assert set(states.values()) == {"pass"}
    low = real_rank(profiles, "alexnet-ddp-text-level0", 0)
    assert {judge_rule(rule, low).state for rule in (*states, "PB011")} == {"cannot_answer"}


# --- What following the advice changes


def test_a_weak_product_takes_what_a_good_one_would() -> None:
    scene = product(1000)
    found = judged("PB011", scene)
    assert shorter(scene.store(chip=CHIP), cure_of(found)) == {0: pytest.approx(found.first.impact_ns, abs=1)}


def test_at_the_highest_clock_the_slow_kernels_are_shorter() -> None:
    scene = clocked(1500)
    sixth = pytest.approx(1_000_000 / 6, abs=1)
    assert shorter(scene.store(chip=CHIP), cure_of(judged("PB014", scene))) == {2: sixth, 3: sixth}


@pytest.mark.parametrize("rule", BOUND_RULES)
def test_a_pipe_that_waits_has_no_cure(rule: str) -> None:
    """How busy a pipe is says at most what could be won: healthy networks have such kernels too."""
    type_, core, pipes, *_ = FIRES[rule]
    found = judged(rule, one(type_, core, 2000, **pipes))
    assert found.observed is not None and found.observed.cure is None
