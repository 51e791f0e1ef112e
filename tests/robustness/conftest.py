"""Copies to damage of a job that is short enough to be analysed some hundred times, and what is said of it whole."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from advisor_core.result.run import RunResult
from tests.robustness.command import run


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
    """The result of rank 0 before it is damaged."""
    return run(sorted(short_job.iterdir())[0], tmp_path_factory.mktemp("clean"), "--format", "json").result
