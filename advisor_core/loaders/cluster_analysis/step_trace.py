"""cluster_step_trace_time.csv: the parts of each step of every rank, and of the slowest rank of each pipeline stage.

A row per step and rank (``Type`` is ``rank``, ``Index`` its number) or stage (``stage``, the tuple of its ranks; each
part is that of the rank with most of it). The step is empty where the ranks recorded none. Times are microseconds.
(msprof-analyze, docs/zh/user_guide/cluster_analyse_instruct.md; two real files.)
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pandas as pd

from advisor_core.contracts.missing import Unavailable
from advisor_core.contracts.tables import STEP_TRACE
from advisor_core.loaders.readers.files import HashedFile
from advisor_core.loaders.readers.problems import Problems
from advisor_core.remote.copies import here
from advisor_core.text.messages import message

NAME: Final = "cluster_step_trace_time.csv"
LARGEST: Final = 1 << 28
"""Bytes of a file that is read: a million rows of ranks and steps."""

_PARTS: Final = {
    "computing_ns": "Computing",
    "uncovered_communication_ns": "Communication(Not Overlapped)",
    "overlapped_ns": "Overlapped",
    "communication_ns": "Communication",
    "free_ns": "Free",
    "stage_ns": "Stage",
    "bubble_ns": "Bubble",
    "preparing_ns": "Preparing",
}
_NEEDED: Final = ("Type", "Index", "Computing", "Communication(Not Overlapped)", "Free")


@dataclass(frozen=True)
class ClusterSteps:
    """``ranks``: the table step_trace of each rank. ``stages``: the ranks of each stage of a pipeline."""

    ranks: Mapping[int, pd.DataFrame]
    stages: tuple[tuple[int, ...], ...]


def recorded_ranks(path: Path) -> list[int]:
    """The numbers of the ranks in the file, without reading its values. Raises OSError."""
    with here(path).open(encoding="utf-8-sig", errors="replace", newline="") as file:
        found = {int(rank[1]) for line in file if (rank := re.match(r'[^,]*,"?rank"?,"?(\d{1,9})"?,', line))}
    return sorted(found)


def read_cluster_steps(file: HashedFile, problems: Problems) -> ClusterSteps:
    """Read the file. Raises `Unavailable` where it is no such table."""
    text = file.read(LARGEST).decode("utf-8-sig", errors="replace")
    reader = csv.DictReader(io.StringIO(text))
    absent = [name for name in _NEEDED if name not in (reader.fieldnames or ())]
    if absent:
        raise Unavailable(message("loader.cluster.columns", file=problems.file, columns=", ".join(absent)))
    rows: dict[int, list[dict[str, float]]] = {}
    stages: dict[str, tuple[int, ...]] = {}
    for line, cells in _lines(reader):
        if cells["Type"] == "stage":
            stages[cells["Index"]] = tuple(int(rank) for rank in re.findall(r"\d{1,9}", cells["Index"]))
            continue
        values = {name: _ns(cells.get(column)) for name, column in _PARTS.items()}
        if not re.fullmatch(r"\d{1,9}", cells["Index"]) or math.isnan(values["computing_ns"]):
            problems.count("loader.rows_dropped", "Index", 1, [(line, cells["Index"])])
            continue
        step = cells.get("Step") or ""
        values |= {"step": int(step) if re.fullmatch(r"\d{1,18}", step) else -1, "source_row": line}
        rows.setdefault(int(cells["Index"]), []).append(values)
    frames = {rank: STEP_TRACE.conform(pd.DataFrame(own)) for rank, own in rows.items()}
    return ClusterSteps(frames, tuple(sorted(stages.values())) if len(stages) > 1 else ())


def _lines(reader: csv.DictReader[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """The rows of ranks and stages, with the line at which each ends."""
    for row in reader:
        cells = {name: value.strip() for name, value in row.items() if isinstance(name, str) and isinstance(value, str)}
        if cells.get("Type") in ("rank", "stage") and "Index" in cells:
            yield reader.line_num, cells


def _ns(cell: str | None) -> float:
    try:
        value = float(cell) * 1000 if cell else math.nan
    except ValueError:
        return math.nan
    return value if math.isfinite(value) else math.nan
