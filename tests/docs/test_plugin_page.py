"""The page about plugins shows the example as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
EXAMPLE = ROOT / "examples" / "advisor-plugin-hello"
SHOWN = ("__init__.py", "short_kernels.py", "kernel_list.py", "titles.py", "rules/short_kernels.yaml")


@pytest.mark.parametrize("name", [*(f"advisor_plugin_hello/{name}" for name in SHOWN), "tests/test_short_kernels.py"])
def test_shows_the_example(name: str) -> None:
    page = (ROOT / "docs" / "writing-a-plugin.md").read_text(encoding="utf-8")
    assert (EXAMPLE / name).read_text(encoding="utf-8").rstrip() in page
