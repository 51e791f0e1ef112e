"""How many processes fit into memory, and how much of it there is."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor_core.contracts.profile import RankInput
from advisor_core.run import pipeline
from advisor_core.run.memory import PACKED, PROCESS_BYTES, READING, available_bytes, most_processes
from advisor_core.run.rank import HELD_BYTES

GIB = 1 << 30


def ranks(*sizes: int, name: str = "trace.json") -> list[RankInput]:
    return [RankInput(Path(), Path(name), "", number, "", size) for number, size in enumerate(sizes)]


@given(st.lists(st.integers(0, 8 * GIB), min_size=1, max_size=70), st.integers(0, 512 * GIB))
def test_as_many_as_fit_and_no_more(sizes: list[int], available: int) -> None:
    def takes(count: int) -> float:
        return count * (PROCESS_BYTES + READING * max(sizes)) + min(sum(sizes), count * HELD_BYTES)

    count = most_processes(ranks(*sizes), available)
    assert count is not None and 1 <= count <= len(sizes)
    assert count == 1 or takes(count) <= available
    assert count == len(sizes) or takes(count + 1) > available


def test_compressed_traces_are_larger_than_their_files() -> None:
    packed, plain = ranks(*[GIB // PACKED] * 8, name="a.json.gz"), ranks(*[GIB // PACKED * PACKED] * 8)
    assert most_processes(packed, 20 * GIB) == most_processes(plain, 20 * GIB) == 4
    assert most_processes(plain, None) is None


def test_default_of_jobs_is_bounded_by_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "usable_processors", lambda: 16)
    for available, jobs in ((None, 16), (512 * GIB, 16), (20 * GIB, 4), (GIB, 1)):
        monkeypatch.setattr(pipeline, "available_bytes", lambda told=available: told)
        assert pipeline._default_jobs(ranks(*[GIB] * 32)) == jobs
    # Small ranks are worth a process where it is a copy of this one.
    for forks, jobs in ((True, 16), (False, 1)):
        monkeypatch.setattr(pipeline, "can_fork", lambda told=forks: told)
        monkeypatch.setattr(pipeline, "available_bytes", lambda: 512 * GIB)
        assert pipeline._default_jobs(ranks(*[1000] * 32)) == jobs


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="ascii")


def test_what_the_system_tells(tmp_path: Path) -> None:
    assert available_bytes(tmp_path) is None
    write(tmp_path / "proc/meminfo", "MemTotal: 4000 kB\nMemAvailable: 3000 kB\n")
    assert available_bytes(tmp_path) == 3000 << 10
    write(tmp_path / "proc/self/cgroup", "4:memory:/job\n0::/pod/box\n")
    groups = tmp_path / "sys/fs/cgroup"
    write(groups / "pod/box/memory.max", "max\n")
    write(groups / "pod/box/memory.current", "100\n")
    assert available_bytes(tmp_path) == 3000 << 10
    write(groups / "pod/memory.max", "2000000\n")
    write(groups / "pod/memory.current", "1500000\n")
    write(groups / "pod/memory.stat", "anon 900000\ninactive_file 400000\n")
    assert available_bytes(tmp_path) == 900_000
    write(groups / "memory/memory.limit_in_bytes", "1000000\n")
    write(groups / "memory/memory.usage_in_bytes", "800000\n")
    assert available_bytes(tmp_path) == 200_000, "the group of the host is not seen in a container"
