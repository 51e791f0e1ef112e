"""Commands that the checks run, and environments of their own to run them in."""

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


def build_wheel(source: Path, folder: Path) -> None:
    """Write the wheel of the project in ``source`` to ``folder``."""
    call(sys.executable, "-m", "build", "--wheel", "--outdir", folder, source)


def new_environment(interpreter: str, folder: Path, *packages: str | Path) -> Path:
    """Make ``folder`` an environment of ``interpreter`` with ``packages``, which may be any arguments of ``pip
    install``. Gives its folder of programs.

    Our own pip installs them, as one more in each environment takes longer than what it would install. Nothing is
    compiled ahead: most modules are never imported, and compiling all took four fifths of an installation.
    """
    call(interpreter, "-m", "venv", "--without-pip", folder)
    programs = folder / "bin"
    pip = (sys.executable, "-m", "pip", "--python", programs / "python")
    call(*pip, "install", "--quiet", "--no-compile", *packages)
    return programs
