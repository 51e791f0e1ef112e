"""Simulated steps that are kept from one run of the benchmark to the next.

What is true of a job depends on the simulator alone. While the advisor is developed that stays, so that a truth is
simulated once for many judgements. It depends on the source of the simulator and of what judges it, the job and the
seed.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

from advisor_core import sample
from tests.diagnosis import kept_files

_SOURCES = (Path(sample.__file__).parent, Path(__file__).parent / "truth.py")


def kept(job: str, seed: int, simulated: Callable[[], float]) -> float:
    """The number that was kept of this job, which says all that it is, or the simulated one, which is kept then."""
    version = kept_files.version_of(_SOURCES)
    name = sha256(f"{version}\n{seed}\n{job}".encode()).hexdigest()
    return float.fromhex(kept_files.kept(kept_files.FOLDER / "truths" / name, lambda: simulated().hex()))
