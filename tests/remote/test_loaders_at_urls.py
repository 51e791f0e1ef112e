"""Loaders read the same at a URL as on a disk, and fetch no more than they open."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from advisor_core.contracts.profile import Profile, RankInput
from advisor_core.loaders.discover import discover
from advisor_core.plugins.guarded_loaders import loaders
from advisor_core.remote.copies import HEAD_BYTES
from advisor_core.remote.kept import held
from advisor_core.remote.opened import SMALL_BYTES, opened
from advisor_core.remote.url import Url
from advisor_core.run.prepared import installed_host
from tests.cache.rank import KERNELS, write_rank
from tests.loaders import databases
from tests.loaders.kineto.build import two_steps
from tests.loaders.test_cluster_analysis import analysis
from tests.loaders.test_loaders_msprof import STAMP, row, table
from tests.loaders.test_loaders_msprof import export as msprof
from tests.remote.store import Shelf

MOST = 1 << 30


def text(folder: Path) -> None:
    rank = write_rank(folder / "rank0_ascend_pt")
    (rank / "profiler_info_3.json").write_text("{}")


def database(folder: Path) -> None:
    databases.rank(folder / "rank0_ascend_pt", info=False)


def tables_of_msprof(folder: Path) -> None:
    msprof(folder, {f"op_summary_{STAMP}.csv": table(row("MatMul", "1000", "5"))})


def sums(folder: Path) -> None:
    analysis(folder, ["3,rank,0,10.5,20,1,21,30,60.5,0", "3,rank,1,11,21,1,22,29,61,0"])


def kineto(folder: Path) -> None:
    two_steps().write(folder / "rank0.pt.trace.json")
    two_steps().write(folder / "rank1.pt.trace.json.gz")


def found(path: Path) -> list[RankInput]:
    return discover(loaders(installed_host()), path)


def loaded(source: RankInput) -> Profile:
    return installed_host().loaders[source.loader].load(source)


def told(source: RankInput) -> RankInput:
    """The rank without what depends on its place."""
    return replace(source, root=Path(), directory=source.directory.relative_to(source.root))


@pytest.mark.parametrize("write", [text, database, tables_of_msprof, sums, kineto])
def test_a_url_reads_as_the_folder(write: Callable[[Path], None], tmp_path: Path, shelf: type[Shelf]) -> None:
    folder = tmp_path / "job"
    folder.mkdir()
    write(folder)
    with opened([Url(shelf.put_all(folder, "bucket/job"))], MOST) as (path,):
        here, there = found(folder), found(path)
        assert [told(source) for source in here] == [told(source) for source in there] and here
        for source, same in zip(here, there, strict=True):
            expected, read = loaded(source), loaded(same)
            plain = [replace(profile, tables={}, missing={}) for profile in (expected, read)]
            assert plain[0] == plain[1] and plain[0].files
            assert {name: str(why) for name, why in expected.missing.items()} == {
                name: str(why) for name, why in read.missing.items()
            }
            for name, of_disk in expected.tables.items():
                pd.testing.assert_frame_equal(of_disk.frame, read.tables[name].frame)
                rows = of_disk.frame["source_row"].to_numpy(np.int64)[:2]
                assert of_disk.source.positions(rows).tolist() == read.tables[name].source.positions(rows).tolist()


def opened_names(shelf: type[Shelf]) -> Sequence[str]:
    return sorted(os.path.basename(name) for name in shelf.opened.elements())  # noqa: PTH119


def test_only_what_is_opened_is_fetched_and_once(tmp_path: Path, shelf: type[Shelf]) -> None:
    rank = write_rank(tmp_path / "job" / "rank0_ascend_pt")
    (rank / "profiler_info_0.json").write_text("{}")
    output = rank / "ASCEND_PROFILER_OUTPUT"
    (output / "step_trace_time.csv").write_text("Step,Computing\n3,10\n")
    (output / "kernel_details.csv").write_text(KERNELS + " " * SMALL_BYTES)
    (output / "soc_pmu.csv").write_text(" " * (SMALL_BYTES + 1))
    (raw := rank / "PROF_000001_X" / "device_0" / "data").mkdir(parents=True)
    (raw / "slice.json").write_text("{}")
    small = ["profiler_info_0.json", "step_trace_time.csv", "trace_view.json"]
    with opened([Url(shelf.put_all(rank.parent))], MOST) as (path,):
        (source,) = found(path)
        assert source.bytes == found(rank.parent)[0].bytes
        loaded(replace(source, coarse=True))
        assert opened_names(shelf) == small
        loaded(source)
        assert opened_names(shelf) == ["kernel_details.csv", *small]
    with opened([Url("shelf://job")], MOST) as (path,):
        loaded(found(path)[0])
    assert opened_names(shelf) == ["kernel_details.csv", *small], "nothing has changed"


@pytest.mark.parametrize("packed", [False, True])
def test_of_a_large_trace_discovery_fetches_the_beginning(packed: bool, tmp_path: Path, shelf: type[Shelf]) -> None:
    made = two_steps()
    for number in range(500):
        made.event("cpu_op", os.urandom(5_000).hex(), number, 1)  # does not pack much
    content = made.text()
    name = "rank5.pt.trace.json"
    shelf.files[f"job/{name}"] = gzip.compress(content, 1) if packed else content
    size = len(shelf.files[f"job/{name}"])
    assert size > 2 * HEAD_BYTES
    with opened([Url("shelf://job")], MOST) as (path,):
        (source,) = found(path)
        assert (source.rank, source.bytes) == (5, size)
        assert held() == (1, HEAD_BYTES)


def test_a_trace_whose_head_is_long_is_fetched_whole(shelf: type[Shelf]) -> None:
    made = two_steps()
    made.members["distributedInfo"] = {"rank": 7, "pg_config": [{"pg_name": "0", "ranks": list(range(200_000))}]}
    shelf.files["job/trace.json"] = made.text()
    assert shelf.files["job/trace.json"].index(b"traceEvents") > HEAD_BYTES
    with opened([Url("shelf://job/trace.json")], MOST) as (path,):
        assert found(path)[0].rank == 7
