"""The real DB export, checked against plain SQL on the same files and against what the exporter computed itself."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from advisor_core.contracts.profile import Profile
from advisor_core.contracts.tables import SCHEMAS
from advisor_core.facts.ledger.settled import bookings
from advisor_core.facts.steps.timeline import timeline
from advisor_core.loaders.ascend_pytorch.loader import AscendPytorchLoader
from advisor_core.loaders.discover import discover
from advisor_core.plugins.host import load_host
from advisor_core.run.rank import fact_store

Ask = Callable[[str], list[tuple[Any, ...]]]
NOT_OF_COLLECTIVES = "globalTaskId NOT IN (SELECT globalTaskId FROM COMMUNICATION_TASK_INFO)"


@pytest.fixture(scope="module", params=[0, 1])
def real(request: pytest.FixtureRequest, profiles: Path) -> tuple[Path, Profile]:
    directory = profiles / "alexnet-ddp-db-level1" / f"rank{request.param}_ascend_pt"
    before = {path: path.stat().st_mtime_ns for path in sorted(directory.rglob("*"))}
    (source,) = discover([AscendPytorchLoader()], directory)
    profile = AscendPytorchLoader().load(source)
    assert {path: path.stat().st_mtime_ns for path in sorted(directory.rglob("*"))} == before
    return directory / "ASCEND_PROFILER_OUTPUT", profile


def asker(path: Path) -> Ask:
    def ask(query: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True)) as database:
            return database.execute(query).fetchall()

    return ask


@pytest.fixture(scope="module")
def ask(real: tuple[Path, Profile]) -> Ask:
    output, profile = real
    return asker(output / f"ascend_pytorch_profiler_{profile.rank}.db")


def of(real: tuple[Path, Profile], table: str) -> pd.DataFrame:
    return real[1].tables[table].frame


def test_nothing_to_complain_about(real: tuple[Path, Profile]) -> None:
    _, profile = real
    assert profile.diagnostics == [] and profile.level == "level1" and profile.versions == {"db_schema": "1.0.0"}
    # OVERLAP_ANALYSIS was added to one of the two by MindStudio Insight
    of_options = {"l2_cache", "core_counters", "ports", "graph_memory", "ai_cpu_nodes"}
    assert set(profile.missing) - {"overlap"} == of_options
    assert ("overlap" in profile.missing) == (profile.rank == 1)
    assert set(profile.tables) | set(profile.missing) == set(SCHEMAS)


def test_rates_of_memory_and_cache(real: tuple[Path, Profile], ask: Ask) -> None:
    """The exporter counts in bytes here; text and DB are separate runs of one job."""
    frame = of(real, "counters")
    for part, column in (("HBM", "bandwidth"), ("LLC", "throughput")):
        own = frame[(frame["part"] == part) & (frame["unit"] == "B/s")]["value"]
        assert [(len(own), own.max(), own.sum())] == ask(f"SELECT count(*), max({column}), sum({column}) FROM {part}")
    hits = frame["value"][frame["unit"] == "ratio"].max()
    assert hits == pytest.approx(ask("SELECT max(hitRate) FROM LLC")[0][0] / 100) and hits < 1


def test_kernels(real: tuple[Path, Profile], ask: Ask) -> None:
    frame = of(real, "kernels")
    rows = ask(
        "SELECT s.value, t.startNs, t.endNs - t.startNs, c.blockDim, y.value FROM COMPUTE_TASK_INFO c JOIN TASK t "
        "USING (globalTaskId) JOIN STRING_IDS s ON s.id = c.name JOIN STRING_IDS y ON y.id = c.opType UNION ALL "
        "SELECT s.value, startNs, endNs - startNs, 0, y.value FROM COMMUNICATION_OP JOIN STRING_IDS s ON s.id = opName "
        "JOIN STRING_IDS y ON y.id = opType ORDER BY 2"
    )
    columns = ["name", "start_ns", "duration_ns", "block_dim", "type"]
    assert [tuple(row) for row in frame[columns].values.tolist()] == rows and len(rows) == 191
    assert set(frame["step"]) == {50}
    names = {"aic_ns": "aic_total_time", "aiv_cycles": "aiv_total_cycles", "aiv_mte2_ns": "aiv_mte2_time"}
    for column, counter in names.items():
        ((total,),) = ask(
            f"SELECT sum(p.value) FROM TASK_PMU_INFO p JOIN STRING_IDS s ON s.id = name WHERE s.value = '{counter}'"
        )
        assert frame[column].sum() == pytest.approx(total, rel=1e-12) and frame[column].count() == 185


def test_gaps_before_kernels_are_those_of_insight(real: tuple[Path, Profile], ask: Ask) -> None:
    """MindStudio Insight has added a column waitNs to one of the two; it leaves collectives out of the order, so that
    only what runs before the first of them can be compared."""
    if not ask("SELECT 1 FROM pragma_table_info('COMPUTE_TASK_INFO') WHERE name = 'waitNs'"):
        pytest.skip("this one has no waitNs")
    insight = dict(ask("SELECT rowid, waitNs FROM COMPUTE_TASK_INFO"))
    table = real[1].tables["kernels"]
    first = int((table.frame["core"] == "COMMUNICATION").to_numpy().argmax())
    expected = [insight[rowid] for rowid in table.positions(np.arange(first)).tolist()]
    assert first > 60 and table.frame["wait_ns"].tolist()[:first] == expected


def test_tasks(real: tuple[Path, Profile], ask: Ask) -> None:
    frame = of(real, "device_tasks")
    # 17 tasks are stored as a whole beside their parts: 13 kernels of both kinds of cores and 4 collectives
    wholes = ask(
        "SELECT rowid FROM TASK w WHERE contextId = 4294967295 AND EXISTS (SELECT 1 FROM TASK p WHERE p.contextId <> "
        "4294967295 AND p.streamId = w.streamId AND p.taskId = w.taskId AND p.startNs BETWEEN w.startNs AND w.endNs)"
    )
    assert len(wholes) == 17
    table = real[1].tables["device_tasks"]
    everything = {rowid for (rowid,) in ask("SELECT rowid FROM TASK")}
    assert set(table.positions(np.arange(len(frame))).tolist()) == everything - {rowid for (rowid,) in wholes}
    assert len(frame) == 535  # as in the text export of the same program
    assert Counter(frame["task_type"])["AI_VECTOR_CORE"] == 149


def test_planes(real: tuple[Path, Profile], ask: Ask) -> None:
    frame = of(real, "communication_tasks")
    whole, parts = frame[frame["plane"] < 0], frame[frame["plane"] >= 0]
    assert whole["duration_ns"].sum() == ask("SELECT sum(endNs - startNs) FROM COMMUNICATION_OP")[0][0]
    rows = ask(
        "SELECT s.value, planeId, dstRank, size, t.startNs FROM COMMUNICATION_TASK_INFO c "
        "JOIN TASK t USING (globalTaskId) JOIN STRING_IDS s ON s.id = c.taskType"
    )
    peers = [(name, plane, -1 if peer == 4294967295 else peer, size, start) for name, plane, peer, size, start in rows]
    ours = parts[["name", "plane", "peer_rank", "bytes", "start_ns"]].values.tolist()
    assert sorted(map(tuple, ours)) == sorted(peers) and len(parts) == 296
    assert set(parts["own_rank"]) == {real[1].rank}
    assert Counter(parts["link"]) == {"": 224, "HCCS": 56, "ON_CHIP": 16}


def test_host(real: tuple[Path, Profile], ask: Ask) -> None:
    frame = of(real, "host_events")
    calls, cann = ask("SELECT count(*) FROM PYTORCH_API")[0][0], ask("SELECT count(*) FROM CANN_API")[0][0]
    assert len(frame) == calls + cann
    kinds = Counter(frame["category"])
    assert kinds == {"cpu_op": 860, "python_function": 1282, "enqueue": 159, "dequeue": 159, "runtime": cann}
    total = ask("SELECT sum(CAST(endNs AS INTEGER) - CAST(startNs AS INTEGER)) FROM PYTORCH_API")[0][0]
    assert frame.loc[frame["category"] != "runtime", "duration_ns"].sum() == total
    assert (frame["call_stack"] != "").sum() == ask("SELECT count(DISTINCT id) FROM PYTORCH_CALLCHAINS")[0][0]
    step = frame[frame["name"] == "ProfilerStep#50"].iloc[0]
    assert step["call_stack"].splitlines()[-1] == "<string>(1): <module>"
    # this version stores the shapes in the column of the types
    shapes = set(frame["input_shapes"])
    assert "4096,4096" in shapes and not any(character.isalpha() for text in shapes for character in text)


def test_flows(real: tuple[Path, Profile], ask: Ask) -> None:
    frame = of(real, "flows")
    heads = frame[(frame["kind"] == "host_to_device") & (frame["end"] == "s")]
    linked = ask(
        f"SELECT connectionId FROM TASK WHERE {NOT_OF_COLLECTIVES} UNION SELECT connectionId FROM COMMUNICATION_OP "
        "INTERSECT SELECT connectionId FROM CANN_API"
    )
    marks = ask(
        "SELECT DISTINCT connectionId FROM TASK JOIN STRING_IDS s ON s.id = taskType WHERE s.value LIKE 'EVENT%'"
    )
    assert set(heads["flow"]) == {number for (number,) in linked} - {number for (number,) in marks}
    counts = frame.groupby(["kind", "end"], observed=True).size()
    assert counts["task_queue", "s"] == counts["task_queue", "f"] == 159
    assert counts["forward_backward", "s"] == counts["forward_backward", "f"] == 27
    queue = frame[frame["kind"] == "task_queue"].pivot(index="flow", columns="end", values="time_ns")
    assert (queue["f"] >= queue["s"]).all()
    kernels = of(real, "kernels")
    tails = frame[(frame["kind"] == "host_to_device") & (frame["end"] == "f")]
    assert set(kernels["start_ns"]) <= set(tails["time_ns"])  # every kernel's launch is known


def test_sums_of_memory_and_totals(real: tuple[Path, Profile], ask: Ask) -> None:
    assert of(real, "operator_memory")["bytes"].sum() == ask("SELECT sum(size) FROM OP_MEMORY")[0][0]
    assert (
        of(real, "module_memory")["reserved_bytes"].sum() == ask("SELECT sum(totalReserved) FROM NPU_MODULE_MEM")[0][0]
    )
    record = of(real, "memory_record")
    ((reserved,),) = ask("SELECT sum(totalReserved) FROM MEMORY_RECORD")
    assert record.loc[record["component"] != "APP", "reserved_bytes"].sum() == reserved
    assert Counter(record["component"]) == {
        "PTA+GE": 495,
        "PTA": 381,
        "GE": 114,
        "APP": ask("SELECT count(*) FROM NPU_MEM")[0][0] // 2,
    }
    totals = of(real, "op_statistic")
    assert totals["count"].sum() == 187 and totals["share"].sum() == pytest.approx(1)
    calls = of(real, "api_statistic")
    assert calls["total_ns"].sum() == ask("SELECT sum(endNs - startNs) FROM CANN_API")[0][0]
    operators = of(real, "operators")
    assert len(operators) == 859 and (operators["host_self_ns"] >= 0).all()
    assert (operators["device_self_ns"] <= operators["device_total_ns"]).all()


def test_what_the_exporter_computed(real: tuple[Path, Profile]) -> None:
    output, _ = real
    ask = asker(output / "analysis.db")
    times = of(real, "collectives")
    ((elapse, count),) = ask("SELECT sum(elapse_time), count(*) FROM CommAnalyzerTime")
    assert times["elapse_ns"].sum() == pytest.approx(elapse * 1e6, abs=count) and len(times) == count
    moved = of(real, "collective_bandwidth")
    ((packets,),) = ask("SELECT sum(count) FROM CommAnalyzerBandwidth")
    assert moved["packets"].sum() == packets and len(moved) == 8
    links = of(real, "links")
    ((size,),) = ask("SELECT sum(transit_size) FROM CommAnalyzerMatrix")
    assert links["bytes"].sum() == pytest.approx(size * 1e6, abs=len(links)) and len(links) == 48


def test_the_ledger_agrees_with_the_exporter(real: tuple[Path, Profile]) -> None:
    """Computing, uncovered communication and idle within 0.5 % of the step of analysis.db of the same run."""
    output, profile = real
    query = "SELECT computing, communication_not_overlapped, free, stage + bubble FROM StepTraceTime"
    ((*expected, wall),) = asker(output / "analysis.db")(query)
    totals = fact_store(load_host(), profile)[timeline].totals().iloc[0]
    assert totals["wall_ns"] == pytest.approx(wall * 1e3, rel=0.005)
    for column, us in zip(("computing_ns", "uncovered_ns", "idle_ns"), expected, strict=True):
        assert totals[column] == pytest.approx(us * 1e3, abs=0.005 * wall * 1e3)


def test_causes_are_found(real: tuple[Path, Profile]) -> None:
    pieces = fact_store(load_host(), real[1])[bookings].pieces
    lengths = (pieces["end_ns"] - pieces["start_ns"]).groupby(pieces["path"].astype(str)).sum()
    unknown = sum(ns for path, ns in lengths.items() if str(path).endswith("unknown"))
    assert unknown < 0.001 * lengths.sum()
    waits = lengths[lengths.index.str.startswith("communication/wait/rank ")]
    assert waits.idxmax() == "communication/wait/rank 6" and waits.max() > 0.65 * lengths.sum()
    assert lengths["idle/host/framework"] > 0 and lengths["idle/host/compile"] > 0
