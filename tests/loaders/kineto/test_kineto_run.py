"""A whole run on written Kineto traces: the ledger books idle time and communication under their causes."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from advisor_core.cli.main import cli
from advisor_core.result.run import RunResult
from advisor_core.run.pipeline import run
from advisor_core.run.prepared import RunOptions
from tests.loaders.kineto.build import Recording, two_steps


def booked(result: RunResult, rank: int = 0) -> dict[str, float]:
    """us per leaf of the ledger, all steps of a rank together."""
    found: dict[str, float] = {}
    for step in result.ledger:
        for entry in step.entries if step.rank == rank else ():
            found[entry.path] = found.get(entry.path, 0) + entry.ns / 1e3
    return found


def analysed(made: Recording, folder: Path) -> dict[str, float]:
    return booked(run([made.write(folder / "trace.json.gz")], RunOptions()))


def test_the_data_loader(tmp_path: Path) -> None:
    made = Recording().step(1, 0, 1000).launch("k", 10, 20, 100, 1)
    made.event("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 150, 600)
    made.launch("k", 800, 810, 100, 2)
    found = analysed(made, tmp_path)
    assert found["idle/host/dataloader"] == 600
    assert found["compute/elementwise"] == 200


def test_synchronising_and_copying(tmp_path: Path) -> None:
    made = Recording().step(1, 0, 2000).launch("k", 10, 20, 100, 1)
    made.call("cudaStreamSynchronize", 30, 300, 50).launch("k", 400, 410, 100, 2)
    made.call("cudaMemcpyAsync", 520, 200, 51).task("Memcpy HtoD (Pageable -> Device)", 530, 180, 51, cat="gpu_memcpy")
    made.launch("k", 750, 760, 100, 3)
    found = analysed(made, tmp_path)
    assert found["idle/sync"] >= 210  # the rest of the call once the device had run dry
    assert found["idle/host/copy"] == 200


def test_operators_and_python(tmp_path: Path) -> None:
    made = Recording().step(1, 0, 2000).launch("k", 10, 20, 100, 1)
    made.operator("aten::slow", 200, 300, 9).launch("k", 900, 910, 100, 2)
    found = analysed(made, tmp_path)
    assert found["idle/host/framework"] == 300 + 2  # and the operator of the kernel, up to its launch
    assert found["idle/host/python"] == 80 + 400  # before and after it


def test_a_task_that_starts_long_after_its_launch_is_held_up_by_what_is_not_recorded(tmp_path: Path) -> None:
    made = Recording().launch("k", 0, 20, 100, 1).launch("k", 200, 5000, 100, 2).launch("k", 5105, 5125, 10, 3)
    found = analysed(made, tmp_path)
    assert found["idle/unknown"] == 5000 - 202
    assert found["idle/launch_latency"] == 18


def late_rank(rank: int) -> Recording:
    made = Recording()
    made.members["distributedInfo"] = {
        "rank": rank,
        "world_size": 2,
        "pg_config": [{"pg_name": "0", "ranks": [0, 1]}],
    }
    asked = {"Collective name": "allreduce", "In msg nelems": 1_000_000, "dtype": "Float", "Group size": 2}
    for step in range(5, 8):
        start = 1000.0 * step
        made.step(step, start, 950).launch("k", start + 10, start + 30, 500 if rank else 300, 10 * step)
        made.operator("record_param_comms", start + 100, 40, 10 * step + 1, **asked, **{"Process Group Name": "0"})
        made.call("cudaLaunchKernel", start + 110, 5, 10 * step + 1)
        begin = start + (540 if rank else 340)
        made.task("ncclDevKernel_AllReduce_Sum_f32_RING_LL()", begin, start + 700 - begin, 10 * step + 1, stream=20)
    return made


def test_waiting_for_a_late_rank(tmp_path: Path) -> None:
    for rank in (0, 1):
        late_rank(rank).write(tmp_path / f"trace{rank}.json.gz")
    result = run([tmp_path], RunOptions())
    assert booked(result, 0)["communication/wait/rank 1"] == 3 * 200
    assert booked(result, 0)["communication/transmit"] == booked(result, 1)["communication/transmit"] == 3 * 160


def test_no_rule_raises_and_no_advisor_guesses(tmp_path: Path) -> None:
    for made in (two_steps(), late_rank(0)):
        result = run([made.write(tmp_path / "trace.json")], RunOptions())
        assert not [outcome.rule for outcome in result.rules if outcome.state == "error"]
        states = {outcome.rule: outcome.state for outcome in result.rules}
        if "PB001" in states:  # pipes of cores, which only Ascend counts
            assert states["PB001"] == "not_applicable"


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_both_languages(tmp_path: Path, lang: str) -> None:
    path = two_steps().write(tmp_path / "trace.pt.trace.json.gz")
    done = CliRunner().invoke(cli, ["run", str(path), "--lang", lang, "-o", str(tmp_path / "report")])
    assert done.exit_code == 0, done.output
    assert (tmp_path / "report" / "report.html").stat().st_size > 10_000
