"""The mark of a step that was recorded alone, against the raw files."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from tests.once import ResultOf


def test_mark_and_step_of_a_trace_add_up(result_of: ResultOf, profiles: Path) -> None:
    folder = profiles / "ascend" / "trace-view-only_ascend_pt"
    events = json.loads((folder / "ASCEND_PROFILER_OUTPUT" / "trace_view.json").read_text())
    (mark,) = (event for event in events if str(event.get("name")).startswith("ProfilerStep#"))
    (step,) = result_of(folder).profile.steps
    assert step.mark_ns == round(float(mark["dur"]) * 1_000)
    assert None not in (step.start_ns, step.end_ns, step.mark_before_ns, step.mark_after_ns)
    assert step.mark_before_ns + (step.end_ns - step.start_ns) + step.mark_after_ns == step.mark_ns  # type: ignore[operator]


def test_what_lies_before_the_first_task_is_what_the_exporter_calls_preparing(
    result_of: ResultOf, profiles: Path
) -> None:
    folder = profiles / "ascend" / "alexnet-ddp-text-level1"
    for step in result_of(folder).profile.steps:
        (file,) = folder.glob(f"rank{step.rank}_ascend_pt/ASCEND_PROFILER_OUTPUT/step_trace_time.csv")
        with file.open() as rows:
            (row,) = csv.DictReader(rows)
        # the exporter does not shift the clock of the host
        assert step.mark_before_ns == pytest.approx(float(row["Preparing"]) * 1_000, abs=50_000)
