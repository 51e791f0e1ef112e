"""What the tables do not depend on: the order of events, where the file is cut into chunks, compression."""

from __future__ import annotations

import gzip
import json
import tempfile
from pathlib import Path

import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor_core.loaders.kineto.head import open_trace
from advisor_core.loaders.kineto.tables import Trace, read_trace
from advisor_core.loaders.readers.problems import Problems
from tests.loaders.kineto.build import Recording, two_steps


def everything() -> Recording:
    made = two_steps().memory(1101, 512, 64, 512).memory(1305, -512, 64, 0)
    made.python("train.py(1): <module>", 900, 3000, 1, None).python("model.py(7): forward", 1090, 400, 2, 1)
    asked = {"Collective name": "allreduce", "In msg nelems": 8, "dtype": "Float", "Group size": 2}
    made.operator("record_param_comms", 1600, 40, 50, **asked, **{"Process Group Name": "0"})
    made.call("cudaLaunchKernel", 1610, 5, 50).task("ncclDevKernel_AllReduce_Sum_f32()", 1650, 70, 50)
    made.call("cudaMemcpyAsync", 1700, 5, 51).task("Memcpy HtoD (Pinned -> Device)", 1710, 9, 51, cat="gpu_memcpy")
    return made


def read(text: bytes, chunk_bytes: int, compressed: bool) -> Trace:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        path.write_bytes(gzip.compress(text) if compressed else text)
        problems = Problems("trace.json")
        with open_trace(path) as file:
            trace = read_trace(file, problems, chunk_bytes)
        assert problems.diagnostics() == []
        return trace


def rows(frame: pd.DataFrame) -> list[tuple[object, ...]]:
    """The rows as a set: without their place in the file."""
    texts = frame.drop(columns="source_row").astype(str)
    return sorted(texts.itertuples(index=False, name=None))


WHOLE = read(everything().text(), 4 << 20, False)


@settings(max_examples=settings.default.max_examples // 2)
@given(st.permutations(everything().events), st.integers(64, 4000), st.booleans(), st.sampled_from([None, 1]))
def test_same_tables(events: list[object], chunk_bytes: int, compressed: bool, indent: int | None) -> None:
    document = {**everything().members, "traceEvents": events}
    trace = read(json.dumps(document, indent=indent).encode(), chunk_bytes, compressed)
    assert set(trace.frames) == set(WHOLE.frames) and set(trace.missing) == set(WHOLE.missing)
    for name, frame in WHOLE.frames.items():
        assert rows(trace.frames[name]) == rows(frame), name
