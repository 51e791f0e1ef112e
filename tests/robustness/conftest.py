"""A job of two ranks that is short enough to be analysed some hundred times."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from advisor_core.result.run import RunResult
from tests.robustness.command import run, shorten


@pytest.fixture(scope="session")
def short_job(advisor_sample: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two ranks; tests must not write to it."""
    job = tmp_path_factory.mktemp("short")
    for profile in sorted(advisor_sample.iterdir()):
        shorten(profile, job / profile.name)
    return job


@pytest.fixture
def job(short_job: Path, tmp_path: Path) -> Path:
    """A copy of both ranks to damage."""
    return Path(shutil.copytree(short_job, tmp_path / "job"))


@pytest.fixture
def rank(short_job: Path, tmp_path: Path) -> Path:
    """A copy of rank 0 to damage."""
    first = sorted(short_job.iterdir())[0]
    return Path(shutil.copytree(first, tmp_path / first.name))


@pytest.fixture(scope="session")
def clean(short_job: Path, tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    """What a run says of rank 0 before it is damaged."""
    return run(sorted(short_job.iterdir())[0], tmp_path_factory.mktemp("clean"), "--format", "json").result
