"""What is kept in the repository is what the plan names: output of a trial does not slip in."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from tests.conftest import ROOT

FOLDERS = (".ci", "advisor_core", "advisors", "docs", "examples", "reports", "rulesets", "tests")
FILES = (".gitignore", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "Makefile", "README.md", "pyproject.toml")
LARGEST_BYTES = 300_000
"""The largest file is a generated page of a reference; a simulated profile has files of megabytes."""


@pytest.fixture(scope="module")
def kept() -> list[str]:
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        pytest.skip("not a checkout of git")
    listed = subprocess.run([git, "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True).stdout
    return [name for name in listed.split("\0") if name]


def test_the_top_level_is_the_planned_one(kept: list[str]) -> None:
    assert {name.partition("/")[0] for name in kept} <= {*FOLDERS, *FILES}


def test_no_recording_is_kept(kept: list[str]) -> None:
    large = [name for name in kept if (ROOT / name).is_file() and (ROOT / name).stat().st_size > LARGEST_BYTES]
    assert large == []
    assert not [name for name in kept if "_ascend_pt/" in name or "/PROF_" in name]
