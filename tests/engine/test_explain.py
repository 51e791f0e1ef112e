"""Explain: the answer about a problem, a rank or a ledger entry comes from the report alone."""

from __future__ import annotations

import pytest

from advisor_core.result.run import Input, RuleOutcome, RunResult
from advisor_core.result.view import Grid, TableColumn, TableView
from advisor_core.result.work import CollectiveTime, OperatorTime, Work
from advisor_core.run.compose import compose
from advisor_core.run.explain import explain
from advisor_core.text.base import Text
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


def test_an_operator_has_its_shapes_and_a_collective_its_sizes(explained: RunResult) -> None:
    def ran(type: str | None, shapes: str | None, calls: int, ns: int) -> OperatorTime:
        return OperatorTime(type=type, shapes=shapes, operator_class="matmul", calls=calls, ns=ns)

    operators = [ran("MatMulV3", "8,8;8,8", 4, 400), ran("MatMulV3", None, 8, 40), ran("Mul", "8", 2, 20)]
    operators += [ran("Cast", str(size), 2, size) for size in range(1, 8)] + [ran(None, None, 1, 1)]
    call = CollectiveTime(
        operation="allReduce", members=2, spacing=1, bytes=4096, calls=6, ns=60, uncovered_ns=40, waiting_ns=20
    )
    work = Work(rank_steps=2, operators=operators, collectives=[call])
    subject = explained.findings[0].model_copy(update={"subject": {"kernel": "aclnnMul_Mul_1"}})
    ran_in = explained.model_copy(update={"work": [work], "findings": [subject, *explained.findings[1:]]})
    assert explain(ran_in, "matmul", "en").splitlines() == [
        "operator MatMulV3 (matmul): 220 ns per step of a rank, 22.0 % of it, calls 6",
        "  200 ns per step of a rank, 20.0 % of it, calls 2: 8,8;8,8",
        "  20 ns per step of a rank, 2.0 % of it, calls 4: further shapes",
    ]
    assert explain(ran_in, "mul", "en").splitlines()[1:] == [
        "  10 ns per step of a rank, 1.0 % of it, calls 1: 8",
        "  shown by F1: text",
    ]
    assert explain(ran_in, "Cast", "en").splitlines()[-1] == "  and 2 more, in `work` of report.json"
    for name in ("allreduce", "hcom_allReduce__586_0_1"):
        assert explain(ran_in, name, "en").splitlines() == [
            "collective allReduce: 30 ns per step of a rank, 3.0 % of it, calls 3",
            "  30 ns per step of a rank, 3.0 % of it, calls 3: 4.10 kB each in groups of 2; "
            "20 ns while nothing computes, 10 ns of it waiting for ranks",
        ]
    for name in ("x", "hcom_send__1", ""):
        with pytest.raises(LookupError, match="operator or collective"):
            explain(ran_in, name, "en")


def test_an_operator_has_what_its_kernels_go_through_by_rank(explained: RunResult) -> None:
    def table(rank: int, waits: int) -> TableView:
        heads = [("Type", ""), ("Kernels", ""), ("Queued", "ns"), ("Running", "ns")]
        columns = [TableColumn(label=Text(en=head, zh=f"{head} zh"), unit=unit) for head, unit in heads]
        rows = [["Mul", 2, waits, 50], ["Cast", 3, 1, 1]]
        return TableView(id=f"kernel-stages-rank{rank}", title=TEXT, rank=rank, data=Grid(columns=columns, rows=rows))

    ran = [OperatorTime(type=name, shapes="8", operator_class="x", calls=2, ns=20) for name in ("Mul", "MulAdd")]
    work = Work(rank_steps=2, operators=ran, collectives=[])
    other = TableView(id="apis-rank0", title=TEXT, rank=0, data=table(0, 9).data)
    told = explained.model_copy(update={"work": [work], "views": [table(0, 7), table(3, 8), other]})
    assert explain(told, "Mul", "en").splitlines()[2:] == [
        "  a kernel of rank 0, mean: Queued 7 ns, Running 50 ns",
        "  a kernel of rank 3, mean: Queued 8 ns, Running 50 ns",
    ]
    assert explain(told, "Mul", "zh").splitlines()[2] == "  a kernel of rank 0, mean: Queued zh 7 ns, Running zh 50 ns"
    assert len(explain(told, "MulAdd", "en").splitlines()) == 2
