"""Tasks whose type tells no kind: exports of CANN 7.0 and before write ``Other`` for kernels, copies and events alike."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from advisor_core.facts.device.work import work
from advisor_core.testing import fact_store, profile, table
from tests.once import ResultOf

NAMES = ("aclnnMm_MatMulCommon_MatMulV2", "MEMCPY_ASYNC", "EVENT_WAIT", "trans_Cast_7", "Notify_Record")


def tasks(task_type: str) -> dict[str, pd.DataFrame]:
    rows = [
        {"name": name, "task_type": task_type, "stream": 3, "start_us": 10 * number, "duration_us": 4}
        for number, name in enumerate(NAMES)
    ]
    return {"device_tasks": table("device_tasks", rows)}


def test_they_compute_unless_their_names_say_otherwise() -> None:
    found = fact_store(about=profile(vendor="ascend"), **tasks("Other"))[work]
    assert found["name"].tolist() == ["aclnnMm_MatMulCommon_MatMulV2", "trans_Cast_7"]


def test_a_type_that_tells_its_kind_is_believed() -> None:
    assert len(fact_store(about=profile(vendor="ascend"), **tasks("AI_CORE"))[work]) == len(NAMES)
    assert fact_store(about=profile(vendor="ascend"), **tasks("SDMA_SQE")).get(work) is None


def test_a_trace_of_an_older_cann_is_read_as_its_profiler_read_it(result_of: ResultOf, profiles: Path) -> None:
    """By the lanes of the profiler itself: 1.79 ms of computing and 9.48 ms free."""
    result = result_of(profiles / "ascend" / "trace-view-only_ascend_pt")
    (step,) = result.ledger
    sums = {top: sum(e.ns for e in step.entries if e.path.startswith(f"{top}/")) for top in ("compute", "idle")}
    assert step.wall_ns / 1e6 == pytest.approx(11.27, abs=0.01)
    assert sums["compute"] / 1e6 == pytest.approx(1.79, abs=0.01)
    assert sums["idle"] / 1e6 == pytest.approx(9.48, abs=0.01)
    assert not any("disagrees" in diagnostic.message.en for diagnostic in result.diagnostics)
    assert result.findings[0].rule in ("HD001", "HD005")
