"""No damage to a trace or to a table changes totals or findings without a word.

``python -m tests.robustness.mutations [PATH ...]`` does all damages, to what is written and to what is given, and
prints how many there were and how many ended in silence. Here each stands for the others that the same check meets: one
damage for each message in each kind of file, with a part of what is said. Where nothing is said, nothing may change.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import pytest

from tests.loaders.kineto.build import Recording
from tests.robustness.damage_database import cut_rows, double_rows, drop_rows, drop_table
from tests.robustness.damage_job import stranger
from tests.robustness.mutations import (
    SEED,
    Ended,
    of_bytes,
    of_columns,
    of_database,
    of_events,
    of_job,
    of_rows,
    of_text,
    of_trace,
    training,
)
from tests.robustness.silence import analysed

MAIN = (
    *[(table, change) for table in ("TASK", "COMPUTE_TASK_INFO") for change in (drop_table, drop_rows, double_rows)],
    *[("COMMUNICATION_OP", drop_rows), ("CommAnalyzerTime", double_rows), ("StepTraceTime", double_rows)],
    *[("CommAnalyzerBandwidth", cut_rows), ("COMMUNICATION_TASK_INFO", drop_rows), ("CONNECTION_IDS", drop_table)],
    *[("PYTORCH_API", drop_table), ("PYTORCH_API", cut_rows), ("STRING_IDS", cut_rows), ("TASK_PMU_INFO", drop_rows)],
)
"""Tables, and what is done to each."""
FEW = 8
"""Each eighth of them is done with every change of the project."""


def silent(runs: Iterable[Ended]) -> list[str]:
    return [f"{name}: {run.why}" for name, run in runs if run.ending == "silent"]


def said(runs: Iterable[Ended]) -> dict[str, str]:
    """The words of each run, none of which may be silent; without a word where nothing has changed."""
    ended = list(runs)
    assert silent(ended) == []
    return {name: run.why for name, run in ended}


def assert_said(runs: Iterable[Ended], expected: Mapping[str, str]) -> None:
    """Each damage is done, and told in these words."""
    told = said(runs)
    assert set(told) == set(expected)
    for name, words in expected.items():
        assert words in told[name] and bool(words) == bool(told[name]), f"{name}: {told[name]}"


OF_A_TRACE = {
    "drop-all-device": "GDQ005",
    "drop-all-runtime": "has no call of the runtime that launched a kernel",
    "drop-all-operators": "GDQ005",
    "drop-all-steps": "GDQ003",
    "drop-some-steps": "GDQ008",
    "drop-some-device": "launches with a task, and all launches",
    "drop-some-runtime": "calls of the runtime are missing",
    "double-some-device": "rows without those that stand twice",
    "no-ts-device": "have no possible start, duration or value",
    "no-dur-operators": "have no possible start, duration or value",
    "wrong-dur-runtime": "have no possible start, duration or value",
    "no-args-operators": "have lost the id",
    "wrong-args-device": "have lost the id",
    "no-ts-anywhere": "exit code 3",
    "no-cat-anywhere": "exit code 3",
    "nanoseconds-device": "without what kernels of one stream run at once",
    "nanoseconds-runtime": "calls that lie within or beside the others",
    "early-device": "tasks that began after their launch",
    "gzip-cut": "is cut off at byte",
    "gzip-flipped_bits": "the compressed data are damaged",
    "drop-all-flows": "",
    "double-some-runtime": "",
    "double-all-operators": "",
    "double-all-steps": "",
    "shuffled": "",
    "reversed": "",
}
"""Words that are told of a written trace; of the last ones nothing is lost that answers hang on."""


SAID_AS_OTHERS = (
    *("drop-all-operators", "wrong-dur-runtime", "no-dur-operators", "wrong-args-device", "no-cat-anywhere"),
    *("double-some-runtime", "double-all-operators", "double-all-steps", "reversed"),
)
"""Damages of which the same is told as of others of these."""


@pytest.mark.parametrize("part", [0, pytest.param(1, marks=pytest.mark.search)], ids=["each word", "the others"])
def test_a_written_trace(tmp_path: Path, part: int) -> None:
    expected = {name: words for name, words in OF_A_TRACE.items() if (name in SAID_AS_OTHERS) == bool(part)}
    assert_said(of_trace(training().text(), tmp_path, expected.__contains__), expected)


@pytest.mark.search
def test_a_real_trace(profiles: Path, tmp_path: Path) -> None:
    trace = profiles / "kineto" / "bert-small-h100.json.gz"
    if not trace.is_file():
        pytest.skip(f"no real trace at {trace}")
    assert silent(of_trace(trace.read_bytes(), tmp_path, OF_A_TRACE.__contains__)) == []


@pytest.mark.parametrize("part", [0, pytest.param(1, marks=pytest.mark.search)], ids=["a few", "the others"])
def test_a_database(shared_sample: Callable[..., Path], tmp_path: Path, part: int) -> None:
    damages = MAIN[::FEW] if part == 0 else [damage for number, damage in enumerate(MAIN) if number % FEW]
    whole = min(shared_sample(format="db").iterdir())
    rank = Path(shutil.copytree(whole, tmp_path / whole.name))
    ended = list(of_database(rank, damages))
    assert len(ended) == len(damages)
    assert silent(ended) == []


@pytest.fixture
def real_ranks(profiles: Path, tmp_path: Path) -> list[Path]:
    """Copies of the two ranks of a real text export, in a folder of their own, that may be changed."""
    real = profiles / "ascend" / "alexnet-ddp-text-level1"
    if not real.is_dir():
        pytest.skip(f"no real profile at {real}")
    stranger(real)(tmp_path / "job")
    return sorted((tmp_path / "job").iterdir())


@pytest.fixture
def real_rank(real_ranks: list[Path]) -> Path:
    return real_ranks[0]


OF_EVENTS = {
    "cut at 0.3": "no events of the kind Ascend Hardware",
    "cut at 0.5": "trace_view.json disagrees with ASCEND_PROFILER_OUTPUT/api_statistic.csv",
    "without cat": "trace_view.json disagrees with ASCEND_PROFILER_OUTPUT/operator_details.csv",
    "without id": "have no possible start, duration or value",
    "without pid": "no events of the kind Ascend Hardware",
    "without correlation_id of arguments": "names the call that it comes from (correlation_id)",
    "without dst rank of arguments": "none the rank it spoke to",
    "without src rank of arguments": "names its own (src rank)",
    "step marks twice": "",
}


@pytest.mark.search
def test_a_real_trace_of_a_text_export_that_ends_early_or_has_lost_a_key(real_rank: Path) -> None:
    """Counts of kernels and of operator calls in other files tell what the trace has lost."""
    assert_said(of_events(real_rank, OF_EVENTS.__contains__), OF_EVENTS)


OF_TEXT = {
    "communication_matrix.json-cut": "is not valid JSON",
    "kernel_details.csv-twice": "finding DQ011; finding DQ016",
    "kernel_details.csv-cut_rows": "kernel_details.csv disagrees with ASCEND_PROFILER_OUTPUT/communication.json",
    "kernel_details.csv-one_row": "communication of step 50 0.000 ms",
    "memory_record.csv-lost_column": "memory_record.csv has no column Timestamp(us)",
    "npu_module_mem.csv-swapped_columns": "npu_module_mem.csv disagrees with ASCEND_PROFILER_OUTPUT/kernel_details.csv",
    "op_statistic.csv-double_rows": "op_statistic.csv disagrees with ASCEND_PROFILER_OUTPUT/kernel_details.csv",
    "operator_details.csv-shuffled_rows": "HD003 cannot be answered",
    "operator_memory.csv-swapped_columns": "operator_memory.csv disagrees with ASCEND_PROFILER_OUTPUT/kernel_details",
    "trace_view.json-missing": "the launches of the host are not known",
    "trace_view.json-drop_events": "trace_view.json disagrees with ASCEND_PROFILER_OUTPUT/api_statistic.csv",
    "communication.json-missing": "",
    "api_statistic.csv-cut_rows": "",
}


@pytest.mark.search
def test_a_real_text_export(real_rank: Path) -> None:
    assert_said(of_text(real_rank, OF_TEXT.__contains__), OF_TEXT)


OF_KERNELS = {
    "Duration(us)-in ns": "has no column Duration(us)",
    "Duration(us)-thousandfold": "summed time of collectives",
    "Start Time(us)-thousandfold": "a header but no usable row",
    "Start Time(us)-exchanged": "time in which kernels run",
    "Name-emptied": "in the column Name",
    "Type-emptied": "DQ001",
    "Accelerator Core-dropped": "communication of step 50 0.000 ms",
    "Input Shapes-emptied": "NS016 cannot be answered",
    "Input Data Types-emptied": "NS016 cannot be answered",
    "Output Shapes-dropped": "NS016 cannot be answered",
    "Output Data Types-dropped": "NS016 cannot be answered",
    "Step Id-dropped": "",
    "Stream ID-dropped": "",
}


@pytest.mark.search
def test_columns_and_rows_of_real_kernels(real_rank: Path) -> None:
    """Without shapes or dtypes of either side no rule that follows the data may say that all is in order."""
    expected = {f"kernel_details.csv-{name}": words for name, words in OF_KERNELS.items()}
    assert_said(of_columns(real_rank, expected.__contains__), expected)
    assert silent(of_rows(real_rank, [SEED])) == []


@pytest.mark.parametrize(
    "shares", [(0.7,), pytest.param((0.3, 0.99), marks=pytest.mark.search)], ids=["among tasks", "before and behind"]
)
def test_a_real_trace_of_a_text_export_that_ends_in_an_event(real_rank: Path, shares: tuple[float, ...]) -> None:
    """Before the first task of the device, among them, and behind the last."""
    told = said(of_bytes(real_rank, shares))
    assert all("is cut off at byte" in words for words in told.values()) and len(told) == len(shares)


@pytest.mark.search
def test_two_real_ranks_that_are_mixed_up(real_ranks: list[Path], profiles: Path) -> None:
    strangers = [
        profiles / "ascend" / "alexnet-ddp-text-level0" / "rank0_ascend_pt",
        profiles / "ascend" / "gpt3-pp2-2-of-16-ranks" / "rank1_ascend_pt",
    ]
    names = ("kernel_details.csv", "trace_view.json", "step_trace_time.csv", "communication.json")
    why = said(of_job(*real_ranks, strangers=strangers, names=names))
    assert "DQ020" in why["one rank twice"] and "DQ013" in why["rank0_ascend_pt of alexnet-ddp-text-level0"]


def warnings(made: Recording, folder: Path) -> list[str]:
    result = analysed(made.write(folder / "trace.json"))
    assert result is not None
    return [one.message.en for one in result.diagnostics if one.severity != "info"]


def test_a_lost_kernel_is_told_with_numbers_and_the_last_launch_is_none(tmp_path: Path) -> None:
    assert warnings(training(), tmp_path) == []
    made = training()
    kernels = [event for event in made.events if event["cat"] == "kernel"]
    made.events.remove(kernels[5])
    (warning,) = warnings(made, tmp_path)
    assert "launches with a task, and all launches, 39 against 40" in warning
    made = training()
    made.events.remove(kernels[-1])  # recording ended before it ran
    assert warnings(made, tmp_path) == []


def test_launches_of_a_captured_graph_and_of_other_devices_have_no_task_here(tmp_path: Path) -> None:
    made = training()
    made.call("cudaStreamBeginCapture_v10000", 13_100, 5, 900).call("cudaLaunchKernel", 13_110, 5, 901)
    made.call("cudaStreamEndCapture_v10000", 13_120, 5, 902).call("cudaLaunchHostFunc_v10000", 13_130, 5, 903)
    assert warnings(made, tmp_path) == []
    made.call("cudaLaunchKernel", 13_200, 5, 904).task("k", 13_210, 5, 904, device=1)
    assert [one for one in warnings(made, tmp_path) if "launches" in one] == []
