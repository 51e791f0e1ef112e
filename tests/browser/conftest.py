"""A browser, where the machine has one: $CHROMIUM, or one on the PATH."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

import pytest

from tests.browser.devtools import Browser

CHROMIUM = os.environ.get("CHROMIUM") or next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
)


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One for all tests. They are skipped, and say so, where there is none."""
    if not CHROMIUM:
        pytest.skip("no chromium on this machine (apt-get install chromium)")
    with Browser(str(CHROMIUM), tmp_path_factory.mktemp("browser")) as started:
        yield started
