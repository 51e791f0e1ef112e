"""The results that the renderers are tried on."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

_EXAMPLE = Path(__file__).with_name("example.py")


def load_example() -> ModuleType:
    """`example.py` under a name of its own: ``tests/reports`` must not shadow the package ``reports``."""
    name = "npu_advisor_report_example"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, _EXAMPLE)
        assert spec and spec.loader
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]


@pytest.fixture(scope="session")
def example() -> ModuleType:
    return load_example()
