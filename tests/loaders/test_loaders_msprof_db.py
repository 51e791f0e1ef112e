"""DB exports of msprof: the tables of the PyTorch profiler's database without those of the framework."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from advisor_core.contracts.profile import InputError, Profile, RankInput
from advisor_core.loaders.ascend_pytorch.loader import AscendPytorchLoader
from advisor_core.loaders.discover import discover
from advisor_core.loaders.msprof.db import TABLES
from advisor_core.loaders.msprof.loader import MsprofLoader
from advisor_core.run.pipeline import run
from advisor_core.run.prepared import RunOptions
from tests.loaders import databases

FRAMEWORK = ("PYTORCH_API", "PYTORCH_CALLCHAINS", "CONNECTION_IDS", "STEP_TIME", "META_DATA", "GC_RECORD", "OP_MEMORY")
PROF = "PROF_000001_20260101000000000_ABCD"
NAME = "msprof_20260101000000.db"


def write(root: Path, name: str = NAME, *, without: tuple[str, ...] = (), **how: Any) -> Path:
    """A PROF directory whose only export is a database."""
    databases.write(root / PROF / name, databases.export(without=(*FRAMEWORK, *without), **how))
    return root / PROF


def found(path: Path) -> list[RankInput]:
    return discover([AscendPytorchLoader(), MsprofLoader()], path)


def load(path: Path) -> Profile:
    (source,) = found(path)
    assert source.loader == "msprof" and source.bytes > 0
    return MsprofLoader().load(source)


def said(profile: Profile) -> str:
    return "\n".join(f"{diagnostic.severity}: {diagnostic.message.en}" for diagnostic in profile.diagnostics)


@pytest.mark.parametrize("new", [False, True])
def test_it_reads_what_the_readers_of_the_profiler_read(tmp_path: Path, new: bool) -> None:
    directory = write(tmp_path, new=new)
    framework = databases.rank(tmp_path / "other" / "a_ascend_pt", new=new)
    (source,) = found(framework)
    expected = AscendPytorchLoader().load(source).tables
    profile = load(directory)
    assert profile.kind == "msprof" and profile.framework is None and profile.level == "level1"
    assert set(profile.tables) == set(TABLES) - databases.OF_OPTIONS and "error" not in said(profile)
    kernels = profile.tables["kernels"]
    columns = ["name", "type", "core", "start_ns", "duration_ns", "stream", "input_shapes", "aic_ns"]
    assert kernels.frame[columns].equals(expected["kernels"].frame[columns])
    assert (kernels.frame["step"] == -1).all()
    for name in ("device_tasks", "communication_tasks", "memory_record", "module_memory", "frequency", "overlap"):
        mine, theirs = profile.tables[name].frame, expected[name].frame
        assert len(mine) and mine.drop(columns="source_row").equals(theirs.drop(columns="source_row")), name
    assert set(profile.tables["host_events"].frame["category"]) == {"runtime"}
    assert set(profile.tables["flows"].frame["kind"]) == {"host_to_device"}
    assert kernels.source.file == NAME and kernels.source.sha256 == profile.files[0].sha256
    for name in ("operators", "operator_memory", "step_trace", "collectives"):
        assert name in profile.missing


def test_all_kinds_of_path(tmp_path: Path) -> None:
    directory = write(tmp_path)
    for path in (tmp_path, directory, directory / NAME):
        assert "kernels" in load(path).tables
    (directory / "mindstudio_profiler_output").mkdir()
    shutil.move(directory / NAME, directory / "mindstudio_profiler_output" / NAME)
    assert load(directory).tables["kernels"].source.file == f"mindstudio_profiler_output/{NAME}"


def test_the_rank_that_it_records(tmp_path: Path) -> None:
    tables = databases.export(without=FRAMEWORK)
    for name, rank in (("PROF_000001_20260101000000000_A", 3), ("PROF_000001_20260101000000000_B", 1)):
        more = {"RANK_DEVICE_MAP": ("rankId INTEGER, deviceId INTEGER", [(rank, 0)])}
        databases.write(tmp_path / name / NAME, tables | more)
    assert [(s.rank, s.directory.name[-1]) for s in found(tmp_path)] == [(1, "B"), (3, "A")]


def test_the_newest_of_several(tmp_path: Path) -> None:
    directory = write(tmp_path)
    write(tmp_path, "msprof_20270101000000.db")
    profile = load(directory)
    assert profile.tables["kernels"].source.file == "msprof_20270101000000.db"
    assert NAME in said(profile)


def test_both_exports_the_richer_one_first(tmp_path: Path) -> None:
    """The database that newer versions of msprof leave beside the text export; what one lacks comes from the other."""
    directory = write(tmp_path, without=("MEMORY_RECORD",))
    output = directory / "mindstudio_profiler_output"
    output.mkdir()
    header = "Op Name,OP Type,Task Type,Task Start Time(us),Task Duration(us)\n"
    summary = output / "op_summary_20260101000000.csv"
    summary.write_text(f"{header}k,Add,AI_CORE,1736410576000000.000\t,2\n")
    (output / "memory_record_20260101000000.csv").write_text(
        "Device_id,Component,Timestamp(us),Total Allocated(KB),Total Reserved(KB),Device\n0,GE,1000.000,3,4,NPU:0\n"
    )
    profile = load(directory)
    assert "aclnnAdd_0" in profile.tables["kernels"].frame["name"].tolist()
    assert profile.tables["memory_record"].source.file.endswith(".csv")
    assert "the DB export was read" in said(profile) and "memory_record" in said(profile)
    assert "warning" not in said(profile) and "error" not in said(profile)
    # named alone, a file is read alone
    assert load(summary).tables.keys() == {"kernels"}

    text = tmp_path / "text"
    write(text, without={*databases.export()} - {"STRING_IDS", "AICORE_FREQ"})
    (text / PROF / output.name).mkdir()
    for path in output.iterdir():
        shutil.copy(path, text / PROF / output.name)
    statistic = "Device_id,OP Type,Core Type,Count,Total Time(us)\n0,Add,AI_CORE,1,2\n"
    (text / PROF / output.name / "op_statistic_20260101000000.csv").write_text(statistic)
    profile = load(text)
    assert profile.tables["kernels"].frame["name"].tolist() == ["k"]
    assert profile.tables["frequency"].source.position == "rowid"
    assert "the text export was read" in said(profile) and "frequency" in said(profile)


@pytest.mark.parametrize("content", [b"", b"no database", None])
def test_a_database_beside_a_text_export_that_cannot_be_used(tmp_path: Path, content: bytes | None) -> None:
    directory = write(tmp_path)
    if content is None:  # of two devices
        tables = databases.export(without=FRAMEWORK)
        columns, rows = tables["TASK"]
        tables["TASK"] = (columns, [*rows, [*rows[0][:2], 1, *rows[0][3:]]])
        (directory / NAME).unlink()
        databases.write(directory / NAME, tables)
    else:
        (directory / NAME).write_bytes(content)
    (directory / "mindstudio_profiler_output").mkdir()
    (directory / "mindstudio_profiler_output" / "op_summary_20260101000000.csv").write_text(
        "Op Name,OP Type,Task Type,Task Start Time(us),Task Duration(us)\nk,Add,AI_CORE,1736410576000000.000\t,2\n"
    )
    profile = load(directory)
    assert profile.tables.keys() == {"kernels"}
    assert f"info: {NAME}" in said(profile) and "warning" not in said(profile)


def test_what_it_lacks_is_said_in_options_of_msprof(tmp_path: Path) -> None:
    profile = load(write(tmp_path, without=("CANN_API", "MEMORY_RECORD", "COMPUTE_TASK_INFO")))
    for table, option in (("host_events", "--ascendcl=on"), ("memory_record", "--task-memory=on")):
        missing = profile.missing[table]
        assert NAME in missing.reason.en and missing.collect is not None and option in missing.collect.en
    assert {"device_tasks", "communication_tasks"} <= set(profile.tables)


def test_tasks_alone_do_not_make_communication_idle(tmp_path: Path) -> None:
    without = ("COMPUTE_TASK_INFO", "COMMUNICATION_OP", "COMMUNICATION_TASK_INFO")
    profile = load(write(tmp_path, without=without))
    assert not {"kernels", "device_tasks"} & set(profile.tables)
    assert "COMMUNICATION_OP" in profile.missing["device_tasks"].reason.en


def test_several_devices_are_not_added_up(tmp_path: Path) -> None:
    tables = databases.export(without=FRAMEWORK)
    columns, rows = tables["TASK"]
    tables["TASK"] = (columns, [(*row[:2], number % 2, *row[3:]) for number, row in enumerate(rows)])
    databases.write(tmp_path / PROF / NAME, tables)
    with pytest.raises(InputError, match=r"several devices \(0, 1\)"):
        load(tmp_path)


def test_damage_is_said(tmp_path: Path) -> None:
    directory = write(tmp_path)
    (directory / NAME).write_bytes(b"no database")
    with pytest.raises(InputError, match=NAME):
        load(tmp_path)


def test_a_framework_keeps_its_own(tmp_path: Path) -> None:
    profile = databases.rank(tmp_path / "a_ascend_pt")
    write(profile)
    (source,) = found(tmp_path)
    assert source.loader == "ascend_pytorch"


def test_a_report_of_the_sample(shared_sample: Callable[..., Path], tmp_path: Path) -> None:
    """The sample's database without what the framework recorded: its ledger, of one anonymous step, adds up."""
    (tmp_path / PROF).mkdir()
    path = min(shared_sample(format="db").rglob("ascend_pytorch_profiler_*.db"))
    with closing(sqlite3.connect(shutil.copy(path, tmp_path / PROF / NAME), isolation_level=None)) as database:
        for table in FRAMEWORK:
            database.execute(f"DROP TABLE IF EXISTS {table}")
    result = run([tmp_path / PROF], RunOptions())
    (step,) = result.ledger
    assert step.step is None and sum(entry.ns for entry in step.entries) == step.wall_ns
    paths = {entry.path.split("/")[0] for entry in step.entries}
    assert {"compute", "communication", "idle"} <= paths
    # between two calls into CANN the host may have been in Python or in the framework: neither was recorded
    idle = {entry.path for entry in step.entries if entry.path.startswith("idle/host/")}
    assert "idle/host/unknown" in idle and not idle & {"idle/host/python", "idle/host/framework"}
    assert not [rule.rule for rule in result.rules if rule.state == "error"]
