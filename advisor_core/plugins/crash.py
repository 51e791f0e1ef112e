"""Describe the error of a plugin in one line, with the file and line of the plugin."""

from __future__ import annotations

import os
import sys
import traceback
from pathlib import Path

DEBUG = "ADVISOR_DEBUG"
"""The environment variable that ``advisor --debug`` sets, also for the processes that read ranks: tracebacks go to
stderr."""

_OWN = Path(__file__).resolve().parents[1]


def crash(error: Exception) -> str:
    """The error and where it was raised: the innermost frame outside of the host and of installed libraries."""
    if os.environ.get(DEBUG):
        traceback.print_exception(error, file=sys.stderr)
    frames = reversed(traceback.extract_tb(error.__traceback__))
    ours = (frame for frame in frames if not _is_foreign(Path(frame.filename)))
    place = next((f" ({Path(frame.filename).name}:{frame.lineno})" for frame in ours), "")
    return f"{type(error).__name__}: {error}{place}"


def _is_foreign(file: Path) -> bool:
    """Whether a file is of the host or of a library that plugins use, and not of the plugin."""
    libraries = {"pandas", "numpy", "pyarrow", "pydantic", "msgspec"}
    return file.is_relative_to(_OWN) or bool(libraries & set(file.parts)) or str(file).startswith("<")
