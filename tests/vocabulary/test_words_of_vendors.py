"""The core and the advisors ask for calls of the runtime by the canonical category, never by a vendor's own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ("advisor_core/facts", "advisor_core/run", "advisor_core/job", "advisor_core/rules", "advisors", "reports")
VENDORS_WORD = re.compile(r"""["'](cann|cuda_runtime|cuda_driver)["']""")


@pytest.mark.parametrize("room", ROOMS)
def test_no_category_of_one_vendor(room: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in sorted((ROOT / room).rglob("*.py"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if VENDORS_WORD.search(line)
    ]
    assert not found, "the category of these events is `runtime`"
