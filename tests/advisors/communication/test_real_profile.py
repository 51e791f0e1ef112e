"""Communication of a recorded job of AlexNet."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor_core.api.testing import judge_rule
from advisor_core.contracts.tables import COMMUNICATION_TASKS
from tests.advisors.real import real_rank


def test_alexnet_rank_0(profiles: Path) -> None:
    store = real_rank(profiles, "alexnet-ddp-text-level1", 0)
    found = judge_rule("CO001", store).first
    assert found.severity == "high"
    assert found.observation["uncovered_ns"] == pytest.approx(101.963e6, rel=1e-3)
    assert found.observation["overlap_ratio"] == pytest.approx(4.03 / 105.99, rel=1e-2)
    late = judge_rule("CO002", store)
    assert [row.observation["late"] for row in late.verdict.rows] == ["rank 5"]  # type: ignore[union-attr]
    assert late.first.impact_ns == pytest.approx(97.9e6, rel=1e-3) and late.first.severity == "high"
    assert late.first.observation["calls"] == 2
    # The first wait by hand from the raw trace: Notify_Wait on Plane 5, 78.76 ms from 1736408883732253.684 us on.
    first = store[COMMUNICATION_TASKS].iloc[late.evidence()[0].rows[0]]
    assert (first["lane"], first["peer_rank"], first["duration_ns"]) == ("Plane 5", 5, 78_764_614)
    for rule in ("CO003", "CO005", "CO006", "CO007", "CO009", "CO014"):
        assert judge_rule(rule, store).state == "pass"
    for rule in ("CO004", "CO008"):
        assert judge_rule(rule, store).state == "not_applicable"


def test_alexnet_level0_knows_that_but_not_why(profiles: Path) -> None:
    store = real_rank(profiles, "alexnet-ddp-text-level0", 0)
    assert judge_rule("CO001", store).state == "fail"
    for rule in ("CO002", "CO003", "CO004", "CO005", "CO006", "CO007", "CO009"):
        assert judge_rule(rule, store).state == "cannot_answer", rule
