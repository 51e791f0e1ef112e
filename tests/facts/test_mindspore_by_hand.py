"""The real graph-mode recording of MindSpore, against the raw events of its timeline."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.once import ResultOf


def lanes(folder: Path) -> dict[str, float]:
    """Milliseconds of each lane of the exporter's own overlap analysis."""
    (path,) = folder.glob("mindstudio_profiler_output/msprof_*.json")
    events = json.loads(path.read_text(encoding="utf-8"))
    kinds = ("Computing", "Communication(Not Overlapped)", "Free")
    found = dict.fromkeys(kinds, 0.0)
    for event in events:
        if event.get("ph") == "X" and event["name"] in found:
            found[event["name"]] += float(event["dur"]) / 1e3
    return found


def test_the_ledger_is_what_the_lanes_say(result_of: ResultOf, profiles: Path) -> None:
    job = profiles / "ascend" / "mindspore-alexnet-2-ranks-msprof"
    result = result_of(job)
    raw = {rank: lanes(folder) for rank, folder in enumerate(sorted(job.glob("PROF_*")))}
    assert [step.rank for step in result.ledger] == [0, 1]
    for step in result.ledger:
        parts = {"compute": 0.0, "communication": 0.0, "idle": 0.0}
        for entry in step.entries:
            parts[entry.path.partition("/")[0]] += entry.ns / 1e6
        assert list(parts.values()) == pytest.approx(list(raw[step.rank].values()), abs=2e-3)
        assert step.wall_ns / 1e6 == pytest.approx(15.34, abs=0.05)  # of it one all-reduce of 9.3 ms
    assert {finding.rule for finding in result.findings} >= {"CO001", "CO003"}
    assert not any(finding.doubted for finding in result.findings)


def test_the_framework_is_told_by_the_names_of_operators(result_of: ResultOf, profiles: Path) -> None:
    """``Default/network-WithLossCell/...-op239``: nothing else in the recording says what ran, and advice for PyTorch is
    of no use to it."""
    result = result_of(profiles / "ascend" / "mindspore-alexnet-2-ranks-msprof")
    assert {source.framework for source in result.inputs} == {"mindspore"}
    assert any("inferred from the names" in said.message.en for said in result.diagnostics)
    advice = [advice.text.en for finding in result.findings for advice in finding.advice]
    assert not [text for text in advice if "DistributedDataParallel" in text or "torch_npu.profiler" in text]
