"""The simulated jobs whose reports are kept, and how each is recorded and analysed."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Final

from advisor_core.result.run import RunResult
from advisor_core.run.pipeline import run
from advisor_core.run.prepared import RunOptions
from advisor_core.sample import SCENARIOS, Scenario
from advisor_core.sample.export.generation import NAMES
from advisor_core.sample.export.recording import RECORDINGS
from advisor_core.sample.job import simulate
from advisor_core.sample.roles import roles
from advisor_core.sample.setup import RankSetup
from advisor_core.sample.text import write_text


@dataclass(frozen=True)
class Job:
    """``ranks``: those that are kept of the recording, all where it is empty. ``by_role``: each role is profiled by
    itself. ``ignore``: rules that are left out of the run."""

    scenario: Scenario
    ranks: tuple[int, ...] = ()
    by_role: bool = False
    ignore: tuple[str, ...] = ()


def _of_64_ranks(scenario: Scenario) -> Scenario:
    """The same with 64 ranks, two steps and fewer layers, which is quick enough to simulate."""
    loop = scenario.job.training
    small = replace(loop, shape=replace(loop.shape, layers=2), steps=2)
    return replace(scenario, job=replace(scenario.job, training=small, ranks=(RankSetup(),) * 64))


JOBS: Final[Mapping[str, Job]] = MappingProxyType(
    {
        "training": Job(SCENARIOS["transformer-training"], ignore=("HD011",)),
        "two_of_four": Job(SCENARIOS["late-rank-by-loader"], ranks=(0, 1)),
        "launch_blocking": Job(SCENARIOS["launch-blocking"]),
        "nothing_found": Job(SCENARIOS["healthy-training"], ignore=("DQ002",)),
        "many_ranks": Job(_of_64_ranks(SCENARIOS["late-rank-by-loader"])),
        "of_roles": Job(SCENARIOS["healthy-rl"], by_role=True),
        "marked": Job(SCENARIOS["slow-reward"]),
    }
)


def analysed(job: Job) -> RunResult:
    """What the tool of today says of the job, without how long it took."""
    with tempfile.TemporaryDirectory() as folder:
        recorded = Path(folder) / "job"
        _record(job, recorded)
        result = run([recorded], RunOptions(ignore=job.ignore))
    return result.model_copy(update={"timings": {}})


def _record(job: Job, folder: Path) -> None:
    names, recording = NAMES[job.scenario.headers], RECORDINGS["level1"]
    for rank, timeline in enumerate(simulate(job.scenario, seed=0)):
        if job.ranks and rank not in job.ranks:
            continue
        parts = roles(timeline) if job.by_role else [("", timeline)]
        for role, part in parts:
            write_text(part, folder / role, names, recording)
