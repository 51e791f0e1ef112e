"""The folder of stand-ins and copies in the user's cache directory."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from advisor_core.remote.stand_ins import FILES, FOLDER
from advisor_core.text.kept import cache_folder


def kept_folder(most_bytes: int) -> Path | None:
    """The folder, for its user alone; ``None`` where nothing may be kept."""
    folder = _place() if most_bytes else None
    if folder is None:
        return None
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.chmod(0o700)  # fails for a folder of somebody else
    except OSError:
        return None
    return folder


def held() -> tuple[int, int]:
    """The number of copies, and the bytes that they take. Raises OSError where that cannot be told."""
    folder = _place()
    if folder is None or not (folder / FILES).is_dir():
        return 0, 0
    with os.scandir(folder / FILES) as entries:
        sizes = [entry.stat().st_size for entry in entries]
    return len(sizes), sum(sizes)


def clear() -> None:
    """Delete copies and stand-ins. Raises OSError where that fails."""
    folder = _place()
    if folder is not None and folder.is_dir():
        shutil.rmtree(folder)


def _place() -> Path | None:
    above = cache_folder()
    return None if above is None else above / FOLDER
