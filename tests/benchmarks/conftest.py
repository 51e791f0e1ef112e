"""Fixtures of the benchmarks."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

Say = Callable[[str], None]


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str]) -> Say:
    """Writes a line that is seen whether or not the test passes."""

    def write(line: str) -> None:
        with capsys.disabled():
            sys.stdout.write(f"{line}\n")

    return write
