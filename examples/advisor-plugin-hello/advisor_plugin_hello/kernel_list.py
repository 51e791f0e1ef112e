"""A loader: reads ``*.kernels.csv``, a list of kernels with type, start and duration in microseconds."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from advisor_core.api.loaders import SCHEMAS, InputError, InputFile, Int64Array, PositionKind, Profile, RankInput, Table

ENDING = ".kernels.csv"


@dataclass(frozen=True)
class Lines:
    """Where rows come from, for the evidence of findings: row 0 is line 2, below the header."""

    file: str
    sha256: str
    position: PositionKind = "line"

    def positions(self, source_rows: Int64Array) -> Int64Array:
        return source_rows + 2

    def tables(self, source_rows: Int64Array) -> Sequence[str]:
        return []


class KernelList:
    """Tables that are not given are not there; what needs them says so in the report."""

    name = "hello.kernel_list"

    def discover(self, root: Path) -> Sequence[RankInput]:
        """By name only: loading is asked for later, perhaps in another process."""
        files = sorted(root.glob(f"*{ENDING}")) if root.is_dir() else [root] if root.name.endswith(ENDING) else []
        return [
            RankInput(root, file, self.name, rank, self.name, file.stat().st_size) for rank, file in enumerate(files)
        ]

    def load(self, source: RankInput) -> Profile:
        name, digest = source.directory.name, hashlib.sha256(source.directory.read_bytes()).hexdigest()
        try:
            rows = pd.read_csv(source.directory)
            kernels = _kernels(rows)
        except (ValueError, KeyError) as error:
            raise InputError(f"{source.directory}: {error}") from None
        return Profile(
            rank=source.rank,
            kind=self.name,
            path=name,
            level=None,
            framework=None,
            vendor="ascend",
            versions={},
            profiler={},
            variables={},
            tables={"kernels": Table(SCHEMAS["kernels"], kernels, Lines(name, digest))},
            missing={},
            files=[InputFile(name=name, bytes=source.bytes, sha256=digest)],
            diagnostics=[],
        )


def _kernels(rows: pd.DataFrame) -> pd.DataFrame:
    """The canonical table: times are int64 nanoseconds. A column that is left out has no values."""
    times = {f"{name}_ns": (rows[f"{name}_us"] * 1_000).round().astype("int64") for name in ("start", "duration")}
    texts = {"name": rows["type"], "type": rows["type"], "core": "AI_CORE"}
    frame = pd.DataFrame({**texts, **times, "source_row": np.arange(len(rows))})
    return SCHEMAS["kernels"].conform(frame)
