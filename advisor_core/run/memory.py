"""The number of processes that the memory of this machine has room for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from advisor_core.contracts.profile import RankInput
from advisor_core.run.rank import HELD_BYTES

PROCESS_BYTES: Final = 200 << 20
"""A process with our code and a small rank: 178 to 228 MiB measured (docs/speed.md)."""

READING: Final = 2.5
"""Peak of reading a rank in bytes for each byte of its trace, above `PROCESS_BYTES`: 1.8 to 2.5 measured
(docs/index.md)."""

PACKED: Final = 15
"""Bytes of a trace for each byte of it compressed by gzip: 13 to 30 in twelve traces of the PyTorch profiler."""

_ROOT: Final = Path("/")


def most_processes(sources: Sequence[RankInput], available: int | None) -> int | None:
    """Processes that may read the ranks at once in ``available`` bytes, at least one; ``None`` where it is not known
    what is available. Each may be at the largest rank, and keeps tables of others meanwhile."""
    if available is None:
        return None
    sizes = [_unpacked(source) for source in sources]
    own = PROCESS_BYTES + READING * max(sizes, default=0)
    fit = 1
    while fit < len(sizes) and (fit + 1) * own + min(sum(sizes), (fit + 1) * HELD_BYTES) <= available:
        fit += 1
    return fit


def _unpacked(source: RankInput) -> int:
    return source.bytes * (PACKED if source.directory.suffix == ".gz" else 1)


def available_bytes(root: Path = _ROOT) -> int | None:
    """Memory that processes may take without swapping: what Linux has available, and no more than the control groups
    of this process (a container, a job of Slurm) have left. ``None`` where the system does not tell. ``root``: of the
    file system."""
    left = [*_of_machine(root), *_of_groups(root)]
    return max(0, min(left)) if left else None


def _of_machine(root: Path) -> Iterator[int]:
    for line in _lines(root / "proc" / "meminfo"):
        if line.startswith("MemAvailable:"):
            yield int(line.split()[1]) << 10


def _of_groups(root: Path) -> Iterator[int]:
    """Bytes left in each group that limits memory: of version 2, and of version 1. Pages of files that nothing has
    touched lately count as used, and are given up when they are wanted."""
    mounted = root / "sys" / "fs" / "cgroup"
    for line in _lines(root / "proc" / "self" / "cgroup"):
        number, _, rest = line.partition(":")
        controllers, _, group = rest.partition(":")
        if number == "0":
            names = mounted, "memory.max", "memory.current", "inactive_file"
        elif "memory" in controllers.split(","):
            names = mounted / "memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"
        else:
            continue
        top, limit_file, used_file, given_up = names
        inside = Path(group.strip().lstrip("/"))
        for below in (inside, *inside.parents):  # in a container the path may be that of its host, the root its own
            limit, used = (_number(top / below / name) for name in (limit_file, used_file))
            if limit is not None and used is not None:
                stat = dict(line.split()[:2] for line in _lines(top / below / "memory.stat"))
                yield limit - used + int(stat.get(given_up, 0))


def _number(file: Path) -> int | None:
    """The number in a file; ``None`` where there is none, as "max" for no limit."""
    text = "".join(_lines(file)).strip()
    return int(text) if text.isdecimal() else None


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="ascii").splitlines()
    except (OSError, ValueError):
        return []
