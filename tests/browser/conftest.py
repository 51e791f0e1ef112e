"""A browser, where the machine has one: $CHROMIUM, or one on the PATH."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

CHROMIUM = os.environ.get("CHROMIUM") or next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
)
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--allow-file-access-from-files",
    "--enable-logging=stderr", "--log-level=0",
)  # fmt: skip


@pytest.fixture
def chromium(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Opens a page. The test is skipped, and says so, where there is no browser."""
    if not CHROMIUM:
        pytest.skip("no chromium on this machine (apt-get install chromium)")

    def run(page: Path, *flags: str) -> subprocess.CompletedProcess[str]:
        profile = tmp_path / "profile"
        shutil.rmtree(profile, ignore_errors=True)
        command = [str(CHROMIUM), *FLAGS, f"--user-data-dir={profile}", *flags, page.as_uri()]
        return subprocess.run(command, capture_output=True, text=True, timeout=90, check=True)

    return run
