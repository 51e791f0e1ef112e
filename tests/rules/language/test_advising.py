"""Which advice a finding gets: applicability as data, hazards, what is set already, what excludes what."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from advisor_core.contracts.advisor import Advisor
from advisor_core.contracts.problems import RuleFileError
from advisor_core.names.book import load_names
from advisor_core.plugins.host import load_host
from advisor_core.rules.applicability import Job, conditions, in_range, range_problem
from advisor_core.rules.files.ruleset import load_rules
from advisor_core.rules.judge import Context, Judged, judge
from advisor_core.rules.model import HoldsFor, Role
from advisor_core.rules.places import decide
from advisor_core.text.base import Text

NAMES = """
software: torch-npu
title: Ascend Extension for PyTorch
source: {title: Ascend/pytorch, url: "https://gitcode.com/Ascend/pytorch", date: 2026-08-21}
names:
  - {name: graph-capture, kind: feature, meaning: captured graphs, title: {en: captured graphs, zh: 图捕获}}
  - {name: mc2, kind: feature, meaning: fused collectives, title: {en: fused collectives, zh: 通算融合}}
  - {name: HCCL_OP_EXPANSION_MODE, kind: variable, meaning: mode, excludes: {AIV: [mc2]}}
  - {name: TASK_QUEUE_ENABLE, kind: variable, meaning: queue, default: "1", excludes: {"2": [graph-capture]}}
"""

ADVICE = """\
  - kind: investigate
    text: {en: "Look. Then decide.", zh: "查看。再决定。"}
"""


@pytest.fixture
def rows(
    rule: Callable[..., str], tmp_path: Path, advisors: dict[str, Advisor], frame: pd.DataFrame
) -> Callable[..., Judged]:
    """The finding of a rule with this advice before the usual one, for this job."""

    def judged(advice: str, job: Job | None = None) -> Judged:
        names = tmp_path / "names"
        names.mkdir(exist_ok=True)
        (names / "torch-npu.yaml").write_text(NAMES, encoding="utf-8")
        text = rule()
        start, end = text.index("advice:\n") + len("advice:\n"), text.index("text:\n  title:")
        file = tmp_path / "r.yaml"
        file.write_text(text[:start] + advice + text[end:], encoding="utf-8")
        (compiled,) = load_rules([file], advisors, names=load_names((names,)))
        (found,) = judge(compiled, frame.iloc[:1], Context(job=job or Job())).rows
        return found

    return judged


def given(advice: str, more: str = "") -> str:
    return f"""\
  - kind: config
    {advice}
    text: {{en: "Change it.", zh: "修改。"}}
    risk: {{en: "It can fail.", zh: "可能失败。"}}
{more}"""


def test_roles_are_the_known_phases() -> None:
    assert set(Role.__args__) == load_host().vocabulary("ascend").phases  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("possible", "decided"),
    [(None, None), (frozenset({"A2"}), True), (frozenset({"A2", "A3"}), None), (frozenset({"950"}), False)],
)
def test_properties_are_decided_in_three_values(possible: frozenset[str] | None, decided: bool | None) -> None:
    assert decide(possible, ["A2"]) is decided


@pytest.mark.parametrize(
    ("version", "wanted", "inside"),
    [
        ("8.3.RC1", ">=8.0.RC2", True),
        ("8.0.RC1", ">=8.0.RC2", False),
        ("2.7.1.post2", ">=2.7.1", True),
        (None, ">=8", None),
        ("8.0.RC2.alpha001", ">=8", None),
    ],
)
def test_versions_of_cann_and_torch_npu(version: str | None, wanted: str, inside: bool | None) -> None:
    assert in_range(version, wanted) is inside


def test_a_range_of_versions_is_checked() -> None:
    assert range_problem(">=8.0.RC2,<9") == "" and "not a range" in range_problem("8.0 or later")


def test_what_cannot_hold_is_left_out_and_what_is_open_is_said(rows: Callable[..., Judged]) -> None:
    advice = ADVICE + given("holds_for: {phase: [training], chip: [A3], versions: {cann: '>=8.0.RC2'}}")
    a2_or_a3 = frozenset({"A2", "A3"})
    decode = rows(advice, Job(phases=frozenset({"decode"}), chips=a2_or_a3))
    assert [item.kind for item in decode.advice] == ["investigate"] and not decode.withheld
    training = rows(advice, Job(phases=frozenset({"training"}), chips=a2_or_a3, versions={"cann": "8.3.RC1"}))
    assert training.advice[1].only_if is not None
    assert training.advice[1].only_if.en == "Only on Atlas A3: the profile does not tell the chip for certain."
    known = rows(advice, Job(phases=frozenset({"training"}), chips=frozenset({"A3"}), versions={"cann": "8.3.RC1"}))
    assert known.advice[1].only_if is None
    nothing = rows(advice).advice[1].only_if
    assert nothing is not None and nothing.en.startswith("Only for training. Only on Atlas A3: ")
    assert nothing.en.endswith("Needs cann `>=8.0.RC2`: check the installed version.")


@pytest.mark.parametrize(
    ("wanted", "shown", "holds"),
    [
        (["mindspeed"], set(), None),
        (["mindspeed"], {"mindspeed", "megatron"}, True),
        (["mindspeed"], {"vllm"}, None),  # an iteration of reinforcement learning runs both
        (["vllm", "vllm-ascend"], {"vllm"}, True),
        (["vllm-ascend"], {"vllm"}, None),  # the recording shows the engine, not which plugin it has
        (["vllm"], {"vllm-ascend"}, None),
        (["vllm"], {"sglang"}, False),
        (["mindie"], {"verl", "vllm"}, False),
        (["vllm"], {"sglang", "vllm"}, True),
        (["vllm", "mindspeed"], {"sglang"}, None),
        (["vllm"], {"transformers"}, None),
    ],
)
def test_software_is_told_by_what_the_recording_shows(wanted: list[str], shown: set[str], holds: bool | None) -> None:
    job = Job(software=frozenset(shown))
    told = conditions(HoldsFor(software=wanted), job, lambda name: Text(en=name.title(), zh=name.title()))
    assert (None if told else told == []) == holds if holds is not False else told is None
    if holds is None:
        assert told and told[0].en.startswith("Only for jobs that run with ") and told[0].zh.startswith("仅适用于使用 ")


def test_what_is_set_is_not_advised_again(rows: Callable[..., Judged]) -> None:
    advice = ADVICE + given('set: {TASK_QUEUE_ENABLE: "2"}')
    assert len(rows(advice, Job(variables={"TASK_QUEUE_ENABLE": "1"})).advice) == 2
    found = rows(advice, Job(variables={"TASK_QUEUE_ENABLE": "2"}))
    assert [item.kind for item in found.advice] == ["investigate"]
    assert found.withheld[0].en == "`TASK_QUEUE_ENABLE=2` is not advised: the job has it set already."


def test_a_recorded_default_counts_as_set(rows: Callable[..., Judged]) -> None:
    advice = given('set: {TASK_QUEUE_ENABLE: "1"}', ADVICE)
    assert [item.kind for item in rows(advice, Job(variables={"TASK_QUEUE_ENABLE": ""})).advice] == ["investigate"]


@pytest.mark.parametrize(("uses", "advised", "only_if"), [(True, 1, None), (False, 2, None), (None, 2, "captured")])
def test_what_the_job_uses_bars_what_excludes_it(
    uses: bool | None, advised: int, only_if: str | None, rows: Callable[..., Judged]
) -> None:
    job = Job(features={} if uses is None else {"graph-capture": uses})
    found = rows(ADVICE + given('set: {TASK_QUEUE_ENABLE: "2"}'), job)
    assert len(found.advice) == advised and len(found.withheld) == 2 - advised
    if only_if:
        assert found.advice[1].only_if is not None and only_if in found.advice[1].only_if.en
    if uses:
        assert "captured graphs, which the job uses" in found.withheld[0].en
        assert "图捕获" in found.withheld[0].zh


def test_recorded_settings_bar_what_excludes_them(rows: Callable[..., Judged]) -> None:
    advice = ADVICE + given("uses: [mc2]\n    excludes: [HCCL_OP_EXPANSION_MODE=AIV]")
    assert len(rows(advice, Job(variables={"HCCL_OP_EXPANSION_MODE": "AIV"})).advice) == 1
    assert len(rows(advice, Job(variables={"HCCL_OP_EXPANSION_MODE": "AI_CPU"})).advice) == 2


def test_hazards_come_last_whatever_their_place(rows: Callable[..., Judged]) -> None:
    advice = ADVICE + given("hazards: [hang]") + given("uses: [mc2]")
    found = rows(advice)
    assert [item.hazards for item in found.advice] == [[], [], ["hang"]]


def test_something_is_always_advised(rows: Callable[..., Judged]) -> None:
    advice = given('set: {TASK_QUEUE_ENABLE: "2"}')
    (only,) = rows(advice, Job(variables={"TASK_QUEUE_ENABLE": "2"})).advice
    assert only.kind == "investigate" and only.text.en.startswith("The usual remedies are set already")


@pytest.mark.parametrize(
    ("advice", "problem"),
    [
        (given("hazards: [hang]") + ADVICE, "the first advice has hazards"),
        (ADVICE + given("hazards: [hang]").replace("    risk:", "    unless_text:"), "`hazards` without `risk`"),
        (given("holds_for: {phase: [training]}"), "all advice is conditional"),
        (ADVICE + given("holds_for: {versions: {cann: 8 or later}}"), "is not a range of versions"),
        (ADVICE + given("holds_for: {chip: [910B]}"), "'910B' is not one of 910A, 310P, A2, A3, 950"),
    ],
)
def test_what_is_wrong_with_advice(advice: str, problem: str, rows: Callable[..., Judged]) -> None:
    with pytest.raises(RuleFileError, match=problem.replace("(", r"\(")):
        rows(advice)
