"""What the scenarios promise: known problems in one, none of them in the healthy ones."""

from __future__ import annotations

import filecmp
from collections.abc import Callable
from pathlib import Path

import pytest

from advisor_core.sample import SCENARIOS, Scenario, write_sample
from advisor_core.sample.job import simulate
from tests.sample.conftest import LONG, TRANSFORMERS
from tests.sample.export import Export, Row, ns
from tests.sample.small import small

Samples = Callable[[str | Scenario], list[Export]]


def files(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


def steps(export: Export) -> list[dict[str, float]]:
    return [{key: float(value) for key, value in row.items()} for row in export.table("step_trace_time.csv")]


def types(export: Export) -> set[str]:
    return {row["Type"] for row in export.kernels}


def test_the_same_seed_writes_the_same_bytes(tmp_path: Path, sample: Samples) -> None:
    again = write_sample(tmp_path / "again", scenario="healthy-training-single")
    before = [export.root for export in sample("healthy-training-single")]
    assert [path.name for path in again] == [path.name for path in before]
    for left, right in zip(before, again, strict=True):
        assert filecmp.cmpfiles(left, right, files(left), shallow=False)[0] == files(left) == files(right)


def test_another_seed_writes_another_profile(tmp_path: Path, sample: Samples) -> None:
    (other,) = write_sample(tmp_path, scenario="healthy-training-single", seed=1)
    first = sample("healthy-training-single")[0].output / "kernel_details.csv"
    assert (other / "ASCEND_PROFILER_OUTPUT" / "kernel_details.csv").read_bytes() != first.read_bytes()


@pytest.mark.parametrize(
    ("argument", "known"),
    [("scenario", "transformer-training"), ("format", "text, db"), ("level", "level_none"), ("headers", "2024")],
)
def test_unknown_names_are_rejected_with_the_known_ones(tmp_path: Path, argument: str, known: str) -> None:
    with pytest.raises(ValueError, match=f"'csv'.*{known}"):
        write_sample(tmp_path / "out", **{argument: "csv"})  # type: ignore[arg-type]
    assert not (tmp_path / "out").exists()


def test_scenarios_are_described() -> None:
    for name, scenario in SCENARIOS.items():
        assert scenario.name == name
        assert scenario.description.en and scenario.description.zh
        assert bool(scenario.problems) == (not name.startswith("healthy"))


def test_an_export_has_the_ranks_and_steps_of_its_scenario(sample: Samples) -> None:
    whole = [SCENARIOS[name] for name in ("transformer-training", "healthy-training", "healthy-training-single")]
    for scenario, exports in (
        *((scenario, sample(scenario.name)) for scenario in whole),
        (small("slow-link"), sample(small("slow-link"))),
    ):
        assert len(exports) == scenario.ranks
        assert all(len(steps(export)) == scenario.steps >= 2 for export in exports)


def wall(scenario: Scenario) -> float:
    """Mean time of a step, ns."""
    timelines = simulate(scenario, 0)
    return (max(t.end for t in timelines) - min(t.start for t in timelines)) / scenario.steps


@pytest.mark.parametrize(
    ("name", "at_least"),
    [("launch-blocking", 0.2), ("unfused-cross-entropy", 0.1), ("unaligned-vocabulary", 0.1), ("slow-link", 0.1)],
)
def test_a_cure_makes_the_step_shorter(name: str, at_least: float) -> None:
    scenario = SCENARIOS[name]
    (cause,) = scenario.causes
    assert wall(scenario.cured(cause)) < (1 - at_least) * wall(scenario)
    assert scenario.cured(cause).setup == scenario.job


def test_only_a_cause_that_is_there_can_be_cured() -> None:
    scenario = SCENARIOS["healthy-training"]
    with pytest.raises(ValueError, match="slow-link"):
        scenario.cured(SCENARIOS["slow-link"].causes[0])


def test_a_late_rank_keeps_the_others_waiting() -> None:
    timelines = simulate(SCENARIOS["late-rank-by-clock"], 0)
    waits = [sum(c.end - c.start for c in timeline.collectives) for timeline in timelines]
    assert min(waits) == waits[1] < 0.7 * min(waits[0], *waits[2:])


def test_without_a_task_queue_the_operators_call_cann_themselves() -> None:
    (timeline,) = simulate(SCENARIOS["task-queue-off"], 0)
    assert not timeline.queue
    assert {call.tid for call in timeline.cann} == {timeline.pid, timeline.autograd_tid}


def test_launch_blocking_waits_after_every_operator() -> None:
    (timeline,) = simulate(SCENARIOS["launch-blocking"], 0)
    names = [call.name for call in timeline.cann]
    assert names.count("AscendCL@aclrtSynchronizeStreamWithTimeout") == len(timeline.kernels)
    assert timeline.variables == {"ASCEND_LAUNCH_BLOCKING": "1"}


def test_garbage_is_collected_only_where_it_is_a_cause() -> None:
    (collecting,), (clean,) = (simulate(SCENARIOS[name], 0) for name in ("garbage-collection", "unfused-swiglu"))
    assert collecting.collections and not clean.collections
    assert collecting.gc_threshold_ms == 1.0


def test_shares_of_the_step_are_believable(sample: Samples) -> None:
    for export in sample("transformer-training"):
        for step in steps(export):
            assert 0.15 < step["Free"] / step["Stage"] < 0.25
            assert 0.10 < step["Communication(Not Overlapped)"] / step["Stage"] < 0.25
    for export in (*sample("healthy-training"), *sample("healthy-training-single")):
        for step in steps(export):
            assert step["Free"] / step["Stage"] < 0.01
            assert step["Communication(Not Overlapped)"] / step["Stage"] < 0.05


def test_fused_operators_replace_the_chains(sample: Samples) -> None:
    plain, tuned = (types(sample(name)[0]) for name in ("transformer-training", "healthy-training"))
    fused = {"RmsNorm", "SwiGlu", "RotaryPositionEmbedding", "CrossEntropyLoss", "ApplyAdamWV2"}
    chains = {"Pows", "Rsqrt", "Swish", "Neg", "Exp", "Addcdiv", "Slice", "TransData", "Transpose", "Cast"}
    assert fused <= tuned and not fused & plain
    assert chains <= plain and not chains & tuned
    assert {"FlashAttentionScore", "FlashAttentionScoreGrad"} <= plain & tuned


def matmuls(export: Export) -> list[Row]:
    return [row for row in export.kernels if row["Type"] == "MatMulV3"]


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_every_matmul_works_on_all_tokens(name: str, sample: Samples) -> None:
    export = sample(small(name) if name in LONG else name)[0]
    pipeline = any(row["Name"].startswith("hcom_send__") for row in export.kernels)
    tokens = "4096" if pipeline else "8192"
    for row in matmuls(export):
        shapes = [shape.split(",") for shape in row["Input Shapes"].strip('"').split(";")]
        packed = ["512", "16", "16"]  # 8192 rows in fractal format
        assert any(tokens in shape or shape[1:] == packed for shape in shapes)
        assert all(len(shape) == 2 or shape[1:] == packed for shape in shapes)


def test_the_unaligned_vocabulary_slows_its_matmul(sample: Samples) -> None:
    slow = [row for row in matmuls(sample("transformer-training")[0]) if row["Accelerator Core"] == "MIX_AIC"]
    assert {row["Input Shapes"] for row in slow} == {'"8192,50257;50257,2048"'}
    tuned = [row for row in matmuls(sample("healthy-training")[0]) if row["Input Shapes"] == '"8192,50432;50432,2048"']
    assert {row["Accelerator Core"] for row in tuned} == {"AI_CORE"}
    assert min(float(row["Duration(us)"]) for row in slow) > 2 * max(float(row["Duration(us)"]) for row in tuned)


def test_two_slices_read_one_merged_projection(sample: Samples) -> None:
    shapes = [row["Input Shapes"] for row in sample("transformer-training")[0].kernels if row["Type"] == "Slice"]
    assert shapes.count('"8192,11264"') == 2 * SCENARIOS["transformer-training"].training.shape.layers * 2


def test_small_matmuls_share_an_input(sample: Samples) -> None:
    widths = [row["Input Shapes"] for row in matmuls(sample("transformer-training")[0])]
    assert widths.count('"8192,2048;512,2048"') == 2 * widths.count('"8192,2048;3072,2048"') + 12
    assert '"8192,2048;3072,2048"' in {row["Input Shapes"] for row in matmuls(sample("healthy-training")[0])}


def test_synchronisation_compilation_and_loading(sample: Samples) -> None:
    def count(export: Export, name: str) -> int:
        return sum(int(row["Count"]) for row in export.table("api_statistic.csv") if row["API Name"] == name)

    plain, tuned = (sample(name)[0] for name in ("transformer-training", "healthy-training"))
    assert count(plain, "aclrtSynchronizeStreamWithTimeout") > 40
    assert count(tuned, "aclrtSynchronizeStreamWithTimeout") == 2
    assert count(plain, "aclopCompileAndExecute") >= 20
    assert count(tuned, "aclopCompileAndExecute") == count(tuned, "opCompile") == 0
    loading = [
        max(e["dur"] for e in export.lane("Python") if e["name"].startswith("enumerate(DataLoader)"))
        for export in sample("transformer-training")
    ]
    assert loading[0] < 5_000 < 10_000 < loading[1]


def test_the_host_is_ahead_only_when_healthy(sample: Samples) -> None:
    """Lead of a kernel: from the launch on the host to its start on the device."""

    def leads(export: Export) -> list[int]:
        flows: dict[str, int] = {}
        for event in export.trace:
            if event.get("cat") == "HostToDevice":
                sign = 1 if event["ph"] == "f" else -1
                flows[event["id"]] = flows.get(event["id"], 0) + sign * ns(event["ts"])
        return sorted(flows.values())

    plain, tuned = (leads(sample(name)[0]) for name in ("transformer-training", "healthy-training"))
    assert sum(lead < 20_000 for lead in plain) > 0.3 * len(plain)
    assert sum(lead < 20_000 for lead in tuned) < 0.02 * len(tuned)


def test_gradients_are_hidden_only_when_healthy(sample: Samples) -> None:
    """But for the last ones: those of the large table, two fifths of all bytes, are ready when nothing else is left."""
    assert all(step["Overlapped"] == 0 for step in steps(sample("transformer-training")[0]))
    assert all(step["Overlapped"] > 0.5 * step["Communication"] for step in steps(sample("healthy-training")[0]))


def test_one_rank_starts_late(sample: Samples) -> None:
    early, late = (steps(export) for export in sample("transformer-training"))
    for first, second in zip(early, late, strict=True):
        assert second["Preparing"] > first["Preparing"] + 5_000
        assert first["Communication"] > second["Communication"] + 5_000
