"""Ways in which the folders of two ranks get mixed up: a file that went to the other rank, a rank copied under another
number, the folder of another job."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

OUTPUT = "ASCEND_PROFILER_OUTPUT"


def shared_files(one: Path, other: Path) -> list[str]:
    """Names of the exports that both ranks have."""
    return sorted(path.name for path in (one / OUTPUT).iterdir() if (other / OUTPUT / path.name).is_file())


@contextmanager
def swapped(one: Path, other: Path, name: str) -> Iterator[None]:
    """An export of each rank lies in the folder of the other."""
    first, second = one / OUTPUT / name, other / OUTPUT / name
    data = first.read_bytes(), second.read_bytes()
    first.write_bytes(data[1])
    second.write_bytes(data[0])
    try:
        yield
    finally:
        first.write_bytes(data[0])
        second.write_bytes(data[1])


@contextmanager
def replaced(rank: Path, change: Callable[[Path], object]) -> Iterator[None]:
    """What ``change`` writes stands in place of the folder of a rank."""
    kept = rank.parent.parent / f"{rank.name}.kept"  # outside of the job
    rank.rename(kept)
    try:
        change(rank)
        yield
    finally:
        shutil.rmtree(rank)
        kept.rename(rank)


def stranger(source: Path) -> Callable[[Path], object]:
    """The folder of another job."""

    def write(target: Path) -> None:
        for path in (path for path in source.rglob("*") if path.is_file()):
            copy = target / path.relative_to(source)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(path.read_bytes())

    return write


def renumbered(source: Path, rank: int) -> Callable[[Path], object]:
    """The folder of another rank of the same job, under the number of this one."""

    def write(target: Path) -> None:
        stranger(source)(target)
        for path in target.glob("profiler_info_*.json"):
            about = json.loads(path.read_text(encoding="utf-8"))
            path.unlink()
            path.with_name(f"profiler_info_{rank}.json").write_text(
                json.dumps({**about, "rank_id": rank}), encoding="utf-8"
            )

    return write
