from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from advisor_core.contracts.advisor import Advisor
from advisor_core.rules.applicability import Job
from advisor_core.rules.compiled import CompiledRule
from advisor_core.rules.files.ruleset import load_rules
from advisor_core.rules.judge import Context, Verdict, explain_row, judge
from advisor_core.text.base import Text

Rule = Callable[..., str]


@pytest.fixture
def load(rule: Rule, write: Callable[..., Path], advisors: dict[str, Advisor]) -> Callable[..., CompiledRule]:
    """The rule with pieces of its text replaced, compiled."""
    return lambda *changes: load_rules([write(rule(*changes))], advisors)["HD001"]


Load = Callable[..., CompiledRule]


def test_rows_at_fault_come_by_impact(load: Load, frame: pd.DataFrame) -> None:
    verdict = judge(load(), frame, Context(profile={"graph_mode": False}))
    assert verdict.state == "fail"
    assert [(row.row, row.severity, row.confidence, row.impact_ns) for row in verdict.rows] == [
        (1, "high", "high", 900_000),
        (0, "low", "high", 100_000),
    ]
    assert (verdict.unknown_rows, verdict.unknown_columns) == (1, ("idle_share",))
    first = verdict.rows[0]
    assert first.observation == {
        "kernel": "<script>",
        "idle_ns": 900_000,
        "gap_us": 2.0,
        "idle_share": 0.6,
        "size": 2,
        "launches": 5,
        "late": False,
        "number": 2.0,
    }
    assert [type(value) for value in first.observation.values()] == [str, int, float, float, int, int, bool, float]
    assert first.title == Text(en="60.0 % of the step waits for the host", zh="60.0 % 的时间在等待主机")
    assert first.why == Text(en=r"Above 10 % it is \<script\>.", zh=r"超过 10 % 即为 \<script\>。")
    assert first.advice[1].text.en == "Look at `<script>`."


def test_limit(load: Load) -> None:
    count = 9
    frame = pd.DataFrame({"launches": 1, "idle_share": 0.2, "idle_ns": np.arange(count) * 100_000 + 50_000})
    verdict = judge(load(("claims:", "limit: 2\nclaims:")), frame)
    assert [row.row for row in verdict.rows] == [8, 7]
    assert verdict.dropped_rows == 7
    assert verdict.dropped_ns == sum(n * 100_000 + 50_000 for n in range(7))


def test_pass(load: Load, frame: pd.DataFrame) -> None:
    rule = load()
    assert judge(rule, frame.iloc[2:4]) == Verdict("pass")
    assert rule.good_text({}) == Text(en="The host keeps up", zh="主机下发及时")


def test_not_applicable(load: Load, frame: pd.DataFrame) -> None:
    verdict = judge(load(), frame.iloc[3:4])
    assert verdict.state == "not_applicable"
    assert verdict.reason is not None
    assert "launches > 0" in verdict.reason.en
    nothing = judge(load(), frame.iloc[:0])
    assert nothing.state == "not_applicable"
    assert nothing.reason is not None and nothing.reason.zh


def test_cannot_answer_names_what_is_missing(load: Load, frame: pd.DataFrame) -> None:
    verdict = judge(load(), frame.iloc[2:])
    assert (verdict.state, verdict.rows, verdict.unknown_rows) == ("cannot_answer", (), 1)
    assert verdict.unknown_columns == ("idle_share",)
    assert verdict.reason == Text(
        en="not known from this profile: idle_share (1 of 3 rows could not be judged)",
        zh="该 profile 中无法得知：idle_share（3 行中有 1 行无法判断）",
    )
    env = load(("idle_share > params.idle_share\n", "idle_share > params.idle_share and env.CPU_AFFINITY_CONF == ''\n"))
    assert judge(env, frame.iloc[:1]).unknown_columns == ("env.CPU_AFFINITY_CONF",)
    assert judge(env, frame.iloc[:1], Context(job=Job(variables={"CPU_AFFINITY_CONF": ""}))).state == "fail"
    assert judge(env, frame.iloc[:1], Context(job=Job(variables={"CPU_AFFINITY_CONF": "1"}))).state == "pass"
    division = judge(load(("launches > 0", "1 / (launches - 5) > 0")), frame.iloc[:1])
    assert (division.state, division.unknown_columns) == ("cannot_answer", ())
    assert division.reason is not None and "division by zero" in division.reason.en


def test_a_row_that_is_in_order_needs_no_answer_on_whether_the_rule_applies(load: Load, frame: pd.DataFrame) -> None:
    unknown = frame.astype({"launches": object}).assign(launches=None)
    assert judge(load(), unknown.iloc[2:3]).state == "pass"
    assert judge(load(), unknown.iloc[0:1]).state == "cannot_answer"


@pytest.mark.parametrize(
    ("severity", "expected"),
    [
        ("{high: idle_share > 0.5}", "low"),
        ("{high: true}", "high"),
        ("{high: late, medium: 'true'}", "high"),
        ("{high: not late, medium: true}", "medium"),
        ("{high: number > 0, medium: true}", "high"),
        ("{high: gap_us > 0, medium: true}", "medium"),  # the first is unknown
        ("{low: false}", "low"),  # a finding has some severity
        ("{}", "low"),
    ],
)
def test_severity(severity: str, expected: str, load: Load, frame: pd.DataFrame) -> None:
    row = frame.iloc[:1].assign(gap_us=float("nan"))
    rule = load(("{high: idle_share > 0.5, medium: idle_share > 0.3}", severity))
    assert judge(rule, row).rows[0].severity == expected


@pytest.mark.parametrize(
    ("graph_mode", "kinds", "unless"),
    [
        (False, ["env", "investigate"], None),
        (True, ["investigate"], None),
        (None, ["env", "investigate"], "Not together with graph capture."),
    ],
)
def test_unless(graph_mode: bool | None, kinds: list[str], unless: str | None, load: Load, frame: pd.DataFrame) -> None:
    (row,) = judge(load(), frame.iloc[:1], Context(profile={"graph_mode": graph_mode})).rows
    assert [advice.kind for advice in row.advice] == kinds
    if unless or not graph_mode:
        assert (row.advice[0].unless.en if row.advice[0].unless else None) == unless
        assert row.advice[0].set == {"TASK_QUEUE_ENABLE": "2"}


@pytest.mark.parametrize(
    ("steps", "kinds"), [(1, ["investigate"]), (3, ["env", "investigate"]), (None, ["env", "investigate"])]
)
def test_when_of_advice(steps: int | None, kinds: list[str], load: Load, frame: pd.DataFrame) -> None:
    rule = load(("    unless: profile.graph_mode\n", "    when: profile.steps > 1\n    unless: profile.graph_mode\n"))
    (row,) = judge(rule, frame.iloc[:1], Context(profile={"steps": steps})).rows
    assert [advice.kind for advice in row.advice] == kinds
    if steps is None:
        assert row.advice[0].only_if is not None and row.advice[0].unless is not None
        assert row.advice[0].only_if.en == (
            "Applies only if `profile.steps > 1`, which could not be decided from the profile."
        )
        assert row.advice[0].unless.en == "Not together with graph capture."


def test_impact_that_is_not_known_lowers_confidence(load: Load, frame: pd.DataFrame) -> None:
    row = frame.iloc[:1].assign(gap_us=float("nan"))
    (judged,) = judge(load(("value: idle_ns,", "value: gap_us * 0.5,")), row).rows
    assert (judged.impact_ns, judged.confidence) == (0, "low")
    (judged,) = judge(load(("value: idle_ns,", "value: 0 - idle_ns,")), frame.iloc[:1]).rows
    assert (judged.impact_ns, judged.confidence) == (0, "high")  # never less than nothing
    (judged,) = judge(load(("value: idle_ns,", "value: gap_us * 1.4996,")), frame.iloc[:1]).rows
    assert judged.impact_ns == 1500


def test_a_rule_may_tell_how_much_of_the_impact_is_idle_time(load: Load, frame: pd.DataFrame) -> None:
    (judged,) = judge(load(), frame.iloc[:1]).rows
    assert judged.idle_ns is None
    rule = load(("value: idle_ns,", "value: idle_ns, idle: gap_us * 0.5,"))
    (judged,) = judge(rule, frame.iloc[:1]).rows
    assert judged.idle_ns == round(frame["gap_us"].iloc[0] * 500)
    assert explain_row(rule, judged.observation)["impact.idle"].value == judged.idle_ns
    (judged,) = judge(rule, frame.iloc[:1].assign(gap_us=float("nan"))).rows
    assert judged.idle_ns == 0, "what is not known is not claimed as idle"


def test_rules_build_on_others(
    load: Load, rule: Rule, write: Callable[..., Path], advisors: dict[str, Advisor], frame: pd.DataFrame
) -> None:
    second = rule(
        ("id: HD001", "id: HD002"),
        ("name: device-idle", "name: second"),
        ("aliases: [OLD001, old-name]", "after: [OLD001]"),
        ("applies: launches > 0", "applies: fired.OLD001"),
    )
    compiled = load_rules([write(f"{rule()}---\n{second}")], advisors)["HD002"]
    assert compiled.after == ("HD001",)
    assert judge(compiled, frame, Context(fired={"HD001": True})).state == "fail"
    assert judge(compiled, frame, Context(fired={"HD001": False})).state == "not_applicable"
    unknown = judge(compiled, frame, Context(fired={"HD001": None}))
    assert unknown.unknown_columns == ("fired.HD001", "idle_share")


def test_missing_columns_are_unknown(load: Load, frame: pd.DataFrame) -> None:
    verdict = judge(load(), frame.drop(columns="idle_share"))
    assert (verdict.state, verdict.unknown_columns) == ("cannot_answer", ("idle_share",))
    (judged,) = judge(load(), frame.iloc[:1].drop(columns="kernel")).rows
    assert judged.observation["kernel"] is None
    assert judged.why.zh == "超过 10 % 即为 未知。"


def test_explain_row(load: Load, frame: pd.DataFrame) -> None:
    rule = load()
    (judged,) = judge(rule, frame.iloc[:1]).rows
    parts = explain_row(rule, judged.observation)
    assert list(parts) == [
        "applies",
        "when",
        "severity.high",
        "severity.medium",
        "severity.low",
        "impact",
        "advice[0].unless",
    ]
    assert parts["when"].lines()[1:5] == [
        "  idle_share > params.idle_share = yes",
        "    idle_share = 20 %",
        "    params.idle_share = 10 %",
        "  idle_ns >= params.min_idle = yes",
    ]
    assert not parts["advice[0].unless"].known


def test_judging_many_rows_is_quick(load: Load) -> None:
    count = 300_000
    frame = pd.DataFrame({"launches": 1, "idle_share": np.linspace(0, 1, count), "idle_ns": np.arange(count)})
    verdict = judge(load(), frame)
    assert verdict.dropped_rows > 200_000
    assert len(verdict.rows) == 5


def test_a_finding_says_which_signs_held(load: Callable[..., CompiledRule], frame: pd.DataFrame) -> None:
    compiled = load(
        ("when: >\n", "signs: {idle: idle_share > params.idle_share, long: idle_ns > 500000}\nwhen: >\n"),
        ("  idle_share > params.idle_share\n", "  (idle or long)\n"),
    )
    verdict = judge(compiled, frame)
    assert [(row.row, row.signs) for row in verdict.rows] == [(1, ("idle", "long")), (0, ("idle",))]
