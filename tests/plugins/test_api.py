"""What a plugin imports is light until a hook runs, complete, and typed."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from advisor_core import api

ROLES = ("facts", "advisors", "loaders", "rules", "renderers", "testing")


@pytest.mark.parametrize(
    "name", ["advisor_core.api", "advisor_core.plugins.hookspecs", "advisors", "rulesets", "reports"]
)
def test_nothing_heavy_is_imported_at_the_top(name: str) -> None:
    code = f"import sys, {name}; print([heavy for heavy in ('pandas', 'numpy', 'pyarrow') if heavy in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("role", ROLES)
def test_a_role_has_what_it_names(role: str) -> None:
    module = importlib.import_module(f"advisor_core.api.{role}")
    assert module.__doc__
    assert all(hasattr(module, name) for name in module.__all__)


def test_the_version_is_told() -> None:
    assert api.API_VERSION == 1


@pytest.mark.parametrize("package", ["advisor_core", "advisors", "rulesets", "reports"])
def test_types_are_for_others_too(package: str) -> None:
    assert (Path(str(importlib.import_module(package).__file__)).parent / "py.typed").exists()
