"""Totals that two files of a recording both have, on damaged samples, and on real recordings where they are present."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from advisor_core.contracts.tables import DEVICE_TASKS, KERNELS, SCHEMAS, Int64Array, Table
from advisor_core.facts.doubt.compare import compared
from advisor_core.facts.doubt.cross_check import cross_checked
from advisor_core.facts.doubt.marks import tables_behind
from advisor_core.facts.ledger.totals import ledger
from advisor_core.facts.memory import memory_curve
from advisor_core.result.run import RunResult
from advisor_core.run.pipeline import run
from advisor_core.run.prepared import RunOptions
from advisor_core.testing import profile, table
from tests.once import ResultOf

Lines = Callable[[list[str]], list[str]]


class Source:
    """A file by name only."""

    position = "line"
    sha256 = None

    def __init__(self, file: str) -> None:
        self.file = file

    def positions(self, source_rows: Int64Array) -> Int64Array:
        return source_rows

    def tables(self, source_rows: Int64Array) -> tuple[str, ...]:
        return ()


def tables(**frames: tuple[str, list[dict[str, object]]]) -> dict[str, Table]:
    """Canonical tables by name, each with its file and rows."""
    return {name: Table(SCHEMAS[name], table(name, rows), Source(file)) for name, (file, rows) in frames.items()}


def kernels(count: int, type_: str = "Add") -> list[dict[str, object]]:
    return [
        {"type": type_, "name": type_, "core": "AI_VECTOR_CORE", "step": 1, "stream": 2, "task": n, "start_us": 20 * n,
         "duration_us": 10}
        for n in range(count)
    ]  # fmt: skip


def tasks(count: int) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = kernels(count)
    return [
        {"name": row["name"], "task_type": row["core"], "start_us": row["start_us"], "duration_us": 10} for row in rows
    ]


def statistic(count: int, type_: str = "Add") -> list[dict[str, object]]:
    return [{"type": type_, "core": "AI_VECTOR_CORE", "count": count, "total_us": 10 * count}]


def test_what_agrees_is_compared_and_not_doubted() -> None:
    checked = cross_checked(profile(tables=tables(kernels=("k", kernels(10)), op_statistic=("o", statistic(10)))))
    assert (checked.doubt.compared, checked.doubt.disagreements) == (1, ())
    assert KERNELS.name in checked.tables


def test_the_table_that_two_others_contradict_is_doubted() -> None:
    three = tables(kernels=("k", kernels(8)), op_statistic=("o", statistic(10)), device_tasks=("t", tasks(10)))
    checked = cross_checked(profile(tables=three))
    assert {one.table for one in checked.doubt.disagreements} == {KERNELS.name}
    assert checked.doubt.withheld == {KERNELS.name}
    assert "8 against 10" in checked.missing[KERNELS.name].reason.en
    three = tables(kernels=("k", kernels(10)), op_statistic=("o", statistic(10)), device_tasks=("t", tasks(8)))
    assert cross_checked(profile(tables=three)).doubt.withheld == {DEVICE_TASKS.name}


def test_a_sum_of_complete_data_is_believed_and_one_that_stands_alone_against_two_is_not() -> None:
    two = tables(kernels=("k", kernels(199)), op_statistic=("o", statistic(200)))
    doubt = cross_checked(profile(tables=two)).doubt
    assert {one.table for one in doubt.disagreements} == {KERNELS.name}
    assert not doubt.withheld and not doubt.marked  # one of 200: told, no more
    three = tables(kernels=("k", kernels(10)), op_statistic=("o", statistic(20)), device_tasks=("t", tasks(10)))
    doubt = cross_checked(profile(tables=three)).doubt
    assert {one.table for one in doubt.disagreements} == {"op_statistic"}
    assert not doubt.withheld


def test_types_that_are_swapped_are_told_though_the_sums_agree() -> None:
    mixed = [*kernels(5, "Add"), *kernels(5, "Mul")]
    said = [*statistic(6, "Add"), *statistic(4, "Mul")]
    doubt = cross_checked(profile(tables=tables(kernels=("k", mixed), op_statistic=("o", said)))).doubt
    told = {one.total.en: (one.value, one.other) for one in doubt.disagreements}
    assert "number of kernels of type Add, Mul" in told


def test_rows_that_stand_twice_speak_for_themselves() -> None:
    doubled = [row for row in kernels(10) for _ in range(2)]
    doubt = cross_checked(profile(tables=tables(kernels=("k", doubled), device_tasks=("t", tasks(10))))).doubt
    assert {one.table for one in doubt.disagreements} == {KERNELS.name}
    assert doubt.withheld == {KERNELS.name}


@pytest.mark.parametrize("away_us", [0, 3.5e9, -3.5e9])
def test_samples_of_memory_within_an_hour_of_the_kernels_are_of_the_recording(away_us: float) -> None:
    rows = [{"component": "HCCL", "time_us": away_us + 20 * n, "reserved_bytes": 1.0} for n in range(3)]
    for name in ("module_memory", "memory_record"):
        said = tables(kernels=("k", kernels(3)), **{name: ("m", rows)})
        assert cross_checked(profile(tables=said)).doubt.disagreements == ()


@pytest.mark.parametrize("away_us", [3.7e9, -3.7e9])
@pytest.mark.parametrize("name", ["module_memory", "memory_record"])
def test_samples_of_memory_from_another_time_are_not_used(name: str, away_us: float) -> None:
    """Sizes that stand in the column of the times are such, too."""
    rows = [{"component": "HCCL", "time_us": away_us + 20 * n, "reserved_bytes": 1.0} for n in range(3)]
    checked = cross_checked(profile(tables=tables(kernels=("k", kernels(3)), **{name: ("m", rows)})))
    (said,) = checked.doubt.disagreements
    assert (said.table, said.value, said.other) == (name, away_us * 1_000, 0)
    assert checked.doubt.withheld == {name} and name not in checked.tables and name in checked.missing


def test_allocations_from_another_time_are_not_used() -> None:
    """Those before the recording have no time, and tell nothing."""
    known = [{"name": "aten::empty", "bytes": 8.0, "allocation_us": 3.7e9}]
    before = [{"name": "aten::empty", "bytes": 8.0}]
    for rows, lost in ((known + before, {"operator_memory"}), (before, set())):
        said = tables(kernels=("k", kernels(3)), operator_memory=("m", rows))
        assert cross_checked(profile(tables=said)).doubt.withheld == lost


def test_nothing_is_compared_where_one_file_stands_alone() -> None:
    assert compared([], {}) == (0, [])
    assert cross_checked(profile(tables=tables(kernels=("k", kernels(3))))).doubt.compared == 0


def test_what_a_value_may_be_derived_from_is_read_off_the_declarations() -> None:
    assert {"kernels", "step_trace"} <= tables_behind([ledger])
    assert "kernels" not in tables_behind([SCHEMAS["memory_record"]])
    assert "memory_record" in tables_behind([memory_curve])


@pytest.fixture(scope="module")
def sample(shared_sample: Callable[..., Path]) -> Path:
    return shared_sample("item-synchronisation")


def changed(sample: Path, folder: Path, change: Lines, *, without: tuple[str, ...] = ()) -> RunResult:
    """The report on the sample with other rows in kernel_details.csv."""
    for path in sorted(sample.rglob("*")):
        target = folder / path.relative_to(sample)
        if path.is_dir():
            target.mkdir(parents=True, exist_ok=True)
        elif path.name not in without:
            target.parent.mkdir(parents=True, exist_ok=True)
            lines = path.read_text(encoding="utf-8").splitlines() if path.name == "kernel_details.csv" else None
            target.write_bytes(path.read_bytes() if lines is None else "\n".join(change(lines)).encode())
    return run([folder], RunOptions(), jobs=1)


def drop(every: int) -> Lines:
    return lambda lines: [line for number, line in enumerate(lines) if number == 0 or number % every]


def double(every: int) -> Lines:
    return lambda lines: [
        line for number, line in enumerate(lines) for _ in range(1 if number == 0 or number % every else 2)
    ]


def test_a_sound_recording_is_not_doubted(result_of: ResultOf, sample: Path) -> None:
    result = result_of(sample)
    assert not any(finding.doubted for finding in result.findings)
    assert next(rule for rule in result.rules if rule.rule == "DQ016").state == "pass"


@pytest.mark.parametrize("change", [drop(100), double(100)], ids=["missing", "doubled"])
def test_a_table_that_is_a_little_off_marks_what_hangs_on_it(sample: Path, tmp_path: Path, change: Lines) -> None:
    result = changed(sample, tmp_path, change)
    doubted = [finding.doubted for finding in result.findings]
    assert any(doubted) and doubted == sorted(doubted)  # those stand last
    for finding in result.findings:
        if finding.doubted:
            assert finding.confidence != "high"
            assert any("kernel_details.csv" in caveat.en for caveat in finding.caveats)
    assert next(rule for rule in result.rules if rule.rule == "DQ016").state == "fail"
    said = [diagnostic.message.en for diagnostic in result.diagnostics]
    assert any("kernel_details.csv disagrees with" in text and "op_statistic.csv" in text for text in said)


@pytest.mark.parametrize("change", [drop(2), double(2)], ids=["missing", "doubled"])
def test_where_kernels_are_withheld_the_trace_stands_in(
    result_of: ResultOf, sample: Path, tmp_path: Path, change: Lines
) -> None:
    sound = result_of(sample)
    result = changed(sample, tmp_path / "damaged", change)
    assert [step.step for step in result.ledger] == [step.step for step in sound.ledger]  # by the marks of the host
    wall, other = (sum(step.wall_ns for step in each.ledger) for each in (sound, result))
    assert other == pytest.approx(wall, rel=0.01)
    idle, other_idle = (
        sum(entry.ns for step in each.ledger for entry in step.entries if entry.path.startswith("idle/"))
        for each in (sound, result)
    )
    assert other_idle == pytest.approx(idle, rel=0.02)
    refused = [rule for rule in result.rules if rule.state == "cannot_answer" and rule.reason]
    assert any("kernel_details.csv disagrees with" in rule.reason.en for rule in refused if rule.reason)


def test_without_a_trace_the_exporter_tells_the_parts(sample: Path, tmp_path: Path) -> None:
    result = changed(sample, tmp_path, lambda lines: lines[:20], without=("trace_view.json",))
    assert [step.step for step in result.ledger] == [10, 11, 12]
    for step in result.ledger:
        assert {entry.path for entry in step.entries} == {
            "compute/unknown", "communication/unknown", "idle/unknown",
        }  # fmt: skip
        assert all(entry.reason and "step_trace_time.csv" in entry.reason.en for entry in step.entries)
    assert all(step.start_ns is None for step in result.profile.steps)


def test_without_launches_it_is_said_that_savings_are_time_of_kernels(
    result_of: ResultOf, sample: Path, tmp_path: Path
) -> None:
    """A warning where the list of operators tells that the host was recorded."""
    lost = changed(sample, tmp_path / "lost", list, without=("trace_view.json",))
    (said,) = [one for one in lost.diagnostics if "launches of the host are not known" in one.message.en]
    assert said.severity == "warning" and said.source.endswith("operator_details.csv")
    never = changed(sample, tmp_path / "never", list, without=("trace_view.json", "operator_details.csv"))
    (said,) = [one for one in never.diagnostics if "launches of the host are not known" in one.message.en]
    assert said.severity == "info"
    assert not [one for one in result_of(sample).diagnostics if "launches of the host" in one.message.en]


def test_kernels_of_two_of_sixteen_ranks_are_cut(result_of: ResultOf, profiles: Path) -> None:
    """By step_trace_time.csv the device is idle for 24.0 and 23.0 %, not for the 86 % of the rows that are left."""
    folder = profiles / "ascend" / "gpt3-pp2-2-of-16-ranks"
    result = result_of(folder / "rank0_ascend_pt", folder / "rank1_ascend_pt")
    idle = next(finding for finding in result.findings if finding.rule == "HD001")
    assert idle.observation["idle_share"] == pytest.approx(69.9095 / 291.698, abs=1e-4)
    shares = {step.rank: {entry.path: entry.ns / 1e6 for entry in step.entries} for step in result.ledger}
    assert shares[0] == pytest.approx(
        {"compute/unknown": 75.175, "communication/unknown": 146.614, "idle/unknown": 69.910}, abs=1e-3
    )
    assert shares[1]["idle/unknown"] == pytest.approx(67.861, abs=1e-3)
    said = " ".join(diagnostic.message.en for diagnostic in result.diagnostics)
    assert "27.131 ms against 75.175 ms" in said and "number of collectives 4 against 28" in said
    assert next(rule for rule in result.rules if rule.rule == "DQ016").ranks["fail"] == [0, 1]


def test_samples_of_memory_that_the_publisher_took_from_elsewhere(result_of: ResultOf, profiles: Path) -> None:
    """One file is eleven months younger than the kernels, one is of a vision model and four months younger; of the third
    a spreadsheet left six digits of each time."""
    folder = profiles / "ascend" / "gpt3-pp2-2-of-16-ranks"
    result = result_of(folder / "rank0_ascend_pt", folder / "rank1_ascend_pt")
    said = [one.message.en for one in result.diagnostics if "time of the first row" in one.message.en]
    names = ("npu_module_mem.csv", "operator_memory.csv", "memory_record.csv")
    younger, other_model, rounded = (
        next(text for text in said if name in text.split(" disagrees")[0]) for name in names
    )
    assert len(said) == 3
    assert "operator_memory.csv" in other_model and "1706704429088.523 ms against 1695115378" in other_model
    assert "npu_module_mem.csv" in younger and "1724670453385.978 ms against 1695115378" in younger
    assert "memory_record.csv" in rounded and "1695120000000.000 ms against 1695115378" in rounded


REAL = (
    "alexnet-ddp-db-level1",
    "alexnet-ddp-text-level0",
    "alexnet-ddp-text-level1",
    "gpt3-kernel-details-only_ascend_pt",
    "mindspore-alexnet-2-ranks-msprof",
    "trace-view-only_ascend_pt",
)


@pytest.mark.parametrize("name", REAL)
def test_a_whole_real_recording_is_not_doubted(result_of: ResultOf, profiles: Path, name: str) -> None:
    result = result_of(profiles / "ascend" / name)
    assert not any("disagree" in diagnostic.message.en for diagnostic in result.diagnostics)
    assert not any(finding.doubted for finding in result.findings)
