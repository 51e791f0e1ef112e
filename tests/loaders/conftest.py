"""Where the real profiles are, and how to read a file that a test wrote."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from advisor_core.loaders.readers.csv_file import CsvTable, read_csv
from advisor_core.loaders.readers.files import HashedFile
from advisor_core.loaders.readers.json_events import CHUNK_BYTES
from advisor_core.loaders.readers.problems import Problems
from advisor_core.loaders.readers.trace_json import Trace, read_trace
from advisor_core.result.run import Diagnostic

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def profiles() -> Path:
    """The folder ``ascend`` of the shared profiles; skips where they are not on this machine."""
    root = Path(os.environ.get("NPU_ADVISOR_PROFILES", REPOSITORY.parent / "shared" / "profiles"))
    if not (root / "ascend").is_dir():
        pytest.skip(f"the real profiles are not at {root}; set NPU_ADVISOR_PROFILES")
    return root / "ascend"


@pytest.fixture
def csv_frame(tmp_path: Path) -> Callable[[bytes, CsvTable], tuple[pd.DataFrame, list[Diagnostic]]]:
    def read(content: bytes, table: CsvTable) -> tuple[pd.DataFrame, list[Diagnostic]]:
        path = tmp_path / "file.csv"
        path.write_bytes(content)
        problems = Problems("file.csv")
        with HashedFile(path) as file:
            return read_csv(file, table, problems)[0], problems.diagnostics()

    return read


@pytest.fixture
def trace(tmp_path: Path) -> Callable[..., tuple[Trace, list[Diagnostic], Path]]:
    def read(content: bytes, chunk_bytes: int = CHUNK_BYTES) -> tuple[Trace, list[Diagnostic], Path]:
        path = tmp_path / "trace_view.json"
        path.write_bytes(content)
        problems = Problems("trace_view.json")
        with HashedFile(path) as file:
            return read_trace(file, problems, chunk_bytes), problems.diagnostics(), path

    return read
