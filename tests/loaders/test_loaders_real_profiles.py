"""The real exports of the shared profiles, checked against what the files say when read with the standard library."""

from __future__ import annotations

import csv
import hashlib
import json
from collections import Counter
from decimal import Decimal
from pathlib import Path

import pytest

from advisor_core.contracts.profile import Profile
from advisor_core.contracts.tables import SCHEMAS
from advisor_core.loaders.ascend_pytorch.db.host import HANDED_OVER, HELD_UP_NS, handed_over_after
from advisor_core.loaders.ascend_pytorch.loader import AscendPytorchLoader
from advisor_core.loaders.discover import discover
from advisor_core.nesting import enclosing_of

NAMES = ["alexnet-ddp-text-level0/rank0", "alexnet-ddp-text-level1/rank0", "alexnet-ddp-text-level1/rank1"]


def ns(us: str) -> int:
    return int((Decimal(us.strip()) * 1000).to_integral_value())


@pytest.fixture(scope="session", params=NAMES)
def real(request: pytest.FixtureRequest, profiles: Path) -> tuple[Path, Profile]:
    directory = profiles / f"{request.param}_ascend_pt"
    (source,) = discover([AscendPytorchLoader()], directory)
    return directory / "ASCEND_PROFILER_OUTPUT", AscendPytorchLoader().load(source)


def test_nothing_to_complain_about(real: tuple[Path, Profile]) -> None:
    output, profile = real
    assert not profile.diagnostics
    assert profile.level == ("level0" if "level0" in str(output) else "level1")
    level1 = {"op_statistic", "api_statistic", "collectives", "collective_bandwidth", "links"}
    of_options = {"core_counters", "ports", "graph_memory", "ai_cpu_nodes"}
    assert set(profile.missing) - of_options == (level1 if profile.level == "level0" else set())
    assert set(profile.tables) | set(profile.missing) == set(SCHEMAS)
    for name, table in profile.tables.items():
        assert list(table.frame) == [*SCHEMAS[name].units(), "source_row"] and len(table.frame)
    rates = profile.tables["counters"].frame
    assert set(rates["part"]) == {"HBM", "LLC", "QoS"}
    assert 2e10 < rates["value"][(rates["part"] != "QoS").to_numpy()].max() < 4e10
    hits = rates["value"][rates["unit"] == "ratio"]
    assert 0.8 < hits.max() < 1, "ratios, whatever the heading of the counter says"
    assert len(profile.tables["l2_cache"].frame) == 179 and profile.tables["l2_cache"].frame["hit_rate"].isna().all()
    assert profile.variables["ASCEND_LAUNCH_BLOCKING"] == ""
    for file in profile.files:
        assert file.sha256 == hashlib.sha256((output.parent / file.name).read_bytes()).hexdigest()


def test_kernels(real: tuple[Path, Profile]) -> None:
    output, profile = real
    with (output / "kernel_details.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    frame = profile.tables["kernels"].frame
    assert frame["name"].tolist() == [row["Name"] for row in rows]
    assert frame["start_ns"].tolist() == [ns(row["Start Time(us)"]) for row in rows]
    assert frame["duration_ns"].tolist() == [ns(row["Duration(us)"]) for row in rows]
    assert frame["source_row"].tolist() == list(range(2, len(rows) + 2))
    assert Counter(frame["core"])["COMMUNICATION"] == 4


def test_operators_and_their_lines(real: tuple[Path, Profile]) -> None:
    output, profile = real
    frame = profile.tables["operators"].frame
    lines, last = [], 1
    with (output / "operator_details.csv").open(newline="") as file:
        reader = csv.reader(file)
        next(reader)
        last = reader.line_num
        for _ in reader:
            lines.append(last + 1)
            last = reader.line_num
    assert frame["source_row"].tolist() == lines


def test_trace(real: tuple[Path, Profile]) -> None:
    output, profile = real
    content = (output / "trace_view.json").read_bytes()
    events = json.loads(content)
    names = {e["pid"]: e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "process_name"}
    lanes = {"host_events": ("Python", "CANN"), "device_tasks": ("Ascend Hardware",), "communication_tasks": ("HCCL",)}
    for table, processes in lanes.items():
        expected = [
            (n, ns(e["ts"]), e["name"])
            for n, e in enumerate(events)
            if e["ph"] == "X" and names.get(e["pid"]) in processes
        ]
        frame = profile.tables[table].frame
        assert list(zip(frame["source_row"], frame["start_ns"], frame["name"], strict=True)) == expected
        rows = frame.index[:: max(len(frame) // 20, 1)].to_numpy()
        for row, offset in zip(rows, profile.tables[table].positions(rows), strict=True):
            event, _ = json.JSONDecoder().raw_decode(content[offset : offset + 100_000].decode())
            assert event == events[frame["source_row"][row]]
    flows = profile.tables["flows"].frame
    assert len(flows) == sum(e["ph"] in "sf" for e in events)
    sends = set(flows.loc[flows["end"] == "s"].set_index(["kind", "flow"]).index)
    assert set(flows.loc[flows["end"] == "f"].set_index(["kind", "flow"]).index) <= sends
    assert profile.tables["frequency"].frame["mhz"].tolist() == [1800.0, 1800.0]


def test_step_trace_agrees_with_facts(profiles: Path) -> None:
    (source,) = discover([AscendPytorchLoader()], profiles / "alexnet-ddp-text-level1" / "rank0_ascend_pt")
    step = AscendPytorchLoader().load(source).tables["step_trace"].frame.iloc[0]
    assert step["step"] == 50 and round(step["computing_ns"]) == 8873756 and round(step["free_ns"]) == 25744050


def test_a_job(profiles: Path) -> None:
    for name in ("alexnet-ddp-text-level1", "alexnet-ddp-db-level1"):
        assert [s.rank for s in discover([AscendPytorchLoader()], profiles / name)] == [0, 1]


@pytest.mark.parametrize("rank", [0, 1])
def test_where_in_a_launch_an_arrow_starts(profiles: Path, rank: int) -> None:
    """What a DB, which has no arrows, is read with."""
    (source,) = discover([AscendPytorchLoader()], profiles / "alexnet-ddp-text-level1" / f"rank{rank}_ascend_pt")
    tables = AscendPytorchLoader().load(source).tables
    events, flows = tables["host_events"].frame, tables["flows"].frame
    calls = events[events["category"] == "runtime"]
    arrows = flows[(flows["kind"] == "host_to_device") & (flows["end"] == "s")]
    within = enclosing_of(calls, arrows["thread"].to_numpy(), arrows["time_ns"].to_numpy())
    met = events.loc[within].reset_index(drop=True)
    after = arrows["time_ns"].to_numpy() - met["start_ns"]
    shares = after / met["duration_ns"]
    launch = (met["name"] == "Node@launch") & ~met["item"].str.startswith("hcom_")
    assert launch.sum() == 187 and (shares[~launch] == 0).all()
    assert shares[launch].median() == pytest.approx(HANDED_OVER, abs=0.01)
    assert shares[launch].quantile(0.05) > 0.5 and shares[launch].quantile(0.95) < 0.8
    assert met.loc[launch, "duration_ns"].quantile(0.9) == pytest.approx(HELD_UP_NS, rel=0.1)
    off = handed_over_after(met.loc[launch, "duration_ns"].to_numpy()) - after[launch]
    assert off.abs().median() < 300 and after[launch].median() > 3_000
    # what is off by much is early: a late arrow would turn the clocks of all others
    assert off.max() < 4_000
