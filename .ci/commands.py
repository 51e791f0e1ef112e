"""Commands that the checks run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def call(*command: str | Path, cwd: Path | None = None) -> str:
    """Run a command; its output is shown if it fails."""
    done = subprocess.run([str(part) for part in command], cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))} ended with {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout
