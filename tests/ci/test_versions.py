"""The oldest releases that are tested are those that pyproject.toml allows."""

from __future__ import annotations

import importlib
import tomllib
from collections.abc import Iterator
from types import ModuleType

import pytest

from tests.conftest import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture(scope="module")
def versions() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        # The checks are scripts that import from their own folder.
        patch.syspath_prepend(ROOT / ".ci")
        yield importlib.import_module("check_versions")


def test_every_dependency_is_held_at_its_lower_bound(versions: ModuleType) -> None:
    assert versions.lowest(["click>=8.1", "pyyaml>=6.0.1"]) == ["click==8.1", "pyyaml==6.0.1"]
    extras = [one for name, extra in PROJECT["optional-dependencies"].items() if name != "dev" for one in extra]
    assert len(versions.lowest([*PROJECT["dependencies"], *extras])) == len(PROJECT["dependencies"]) + len(extras)


@pytest.mark.parametrize("requirement", ["click", "click>=8,<9", "click==8.1", "click>=8; python_version < '3.12'"])
def test_a_requirement_without_a_plain_lower_bound_is_named(versions: ModuleType, requirement: str) -> None:
    with pytest.raises(SystemExit, match="no name with a lower bound alone"):
        versions.lowest([requirement])


def test_the_tests_that_are_run_are_there(versions: ModuleType) -> None:
    assert all((ROOT / path.partition("::")[0]).exists() for path in versions.PART)
