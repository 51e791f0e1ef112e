"""Reports on ranks that are not of one run: nothing is a mean over them."""

from __future__ import annotations

from datetime import date
from types import ModuleType

import pytest

from advisor_core.compare.compare import CompareError, compare_all
from advisor_core.gates.baseline import baseline_of
from advisor_core.gates.condition import TimeGate, UndecidableError
from advisor_core.result.run import RunResult
from reports.html import HtmlRenderer
from reports.markdown import MarkdownRenderer
from reports.outline import Outline
from reports.terminal import summary


@pytest.fixture
def apart(example: ModuleType) -> RunResult:
    """The first finding says so of them."""
    result: RunResult = example.two_of_four()
    profile = result.profile.model_copy(update={"apart": [result.findings[0].fingerprint]})
    composed: RunResult = example.recomposed(result.model_copy(update={"profile": profile}))
    return composed


def test_there_is_no_mean_step(apart: RunResult) -> None:
    assert [mean.rank for mean in apart.mean_steps] == apart.profile.ranks
    assert (apart.coverage.known_share, apart.coverage.claimed_share, apart.phase_summaries) == (0, 0, [])


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_report_tells_each_rank(apart: RunResult, lang: str) -> None:
    number = apart.numbers[apart.profile.apart[0]]
    for written in (
        MarkdownRenderer().render(apart, lang),
        HtmlRenderer().render(apart, lang),
        summary(apart, lang, []),
    ):
        assert ("not seem to be of one run" if lang == "en" else "似乎不属于同一次运行") in written
        assert "mean of 2 ranks" not in written and "2 个 rank 均值" not in written
        assert number in written
    ledgers = Outline(apart).columns
    assert [ledger.rank for ledger in ledgers] == apart.profile.ranks
    assert {row.path for row in Outline(apart).rows} >= {"compute", "communication"}


def test_no_gate_and_no_comparison_takes_a_mean_over_them(apart: RunResult) -> None:
    gate = TimeGate("idle", ">", 0.01, "step")
    with pytest.raises(UndecidableError, match="not seem to be of one run"):
        gate.met(apart, None, date.today())
    assert baseline_of(apart).step_ns is None
    with pytest.raises(CompareError, match="give each run by itself"):
        compare_all(["a", "b"], [apart, apart])
