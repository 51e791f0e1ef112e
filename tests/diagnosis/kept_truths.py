"""Simulated steps that are kept from one run of the benchmark to the next.

What is true of a job depends on the simulator alone. While the advisor is developed that stays, so that a truth is
simulated once for many judgements. Each is a file in `FOLDER`, by all that it depends on: the source of the simulator
and of what judges it, the version of Python, the job and the seed. Another source has other files; `make clean` takes
them all away.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from pathlib import Path
from tempfile import NamedTemporaryFile

from advisor_core import sample

FOLDER = Path(__file__).parent.parent.parent / "build" / "truths"
_SOURCES = (Path(sample.__file__).parent, Path(__file__).parent / "truth.py")


def kept(job: str, seed: int, simulated: Callable[[], float]) -> float:
    """The number that was kept of this job, which says all that it is, or the simulated one, which is kept then."""
    path = FOLDER / sha256(f"{_version()}\n{seed}\n{job}".encode()).hexdigest()
    try:
        return float.fromhex(path.read_text(encoding="ascii"))
    except (FileNotFoundError, ValueError):
        found = simulated()
    FOLDER.mkdir(parents=True, exist_ok=True)
    # Another process may simulate the same: a file is there as a whole or not at all.
    with NamedTemporaryFile("w", encoding="ascii", dir=FOLDER, delete=False) as written:
        written.write(found.hex())
    Path(written.name).replace(path)
    return found


@cache
def _version() -> str:
    """What all truths depend on."""
    found = sha256(sys.version.encode())
    for source in _SOURCES:
        files = [source] if source.is_file() else sorted(source.rglob("*"))
        for file in files:
            if file.suffix in {".py", ".yaml", ".gz"}:
                found.update(file.name.encode() + file.read_bytes())
    return found.hexdigest()
