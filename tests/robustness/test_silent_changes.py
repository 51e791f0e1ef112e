"""No damage to a Kineto trace or to a table of a database changes totals or findings without a word.

``python -m tests.robustness.mutations [TRACE ...]`` does all of them and prints how many there were and how many ended
in silence; here are those of the written trace, of a real one and a quarter of those of a text export where they are
present, and of a database those of the tables that totals are derived from, and of tables of which only the ids in
other tables tell that rows are lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from zlib import crc32

import pytest

from advisor_core.sample import write_sample
from tests.loaders.kineto.build import Recording
from tests.robustness.damage_database import cut_rows, double_rows, drop_rows, drop_table
from tests.robustness.damage_job import stranger
from tests.robustness.mutations import (
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


def silent(runs: Iterable[Ended]) -> list[str]:
    return [f"{name}: {run.why}" for name, run in runs if run.ending == "silent"]


def test_a_written_trace(tmp_path: Path) -> None:
    ended = list(of_trace(training().text(), tmp_path))
    assert silent(ended) == []
    endings = {name: run.ending for name, run in ended}
    assert endings["shuffled"] == endings["reversed"] == endings["drop-all-flows"] == "same"
    assert endings["drop-some-device"] == endings["double-all-device"] == endings["gzip-cut"] == "told"


def test_a_real_trace(profiles: Path, tmp_path: Path) -> None:
    trace = profiles / "kineto" / "bert-small-h100.json.gz"
    if not trace.is_file():
        pytest.skip(f"no real trace at {trace}")
    assert silent(of_trace(trace.read_bytes(), tmp_path)) == []


def test_a_database(tmp_path: Path) -> None:
    (rank, *_) = write_sample(tmp_path, format="db")
    ended = list(of_database(rank, MAIN))
    assert len(ended) == len(MAIN)
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


def one_in_four(*always: str) -> Callable[[str], bool]:
    """A quarter of the damages, always the same ones, and those named: each costs a run."""
    return lambda name: name in always or crc32(name.encode()) % 4 == 0


def test_a_real_trace_of_a_text_export_that_ends_early_or_has_lost_a_key(real_rank: Path) -> None:
    """Counts of kernels and of operator calls in other files tell what the trace has lost."""
    known = (
        *("without correlation_id of arguments", "without src rank of arguments", "cut at 0.3"),
        *("without pid", "without cat", "without id", "without dst rank of arguments"),
    )
    ended = list(of_events(real_rank, one_in_four(*known)))
    assert len(ended) > 15
    assert silent(ended) == []
    assert set(known) <= {name for name, run in ended if run.ending == "told"}


def test_a_real_text_export(real_rank: Path) -> None:
    known = ("npu_module_mem.csv-swapped_columns", "trace_view.json-missing")
    ended = list(of_text(real_rank, one_in_four(*known)))
    assert len(ended) > 25
    assert silent(ended) == []
    assert set(known) <= {name for name, run in ended if run.ending == "told"}


KERNEL_COLUMNS = (
    *("Step Id", "Stream ID", "Name", "Type", "Accelerator Core", "Start Time(us)", "Duration(us)"),
    *("Input Shapes", "Input Data Types", "Output Shapes", "Output Data Types"),
)


def test_columns_and_rows_of_real_kernels(real_rank: Path) -> None:
    """Without shapes or dtypes of either side no rule that follows the data may say that all is in order."""
    ended = [*of_columns(real_rank, {"kernel_details.csv": KERNEL_COLUMNS}), *of_rows(real_rank)]
    assert silent(ended) == []
    endings = {name.removeprefix("kernel_details.csv-"): run.ending for name, run in ended}
    assert endings["Output Shapes-dropped"] == endings["Input Data Types-emptied"] == "open"
    assert endings["Duration(us)-thousandfold"] == endings["Duration(us)-in ns"] == "told"


def test_a_real_trace_of_a_text_export_that_ends_in_an_event(real_rank: Path) -> None:
    assert silent(of_bytes(real_rank)) == []


def test_two_real_ranks_that_are_mixed_up(real_ranks: list[Path], profiles: Path) -> None:
    strangers = [
        profiles / "ascend" / "alexnet-ddp-text-level0" / "rank0_ascend_pt",
        profiles / "ascend" / "gpt3-pp2-2-of-16-ranks" / "rank1_ascend_pt",
    ]
    names = ("kernel_details.csv", "trace_view.json", "step_trace_time.csv", "communication.json")
    ended = list(of_job(*real_ranks, strangers=strangers, names=names))
    assert silent(ended) == []
    why = {name: run.why for name, run in ended}
    assert "DQ020" in why["one rank twice"] and "DQ013" in why["rank0_ascend_pt of alexnet-ddp-text-level0"]


def warnings(made: Recording, folder: Path) -> list[str]:
    result = analysed(made.write(folder / "trace.json"))
    assert result is not None
    return [said.message.en for said in result.diagnostics if said.severity != "info"]


def test_a_lost_kernel_is_told_with_numbers_and_the_last_launch_is_none(tmp_path: Path) -> None:
    assert warnings(training(), tmp_path) == []
    made = training()
    kernels = [event for event in made.events if event["cat"] == "kernel"]
    made.events.remove(kernels[5])
    (said,) = warnings(made, tmp_path)
    assert "launches with a task, and all launches, 39 against 40" in said
    made = training()
    made.events.remove(kernels[-1])  # recording ended before it ran
    assert warnings(made, tmp_path) == []


def test_launches_of_a_captured_graph_and_of_other_devices_have_no_task_here(tmp_path: Path) -> None:
    made = training()
    made.call("cudaStreamBeginCapture_v10000", 13_100, 5, 900).call("cudaLaunchKernel", 13_110, 5, 901)
    made.call("cudaStreamEndCapture_v10000", 13_120, 5, 902).call("cudaLaunchHostFunc_v10000", 13_130, 5, 903)
    assert warnings(made, tmp_path) == []
    made.call("cudaLaunchKernel", 13_200, 5, 904).task("k", 13_210, 5, 904, device=1)
    assert [said for said in warnings(made, tmp_path) if "launches" in said] == []
