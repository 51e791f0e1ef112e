"""Simulated steps that are kept from one run of the benchmark to the next.

What is true of a job depends on the simulator alone. While the advisor is developed that stays, so that a truth is
simulated once for many judgements. It depends on the source of the simulator and of what judges it, the job and the
seed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path

from advisor_core import sample
from tests.diagnosis import kept_files

_SOURCES = (Path(sample.__file__).parent, Path(__file__).parent / "truth.py")


def kept(job: str, seed: int, simulated: Callable[[], Sequence[float]]) -> list[float]:
    """The numbers that were kept of this job, which says all that it is, or the simulated ones, which are kept then."""
    version = kept_files.version_of(_SOURCES)
    name = sha256(f"{version}\n{seed}\n{job}".encode()).hexdigest()
    path = kept_files.FOLDER / "truths" / name
    text = kept_files.kept(path, lambda: " ".join(number.hex() for number in simulated()))
    return [float.fromhex(number) for number in text.split()]
