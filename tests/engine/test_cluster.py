"""Ranks on the workers of a Dask cluster: a real scheduler and two workers, each a process of its own."""

from __future__ import annotations

import os
import pickle
import shutil
import signal
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import CancelledError
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from advisor_core.cli.console import EXIT_USAGE
from advisor_core.cli.main import cli
from advisor_core.contracts.profile import InputError, RankInput
from advisor_core.remote.copies import here
from advisor_core.remote.elsewhere import part_of
from advisor_core.remote.opened import opened
from advisor_core.remote.stand_ins import FOLDER, tree_of
from advisor_core.remote.url import Url
from advisor_core.result.run import RunResult
from advisor_core.run import pipeline, rank
from advisor_core.run.cluster import on_worker, sameness
from advisor_core.run.cluster.error import ClusterError
from advisor_core.run.cluster.on_worker import Expected, Phase, Question, require
from advisor_core.run.cluster.sameness import differences, files, installed, rules
from advisor_core.run.pipeline import run
from advisor_core.run.prepared import RunOptions, installed_host
from advisor_core.run.sources import sources
from advisor_core.run.work import Work
from advisor_core.sample import write_sample
from tests.cache.rank import write_rank

distributed = pytest.importorskip("distributed", reason="Dask is not installed: pip install 'npu-advisor[cluster]'")

from advisor_core.run.cluster import client  # noqa: E402  # it imports Dask

FEW = RunOptions(timeline=True, select=("CO", "HD", "NS"))
KILLED = "killed-a-worker"
"""A file of this name beside the job tells that a worker was killed."""


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two ranks, and one of which nothing can be read."""
    folder = tmp_path_factory.mktemp("cluster") / "job"
    first, _ = write_sample(folder, scenario="healthy-cnn")
    broken = shutil.copytree(first, folder / f"broken_{first.name}")
    for file in broken.rglob("*"):
        if file.is_file():
            file.write_bytes(b"")
    (broken / "profiler_info_0.json").rename(broken / "profiler_info_2.json")
    return folder


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster:
        yield cluster.scheduler_address


def as_json(result: RunResult) -> str:
    return result.model_copy(update={"timings": {}}).model_dump_json()


def left_on(address: str) -> tuple[list[str], list[str]]:
    """Tasks that the scheduler knows, and clients of ours."""

    def ask(dask_scheduler: Any) -> tuple[list[str], list[str]]:
        ours = [name for name in map(str, dask_scheduler.clients) if "npu-advisor" in name]
        return list(map(str, dask_scheduler.tasks)), ours

    with distributed.Client(address, set_as_default=False) as asking:
        for _ in range(50):
            left: tuple[list[str], list[str]] = asking.run_on_scheduler(ask)
            if left == ([], []):
                break
            time.sleep(0.1)
        return left


def judge_and_be_killed(source: RankInput, options: RunOptions, *compared: Any) -> Any:
    """As `judge`; the first worker that is to judge rank 1 ends, with the tables that it has of it."""
    mark = source.root.parent / KILLED
    if source.rank == 1 and not mark.exists():
        assert rank._held, "the tables are where the rank was read"
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return rank.judge(source, options, *compared)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="a worker is ended as POSIX does")
def test_the_result_is_that_of_a_local_run_though_a_worker_is_killed(
    job: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(job.parent)  # the workers have another working directory
    paths, lines, works = [Path(job.name)], [[], []], [Work(), Work()]
    local = run(paths, FEW, jobs=1, progress=lines[0].append, work=works[0])
    assert any("rank 2" in diagnostic.message.en for diagnostic in local.diagnostics if diagnostic.severity == "error")
    judge = judge_and_be_killed
    with client.connected(address) as cluster, monkeypatch.context() as patch:
        assert cluster.workers == len(client._running(cluster._client)) == 2
        patch.setattr(pipeline, "judge", judge)
        far = run(paths, FEW, elsewhere=cluster, progress=lines[1].append, work=works[1])
    assert (job.parent / KILLED).exists()
    assert as_json(far) == as_json(local)
    assert lines[0] == lines[1]
    assert works[1].judged == works[0].judged and works[1].read_bytes() == works[1].bytes
    assert left_on(address) == ([], [])


def copies_of(path: Path) -> set[Path]:
    """All copies that lie beside the stand-ins of a URL."""
    tree = tree_of(path)
    assert tree is not None
    return set(tree.files.iterdir())


def test_workers_copy_what_they_read_of_a_url(address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(2):
        write_rank(tmp_path / "job" / f"rank{number}_ascend_pt")
    local = run([tmp_path / "job"], RunOptions(), jobs=1)
    with opened([Url(f"file://{tmp_path / 'job'}")], 0) as paths, client.connected(address) as cluster:
        (listed,) = map(copies_of, paths)
        assert as_json(run(paths, RunOptions(), elsewhere=cluster)) == as_json(local)
        assert copies_of(paths[0]) == listed
        monkeypatch.setattr(client, "_root", lambda source: Url("strange://far"))
        with pytest.raises(ClusterError, match=r"worker tcp://.* does not reach strange://far: .*Protocol not known"):
            run(paths, RunOptions(), elsewhere=cluster)
    assert copied_by_workers(address) == [], "nothing is kept"


@pytest.mark.parametrize("error", [InputError("broken"), RuntimeError("broken")])
def test_no_copy_is_left_of_a_rank_that_raises(error: Exception, tmp_path: Path) -> None:
    write_rank(tmp_path / "job" / "rank0_ascend_pt")
    with opened([Url(f"file://{tmp_path / 'job'}")], 0) as (path,):
        (source,) = sources(installed_host(), [path])
        asked = Question(Expected({}, {}, None), rank.derive, source, part=part_of(source))
        with pytest.raises(type(error), match="broken"), on_worker._here(asked, tmp_path / "worker") as there:
            assert here(there.directory / "ASCEND_PROFILER_OUTPUT" / "trace_view.json").is_file()
            assert len(copies_of(there.directory)) == 1
            raise error
        assert copies_of(there.directory) == set()


def copied_by_workers(address: str) -> list[Path]:
    """The copies that workers have in their own directories, once there are none or after 5 s."""
    with distributed.Client(address, set_as_default=False) as asking:
        places = asking.run(lambda dask_worker: dask_worker.local_directory).values()
    for _ in range(50):
        copies = [copy for place in places for copy in Path(place, FOLDER, "files").glob("*")]
        if not copies:
            break
        time.sleep(0.1)
    return copies


def test_nothing_is_left_of_an_interrupted_run(address: str, tmp_path: Path) -> None:
    class Interrupted(BaseException):
        pass

    begun: list[str] = []

    def interrupt(line: str) -> None:
        if begun:  # the first rank is read, and its worker waits for what is asked of it next
            raise Interrupted
        begun.append(line)

    for number in range(2):
        write_rank(tmp_path / "job" / f"rank{number}_ascend_pt")
    with opened([Url(f"file://{tmp_path / 'job'}")], 0) as paths:
        with pytest.raises(Interrupted), client.connected(address) as cluster:
            run(paths, RunOptions(), elsewhere=cluster, progress=interrupt)
        assert left_on(address) == ([], [])
        assert copied_by_workers(address) == []


def test_workers_that_lack_something_are_named(
    job: Path, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = RankInput(tmp_path / "nowhere", tmp_path / "nowhere", "", 0, "", 0)
    ours = tmp_path / "ours.yaml"
    ours.touch()
    with client.connected(address) as cluster:
        with pytest.raises(ClusterError, match=r"worker tcp://.* does not see .*nowhere: it has to be on storage"):
            cluster.pool([source], RunOptions())
        with monkeypatch.context() as patch:
            patch.setattr(client, "rules", lambda sets: {str(ours): "another"})
            with pytest.raises(ClusterError, match=r"worker tcp://.* has other rules: .*ours.yaml: .*here: another"):
                cluster.pool([], RunOptions(rulesets=(ours,)))
    with monkeypatch.context() as patch:
        patch.setattr(client, "installed", lambda: {**installed(), "npu-advisor": "9.9"})
        with (
            client.connected(address) as cluster,
            pytest.raises(ClusterError, match=r"worker tcp://.* has another installation: npu-advisor: 0.*here: 9\.9"),
        ):
            cluster.pool([], RunOptions())


def test_no_scheduler_and_no_worker_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "CONNECT_S", 0.3)
    monkeypatch.setattr(client, "WORKERS_S", 0.3)
    with pytest.raises(ClusterError, match="no scheduler of Dask answers at tcp://127"):
        client.connected("tcp://127.0.0.1:9").__enter__()
    with pytest.raises(ClusterError, match=r"scheduler.json: no such file"):
        client.connected("scheduler.json").__enter__()
    with (
        distributed.LocalCluster(n_workers=0, dashboard_address=":0") as empty,
        pytest.raises(ClusterError, match="had no worker"),
    ):
        client.connected(empty.scheduler_address).__enter__()


class Ended:
    """A task that raised."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def result(self) -> None:
        raise self.error


@pytest.mark.parametrize(
    ("error", "kind", "told"),
    [
        (distributed.KilledWorker("task", None, 3), InputError, "here: 4 workers ended while they read it"),
        (InputError("/far/rank: empty"), InputError, "^here: empty"),
        (CancelledError("lost"), ClusterError, "the cluster has ended"),
        (ModuleNotFoundError("No module named 'advisor_core'"), ClusterError, "lacks npu-advisor"),
        (ModuleNotFoundError("No module named 'other'"), ModuleNotFoundError, "other"),
    ],
)
def test_what_becomes_of_a_task_that_raises(error: Exception, kind: type[Exception], told: str) -> None:
    here, far = (RankInput(Path(), Path(place), "", 0, "", 0) for place in ("here", "/far/rank"))
    pool = client.ClusterPool(None, {}, {})  # type: ignore[arg-type]
    with pytest.raises(kind, match=told):
        pool._result(Ended(error), here, far)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("workers", "running", "told"),
    [([], [], "all workers of the cluster have ended"), (["tcp://worker"], [], "paused .* memory is nearly full")],
)
def test_a_run_does_not_wait_for_ever(
    workers: list[str], running: list[str], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "_LOOK_S", 0.01)
    monkeypatch.setattr(client, "WORKERS_S", 0.02)
    monkeypatch.setattr(client, "PAUSED_S", 0.05)
    monkeypatch.setattr(client, "_workers", lambda asked: workers)
    monkeypatch.setattr(client, "_running", lambda asked: running)
    pool = client.ClusterPool(None, {}, {})  # type: ignore[arg-type]
    with pytest.raises(ClusterError, match=told):
        pool._await(threading.Event())


def test_tables_stay_where_they_are() -> None:
    size = 1 << 30
    phase = Phase({"small": 1}, "tcp://worker", True, size, {(None, None): object()})  # type: ignore[dict-item]
    assert sys.getsizeof(phase) > size
    sent = pickle.loads(pickle.dumps(phase))
    assert (sent.value, sent.place, sent.keeps, sent.held) == ({"small": 1}, "tcp://worker", True, {})
    assert phase.take() and not phase.take(), "one phase changes them"
    assert sys.getsizeof(phase) < size


def test_a_worker_answers_only_with_what_is_expected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = tmp_path / "ours.yaml"
    ours.write_text("rules: []")
    place = tmp_path / "rank"
    place.mkdir()
    (place / "trace_view.json").write_text("[]")
    source = RankInput(tmp_path, place, "", 0, "", 0)
    expected = Expected(installed(), rules([ours]), files(place))
    require("tcp://worker", expected, source)
    cleared: list[bool] = []
    monkeypatch.setattr(on_worker, "forget_rules", lambda: cleared.append(True))
    require("tcp://worker", expected, source)
    assert not cleared
    ours.write_text("rules: [ ]")
    with pytest.raises(ClusterError, match="other rules"):
        require("tcp://worker", expected, source)
    require("tcp://worker", Expected(installed(), rules([ours]), files(place)), source)
    assert cleared, "a worker that goes on reads rules anew when they change"
    (place / "trace_view.json").write_text("[{}]")
    expected = Expected(installed(), rules([ours]), expected.files)
    with pytest.raises(ClusterError, match=r"worker tcp://worker sees other files in .*rank"):
        require("tcp://worker", expected, source)
    shutil.rmtree(place)
    with pytest.raises(ClusterError, match="sees no files"):
        require("tcp://worker", expected, source)


def test_what_machines_have_otherwise() -> None:
    own, theirs = (
        {"pandas": "3.0", "plugin a of b": "1", "numpy": "2"},
        {"pandas": "2.2", "plugin c of d": "2", "numpy": "2"},
    )
    assert differences(own, theirs) == [
        "pandas: 2.2 (here: 3.0)",
        "plugin a of b: none (here: 1)",
        "plugin c of d: 2 (here: none)",
    ]
    assert sameness.installed()["npu-advisor"].startswith("0.")


def test_the_command_says_what_is_missing(job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = ["run", str(job), "--no-config", "--scheduler", "tcp://127.0.0.1:9"]
    both = CliRunner().invoke(cli, [*command, "--jobs", "2"])
    assert both.exit_code == EXIT_USAGE and "--jobs" in both.output
    monkeypatch.delitem(sys.modules, "advisor_core.run.cluster.client")
    monkeypatch.setitem(sys.modules, "dask", None)
    without = CliRunner().invoke(cli, command)
    assert without.exit_code == EXIT_USAGE and 'pip install "npu-advisor[cluster]"' in without.output
