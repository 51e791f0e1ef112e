"""Results to compare, written down as little as each test needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from advisor_core.result.evidence import Evidence
from advisor_core.result.finding import Advice, Claim, Finding, Impact, Severity
from advisor_core.result.plan import Action, Limit, Plan
from advisor_core.result.run import (
    Environment,
    Input,
    LedgerEntry,
    LedgerStep,
    Profile,
    RuleOutcome,
    RunResult,
    State,
    Tool,
)
from advisor_core.result.work import OperatorTime, Work
from advisor_core.run.compose import compose
from advisor_core.text.base import Text

TEXT = Text(en="text", zh="文本")


def step(entries: dict[str, int], rank: int = 0, number: int | None = 1, role: str | None = None) -> LedgerStep:
    leaves = [LedgerEntry(path=path, ns=ns) for path, ns in entries.items()]
    return LedgerStep(rank=rank, step=number, wall_ns=sum(entries.values()), entries=leaves, role=role)


def result(
    ledger: Sequence[LedgerStep],
    findings: Sequence[Finding] = (),
    *,
    states: dict[str, State] | None = None,
    source: dict[str, Any] | None = None,
    environment: dict[str, Any] | None = None,
    profile: dict[str, Any] | None = None,
    **fields: Any,
) -> RunResult:
    """``states``: of rules without a finding; those of the findings fail."""
    ranks = sorted({one.rank for one in ledger})
    inputs = [
        Input.model_validate(
            {
                "path": f"rank{rank}",
                "kind": "simulated",
                "rank": rank,
                "level": "level1",
                "framework": "pytorch",
                "sha256": "",
                "vendor": "ascend",
                **(source or {}),
            }
        )
        for rank in ranks
    ]
    rules = {finding.rule: "fail" for finding in findings} | (states or {})
    given = RunResult(
        tool=Tool(name="npu-advisor", version="1"),
        inputs=inputs,
        environment=Environment(**(environment or {})),
        profile=Profile(**({"kind": "training", "ranks": ranks, "steps": []} | (profile or {}))),
        ledger=list(ledger),
        findings=list(findings),
        rules=[RuleOutcome(rule=rule, name=rule, title=TEXT, state=state) for rule, state in rules.items()],
        views=[],
        diagnostics=[],
        **fields,
    )
    return compose(given)


def finding(
    name: str,
    ns: int = 0,
    path: str = "idle/sync",
    *,
    fingerprint: str = "",
    severity: Severity = "low",
    sets: dict[str, str] | None = None,
    kind: Literal["env", "investigate"] = "investigate",
    **changes: Any,
) -> Finding:
    """A finding of the rule ``name`` that measured and claims ``ns`` of an entry of rank 0."""
    impact = Impact(
        ns_per_step=ns,
        gross_ns_per_step=ns,
        share_of_step=0.0,
        basis="exact",
        claims=[Claim(rank=0, path=path, ns=ns)] if ns else [],
    )
    fields: dict[str, Any] = {
        "rule": name,
        "name": name,
        "fingerprint": fingerprint or name,
        "title": Text(en=f"title of {name}", zh=f"{name} 的标题"),
        "why": TEXT,
        "verify": TEXT,
        "severity": severity,
        "confidence": "high",
        "rank": 0,
        "ranks": [0],
        "step": None,
        "subject": {},
        "impact": impact,
        "observation": {},
        "units": {},
        "condition": "true",
        "evidence": [Evidence(kind="metric", title=TEXT)],
        "advice": [Advice(kind=kind, text=TEXT, set=sets or {})],
    }
    return Finding.model_validate(fields | changes)


def plan(step_ns: int, *actions: tuple[str, int, int]) -> Plan:
    """A plan of findings, with what each wins alone and on top of those before it."""
    told, left = [], step_ns
    for name, alone, gain in actions:
        left -= gain
        told.append(
            Action(
                finding=name,
                alone_ns=alone,
                range_ns=(alone - 1, alone + 1),
                last_ns=gain,
                gain_ns=gain,
                step_after_ns=left,
            )
        )
    limit = Limit(rank=0, chain="host", share=0.5)
    return Plan(
        step_ns=step_ns,
        after_ns=left,
        after_range_ns=(left, left),
        actions=told,
        parts_before={},
        parts_after={},
        limit=limit,
        next_limit=limit,
    )


def work(*rows: tuple[str | None, str | None, int, int], rank_steps: int = 1) -> Work:
    """Operators: type, shapes, calls and ns of each."""
    operators = [
        OperatorTime(type=kind, shapes=shapes, operator_class="" if shapes is None else "matmul", calls=calls, ns=ns)
        for kind, shapes, calls, ns in rows
    ]
    return Work(rank_steps=rank_steps, operators=operators, collectives=[])
