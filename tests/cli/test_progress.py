"""How far the work is: on a terminal, after a while, and never in the way of lines."""

from __future__ import annotations

import io
import sys
import time
from pathlib import Path

import pytest

from advisor_core.cli import progress as module
from advisor_core.cli.progress import Estimate, Progress
from advisor_core.contracts.profile import RankInput
from advisor_core.run.pipeline import run
from advisor_core.run.prepared import RunOptions
from advisor_core.run.work import Work


def ranks(count: int, size: int) -> list[RankInput]:
    return [RankInput(Path(), Path(), "", number, "", size) for number in range(count)]


def test_what_is_told_of_work() -> None:
    work, estimate, elsewhere = Work(), Estimate(100.0), [0]
    assert estimate.line(work, 102.0) == "looking for profiles"
    work.begin_ranks(ranks(4, 50_000_000), lambda: elsewhere[0])
    assert estimate.line(work, 110.0) == "reading 4 ranks: 0 of 200 MB"
    work.add(30_000_000)
    elsewhere[0] = 20_000_000
    assert estimate.line(work, 120.0) == "reading 4 ranks: 50 of 200 MB, about 30 s more"
    elsewhere[0] = 400_000_000
    assert estimate.line(work, 130.0) == "judging 4 ranks: 0 done"
    work.judge_one()
    assert estimate.line(work, 140.0) == "judging 4 ranks: 1 done, about 30 s more"
    work.stage = "job"
    assert estimate.line(work, 150.0) == "comparing ranks, replaying changes"


def test_what_comes_from_a_url_is_told() -> None:
    work, estimate = Work(), Estimate(100.0)
    work.copy(2_000_000)
    assert estimate.line(work, 102.0) == "looking for profiles, 2 MB copied"
    work.begin_ranks(ranks(4, 50_000_000), int, lambda: 5_000_000)
    work.copy(30_000_000)
    assert estimate.line(work, 110.0) == "reading 4 ranks: 0 of 200 MB, 37 MB copied"
    work.copy(20_000_000)
    assert estimate.line(work, 120.0) == "reading 4 ranks: 0 of 200 MB, 57 MB copied, about 75 s more"
    work.add(60_000_000)
    assert estimate.line(work, 130.0) == "reading 4 ranks: 60 of 200 MB, 57 MB copied"
    work.add(70_000_000)
    assert estimate.line(work, 140.0) == "reading 4 ranks: 130 of 200 MB, 57 MB copied, about 10 s more"


def captured(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """stderr from now on; pytest takes back what a fixture puts there."""
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    return stream


def test_lines_stand_by_themselves_and_nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    stderr = captured(monkeypatch)
    monkeypatch.setattr(module, "PATIENCE_S", 0)
    shown = Progress(lambda text: print(text, file=stderr), terminal=True)
    with shown.of(Work()):
        for _ in range(1000):
            if "looking for profiles" in stderr.getvalue():
                break
            time.sleep(0.01)
        shown("rank 0")
        told = stderr.getvalue()
    assert "looking for profiles\r                    \rrank 0\n" in told
    assert stderr.getvalue().endswith("\r") or stderr.getvalue().endswith("rank 0\n")


def test_nothing_is_told_where_nobody_looks_or_of_what_is_soon_done(monkeypatch: pytest.MonkeyPatch) -> None:
    stderr = captured(monkeypatch)
    for shown in (Progress(), Progress(terminal=True)):
        with shown.of(Work()):
            shown("rank 0")
    assert stderr.getvalue() == ""


def test_a_run_says_how_far_it_is_in_all_of_its_processes(advisor_sample: Path) -> None:
    work = Work()
    result = run([advisor_sample], RunOptions(), jobs=2, work=work)
    assert (work.stage, work.ranks, work.judged) == ("job", len(result.profile.ranks), len(result.profile.ranks))
    assert work.bytes == sum(file.bytes for source in result.inputs for file in source.files if "/" in file.name)
    assert work.read_bytes() == work.bytes
