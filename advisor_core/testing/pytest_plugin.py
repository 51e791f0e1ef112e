"""Fixtures for rule and plugin authors; pytest finds them by itself. Nothing heavy is imported before one is used."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from advisor_core.result.run import RunResult


@pytest.fixture(scope="session")
def advisor_sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A realistic profile with known problems, written once per session."""
    from advisor_core.sample import write_sample

    folder = tmp_path_factory.mktemp("sample")
    write_sample(folder)
    return folder


@pytest.fixture(scope="session")
def advisor_rule_cases() -> Callable[[Path], list[str]]:
    """``advisor_rule_cases(folder)``: what is wrong with the cases of the rules in it; nothing if they hold."""
    from advisor_core.testing.rule_cases import check_cases

    def start(path: Path) -> list[str]:
        return [str(problem) for problem in check_cases(path).problems]

    return start


@pytest.fixture(scope="session")
def advisor_run() -> Callable[..., RunResult]:
    """``advisor_run(path, rulesets=..., overrides=...)``: the result of a run, in this process."""
    from advisor_core.run.pipeline import run
    from advisor_core.run.prepared import RunOptions

    def start(path: Path, **options: Any) -> RunResult:
        return run([path], RunOptions(**options), jobs=1)

    return start
