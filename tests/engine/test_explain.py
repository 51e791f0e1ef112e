"""Explain: the answer about a problem, a rank or a ledger entry comes from the report alone."""

from __future__ import annotations

import pytest

from advisor_core.result.run import Input, RuleOutcome, RunResult
from advisor_core.run.compose import compose
from advisor_core.run.explain import explain
from tests.engine.test_compose import TEXT, finding, result, step


@pytest.fixture
def explained() -> RunResult:
    ledger = [step(rank, {"compute/matmul": 700, "idle/sync": 300}) for rank in (0, 3)]
    findings = [
        finding("symptom", {0: 10, 3: 20}, 3, explained_by=["cause"], severity="low"),
        finding("cause", {3: 200}, 3, severity="high"),
        finding("alone", {0: 50}, 0, severity="medium"),
    ]
    rules = [RuleOutcome(rule=f.rule, name=f.name, title=TEXT, state="fail", findings=1) for f in findings]
    rules.append(
        RuleOutcome(rule="OPEN", name="open", title=TEXT, state="pass", ranks={"pass": [0], "cannot_answer": [3]})
    )
    inputs = [
        Input(path=f"r{rank}", kind="text", rank=rank, level="level1", framework=None, sha256="") for rank in (0, 3)
    ]
    return compose(result(ledger, findings).model_copy(update={"rules": rules, "inputs": inputs}))


def test_a_problem_has_its_number_its_place_its_numbers_and_its_causes(explained: RunResult) -> None:
    lines = explain(explained, "F1", "en").splitlines()
    assert lines[:7] == [
        "F1: text",
        "  problem 1 of 2",
        "  severity high, the highest of it and its causes",
        "  at stake: 220 ns, 22.0 % of the step of rank 3 (exact)",
        "  of which its own finding: 20 ns",
        "  cause F1a: 200 ns, 20.0 % of the step of rank 3 (exact): text",
        "  first thing to do (F1a): text",
    ]
    assert "SYMPTOM symptom: text" in lines[7]


def test_a_cause_says_below_what_it_stands(explained: RunResult) -> None:
    said = explain(explained, "f1a", "en")
    assert "problem 1 of 2, a cause of F1" in said and "CAUSE" in said
    assert said == explain(explained, "cause", "en") == explain(explained, "CAUSE", "en")


def test_a_rank(explained: RunResult) -> None:
    said = explain(explained, "rank 3", "en").splitlines()
    assert said[0] == "rank 3: text, level level1, r3"
    assert "  the only step: 1.00 µs" in said
    assert "  F1 20 ns claimed here: text" in said and "  F1a 200 ns claimed here: text" in said
    assert not any("F2" in line for line in said)
    assert "  unexplained compute/matmul: 700 ns (70.0 %)" in said
    assert "  OPEN cannot_answer: text" in said


def test_a_rule_says_for_which_ranks_it_holds(explained: RunResult) -> None:
    assert "  cannot_answer on ranks 3" in explain(explained, "OPEN", "en").splitlines()


@pytest.mark.parametrize("what", ["F9", "rank 7", "no/such/path", ""])
def test_what_the_report_does_not_have(explained: RunResult, what: str) -> None:
    with pytest.raises(LookupError, match="is not a problem"):
        explain(explained, what, "en")
