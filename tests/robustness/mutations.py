"""Damage small recordings of each format in all ways, and count how the runs end.

``python -m tests.robustness.mutations [PATH ...]`` writes a text export, a database and a Kineto trace, does every
damage to them and to copies of what is given (traces, and folders of a rank), and prints how each run ended and, per
format, how many ended in which way.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import chain
from pathlib import Path
from random import Random
from typing import Any

from advisor_core.sample import write_sample
from tests.loaders.kineto.build import Recording
from tests.robustness.damage import OF_PARTS, cut, flipped_bits, hole, junk
from tests.robustness.damage_columns import each_column, rows_exchanged
from tests.robustness.damage_database import OF_TABLES, OfTable, damage_table, tables_of
from tests.robustness.damage_job import renumbered, replaced, shared_files, swapped
from tests.robustness.damage_trace import OF_EVENTS, rewritten
from tests.robustness.silence import Judged, analysed, judged

OF_STREAM = (cut, flipped_bits, hole, junk)
"""What happens to a compressed file on its way."""
SEED = 1
Ended = tuple[str, Judged]


Wanted = Callable[[str], bool]
"""Whether a damage, by its name, is to be done."""


def everything(name: str) -> bool:
    """Every damage."""
    return True


def training() -> Recording:
    """Four steps of eight kernels, a wait for the data loader, a copy and a collective in each."""
    made = Recording()
    for step in range(4):
        start = 10_000.0 * (step + 1)
        made.step(step, start, 9_500)
        made.event("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", start + 10, 3_000)
        first = 100 * step + 1
        made.operator("aten::copy_", start + 3_050, 40, first).call("cudaMemcpyAsync", start + 3_055, 30, first)
        made.task("Memcpy HtoD (Pageable -> Device)", start + 3_060, 200, first, cat="gpu_memcpy",
            **{"External id": first})  # fmt: skip
        for number in range(8):
            kernel, operator = KERNELS[number % len(KERNELS)]
            at = start + 3_300 + 500 * number
            made.launch(kernel, at, at + 20, 350, first + 1 + number, operator)
        last = first + 20
        asked = {"Collective name": "allreduce", "In msg nelems": 1_000_000, "dtype": "Float", "Group size": 2}
        made.operator("record_param_comms", start + 7_500, 40, last, **asked)
        made.call("cudaLaunchKernel", start + 7_510, 5, last)
        made.task("ncclDevKernel_AllReduce_Sum_f32_RING_LL()", start + 7_530, 1_500, last, stream=20,
            **{"External id": last})  # fmt: skip
    return made


KERNELS = (
    ("ampere_sgemm_64x64_nn", "aten::mm"),
    ("elementwise_kernel<MulFunctor>", "aten::mul"),
    ("elementwise_kernel<AddFunctor>", "aten::add"),
)


def of_trace(trace: bytes, folder: Path, wanted: Wanted = everything) -> Iterator[Ended]:
    """Every damage to a Kineto trace: to its events, and to the compressed stream, as ``wanted``."""
    path = folder / "trace.json.gz"
    path.write_bytes(packed := rewritten(trace, lambda events, chance: events, Random(SEED)))
    whole = analysed(path)
    assert whole is not None
    for name, change in OF_EVENTS.items():
        if wanted(name):
            path.write_bytes(rewritten(trace, change, Random(SEED)))
            yield name, judged(whole, analysed(path))
    for damage in OF_STREAM:
        if wanted(name := f"gzip-{damage.__name__}"):
            path.write_bytes(damage(packed, Random(SEED)))
            yield name, judged(whole, analysed(path))


def of_database(rank: Path, changes: Iterable[tuple[str, OfTable]] | None = None) -> Iterator[Ended]:
    """Every damage to every table of a DB export of a rank, or ``changes``: pairs of a table and a damage. The files
    are put back."""
    whole = analysed(rank)
    assert whole is not None
    for path in sorted(rank.rglob("*.db")):
        data, tables = path.read_bytes(), tables_of(path)
        chosen = [(table, change) for table in tables for change in OF_TABLES] if changes is None else changes
        for table, change in chosen:
            if table in tables:
                damage_table(path, table, change, Random(SEED))
                yield f"{table}-{change.__name__}", judged(whole, analysed(rank))
                path.write_bytes(data)


def of_text(rank: Path, wanted: Wanted = everything) -> Iterator[Ended]:
    """Every loss, doubling and swap in every file of a text export of a rank, and each file missing, as ``wanted``. The
    files are put back."""
    whole = analysed(rank)
    assert whole is not None
    for path in sorted(path for path in rank.rglob("*") if path.suffix in OF_PARTS):
        data = path.read_bytes()
        if wanted(name := f"{path.name}-missing"):
            path.unlink()
            yield name, judged(whole, analysed(rank))
        for damage in OF_PARTS[path.suffix]:
            if wanted(name := f"{path.name}-{damage.__name__}"):
                path.write_bytes(damage(data, Random(SEED)))
                yield name, judged(whole, analysed(rank))
        path.write_bytes(data)


def of_events(rank: Path, wanted: Wanted = everything) -> Iterator[Ended]:
    """The trace of a text export cut off after whole events, and without each of the keys that its events and their
    arguments have, as ``wanted``. The file is put back."""
    whole = analysed(rank)
    assert whole is not None
    (path,) = rank.rglob("trace_view.json")
    data = path.read_bytes()
    events = json.loads(data)
    changed: dict[str, list[Any]] = {f"cut at {share}": events[: int(len(events) * share)] for share in SHARES}
    changed["without arrows"] = [event for event in events if event.get("ph") not in ARROWS]
    changed["step marks twice"] = [
        event for event in events for _ in range(2 if str(event.get("name")).startswith("ProfilerStep#") else 1)
    ]
    for category in ("cpu_op", "dequeue"):
        changed[f"nanoseconds in {category}"] = [
            {**event, "dur": event["dur"] * 1_000} if event.get("cat") == category and "dur" in event else event
            for event in events
        ]
    for key in sorted({key for event in events for key in event}):
        changed[f"without {key}"] = [_less(event, key) for event in events]
    for key in sorted({key for event in events for key in event.get("args", ())}):
        changed[f"without {key} of arguments"] = [
            {**event, "args": _less(event["args"], key)} if "args" in event else event for event in events
        ]
    for name, left in changed.items():
        if not wanted(name):
            continue
        path.write_text(json.dumps(left), encoding="utf-8")
        yield name, judged(whole, analysed(rank))
    path.write_bytes(data)


ARROWS = ("s", "t", "f")
"""Phases of the events that join two others."""

SHARES = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99)
"""Of the events or bytes of a trace, which are left where it is cut off."""


def of_bytes(rank: Path, shares: Iterable[float] = SHARES) -> Iterator[Ended]:
    """The trace of a text export that ends in the middle of an event, after ``shares`` of its bytes. The file is put
    back."""
    whole = analysed(rank)
    assert whole is not None
    (path,) = rank.rglob("trace_view.json")
    data = path.read_bytes()
    for share in shares:
        end = data.rindex(b'"', 0, int(len(data) * share))  # never behind an event
        path.write_bytes(data[:end])
        yield f"ends in an event at {share}", judged(whole, analysed(rank))
    path.write_bytes(data)


def of_columns(rank: Path, wanted: Wanted = everything) -> Iterator[Ended]:
    """Every damage to every column of every CSV file of a text export, as ``wanted``. The files are put back."""
    whole = analysed(rank)
    assert whole is not None
    for path in sorted(rank.rglob("*.csv")):
        data = path.read_bytes()
        for column, changed in each_column(data):
            if wanted(name := f"{path.name}-{column}"):
                path.write_bytes(changed)
                yield name, judged(whole, analysed(rank))
        path.write_bytes(data)


def of_rows(rank: Path, seeds: Iterable[int] = range(SEED, SEED + 3)) -> Iterator[Ended]:
    """Two kernels that have each other's value of a column, another two for each seed. The file is put back."""
    whole = analysed(rank)
    assert whole is not None
    (path,) = rank.rglob("kernel_details.csv")
    data = path.read_bytes()
    for column in ("Duration(us)", "Start Time(us)", "Type", "Stream ID", "Accelerator Core"):
        for seed in seeds:
            path.write_bytes(rows_exchanged(data, column, Random(seed)))
            yield f"{column} of two rows, {seed}", judged(whole, analysed(rank))
    path.write_bytes(data)


def of_job(one: Path, other: Path, strangers: Iterable[Path], names: Collection[str] | None = None) -> Iterator[Ended]:
    """The folders of two ranks mixed up, and one of another job in place of the second; ``names``: the files to swap,
    by default all. All is put back."""
    whole = analysed(one.parent)
    assert whole is not None
    for name in shared_files(one, other) if names is None else names:
        with swapped(one, other, name):
            yield f"{name} swapped", judged(whole, analysed(one.parent))
    with replaced(other, renumbered(one, 1)):
        yield "one rank twice", judged(whole, analysed(one.parent))
    for source in strangers:
        with replaced(other, renumbered(source, 1)):
            yield f"{source.name} of {source.parent.name}", judged(whole, analysed(one.parent))


def _less(members: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in members.items() if name != key}


def _count(title: str, runs: Iterable[Ended]) -> None:
    endings: Counter[str] = Counter()
    for name, run in runs:
        endings[run.ending] += 1
        sys.stdout.write(f"  {name:34} {run.ending:8} {run.why[:120]}\n")
    sys.stdout.write(f"{title}: {endings.total()} mutations, {dict(endings)}\n")


def of_folder(rank: Path, folder: Path) -> Iterator[Ended]:
    """A copy of the folder of a rank, which may hold both kinds of export."""
    copy = Path(shutil.copytree(rank, folder / rank.name))
    for path in copy.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    copy.chmod(0o755)
    yield from of_text(copy)
    yield from of_database(copy)
    if any(copy.rglob("kernel_details.csv")):
        yield from chain(of_columns(copy), of_rows(copy))
    if any(copy.rglob("trace_view.json")):
        yield from chain(of_events(copy), of_bytes(copy))


def main(paths: list[Path]) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for number, path in enumerate(paths):
            own = folder / str(number)
            own.mkdir()
            _count(path.name, of_folder(path, own) if path.is_dir() else of_trace(path.read_bytes(), own))
        _count("written trace", of_trace(training().text(), folder))
        _count("text", of_text(text := write_sample(folder / "text")[0]))
        _count("events of text", of_events(text))
        _count("end of the trace of text", of_bytes(text))
        _count("columns of text", of_columns(text))
        _count("rows of text", of_rows(text))
        _count(
            "two ranks", of_job(*write_sample(folder / "ranks")[:2], strangers=write_sample(folder / "job", seed=2)[:1])
        )
        _count("database", of_database(write_sample(folder / "db", format="db")[0]))


if __name__ == "__main__":
    main([Path(path) for path in sys.argv[1:]])
