"""Where the time of a run goes: by phase always, by fact and advisor where it is asked for."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from advisor_core.contracts.stopwatch import Stopwatch
from advisor_core.run.pipeline import run
from advisor_core.run.prepared import RunOptions, installed_host
from tests.robustness.command import advise

PHASES = ["prepare_s", "analyse_s", "load_s", "job_s", "total_s"]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The time now, in seconds, as the only element."""
    now = [0]
    monkeypatch.setattr(time, "perf_counter_ns", lambda: now[0] * 10**9)
    yield now


def test_every_moment_counts_once(clock: list[int]) -> None:
    watch = Stopwatch()
    clock[0] = 100
    with watch.of("advisor"):
        clock[0] += 1
        with watch.of("fact"):
            clock[0] += 2
            with watch.of("fact below"):
                clock[0] += 4
            clock[0] += 8
        clock[0] += 16
    clock[0] += 32
    with pytest.raises(KeyError), watch.of("fact"):
        clock[0] += 64
        raise KeyError
    assert watch.seconds() == {"advisor": 17, "fact": 74, "fact below": 4}


@pytest.mark.parametrize("jobs", [pytest.param(1, marks=pytest.mark.search), 2])
def test_parts_of_all_ranks_are_parts_of_their_phases(short_job: Path, jobs: int) -> None:
    timings = run([short_job], RunOptions(timings=True), jobs=jobs).timings
    host = installed_host()
    parts = {name: seconds for name, seconds in timings.items() if not name.endswith("_s")}
    assert [name for name in timings if name not in parts] == PHASES
    known = {f"fact {name}" for name in host.facts} | {f"advisor {name}" for name in host.advisors} | {"judge"}
    assert set(parts) <= known
    assert {"fact ledger", "advisor host_dispatch.idle", "advisor communication_job.late_rank", "judge"} <= set(parts)
    assert 0 < sum(parts.values()) < 2 * timings["total_s"]  # of two ranks
    assert timings["load_s"] + timings["analyse_s"] < 2 * timings["total_s"]


def test_a_report_has_the_parts_where_they_are_asked_for(short_job: Path, tmp_path: Path) -> None:
    written = {}
    for flags in ((), ("--timings",)):
        folder = tmp_path / f"report{len(flags)}"
        ran = advise("run", short_job, "--select", "HD", "--format", "json,md", "-q", *flags, folder=folder)
        assert ran.code == 0
        written[flags] = ran.err, json.loads((folder / "report.json").read_text(encoding="utf-8"))["timings"]
    plain, timed = written.values()
    assert plain[0] == "" and list(plain[1]) == PHASES
    assert "  advisor host_dispatch.idle\n" in timed[0] and "  reports\n" in timed[0]
    assert set(PHASES) < set(timed[1])
    told = [line.split(maxsplit=1) for line in timed[0].splitlines() if line.startswith(" ")]
    longest = max((seconds, name) for name, seconds in timed[1].items() if not name.endswith("_s"))
    assert [f"{longest[0]:.3f}", longest[1]] in [[seconds, name] for seconds, name in told]
