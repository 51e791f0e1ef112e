"""What our rules advise can be followed: it holds for the job, is safe first, and every name in it is registered."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator
from functools import cache

import pytest

from advisor_core.names.mentions import parsed, spans
from advisor_core.names.settings import clash
from advisor_core.plugins.host import load_host
from advisor_core.result.finding import Advice, Finding
from advisor_core.rules.advising import Candidate, advise, nothing_left
from advisor_core.rules.applicability import Job
from advisor_core.rules.compiled import CompiledRule
from advisor_core.rules.files.check import check_rules, texts
from advisor_core.rules.files.ruleset import load_rules
from advisor_core.run.compatible_advice import combinable
from tests.conftest import ROOT

SETS = [ROOT / "rulesets" / name for name in ("ascend", "gpu")]
JOBS = {
    "training-a2-or-a3": Job(
        phases=frozenset({"training"}), chips=frozenset({"A2", "A3"}), features={"graph-capture": False}
    ),
    "training-910a": Job(phases=frozenset({"training"}), chips=frozenset({"910A"})),
    "prefill": Job(phases=frozenset({"prefill"}), features={"graph-capture": False}),
    "decode-eager": Job(phases=frozenset({"decode"}), features={"graph-capture": False}),
    "decode-graphs": Job(phases=frozenset({"decode"}), features={"graph-capture": True}),
    "rollout": Job(phases=frozenset({"decode"}), roles=frozenset({"rollout"})),
    "mindspore": Job(phases=frozenset({"training"}), frameworks=frozenset({"mindspore"})),
    "nothing-known": Job(),
    "all-set": Job(
        phases=frozenset({"training"}),
        variables={
            "TASK_QUEUE_ENABLE": "2",
            "CPU_AFFINITY_CONF": "2",
            "PYTORCH_NPU_ALLOC_CONF": "expandable_segments:True",
            "ASCEND_LAUNCH_BLOCKING": "0",
            "ASCEND_GLOBAL_LOG_LEVEL": "3",
        },
    ),
}


@cache
def rules() -> tuple[CompiledRule, ...]:
    host = load_host()
    return tuple(load_rules(SETS, host.advisors, names=host.name_book()))


def given(rule: CompiledRule, job: Job) -> tuple[Advice, ...]:
    """All that the rule could advise for the job, whatever was measured."""
    candidates = [Candidate(advice, None, None) for advice in rule.advice]
    return tuple(advice for _, advice in advise(candidates, {}, job, rule.names)[0])


BLANK = Finding.model_construct(withheld=[])
"""Copied where a finding is made of a rule, as its many defaults take longer than what is done with it."""


def finding(rule: CompiledRule, advice: Iterable[Advice]) -> Finding:
    return BLANK.model_copy(update={"fingerprint": rule.id, "rule": rule.id, "advice": list(advice)})


def test_every_name_in_our_texts_is_registered() -> None:
    host = load_host()
    problems = check_rules(SETS, host.advisors, names=host.name_book(), own=True)
    assert not [str(problem) for problem in problems if "title is longer" not in problem.message]


@pytest.mark.parametrize("job", JOBS.values(), ids=JOBS)
def test_every_rule_has_safe_advice_first_for_every_job(job: Job) -> None:
    for rule in rules():
        advice = given(rule, job)
        assert advice, rule.id
        assert not advice[0].hazards, f"{rule.id} begins with {advice[0].text.en}"
        if not job.variables and job.frameworks is None:
            assert advice[0] != nothing_left(), rule.id


@pytest.mark.parametrize("job", JOBS.values(), ids=JOBS)
@pytest.mark.parametrize("ruleset", ["ascend", "gpu"])
def test_a_report_of_all_rules_advises_nothing_that_excludes_other_advice(job: Job, ruleset: str) -> None:
    findings = [finding(rule, given(rule, job)) for rule in rules() if rule.ruleset == ruleset]
    left = [(found.rule, advice) for found in combinable(findings) for advice in found.advice]
    for (rule, one), (other_rule, other) in itertools.combinations(left, 2):
        assert not clash(one.uses, one.excludes, other.uses, other.excludes), (rule, other_rule)


def test_what_excludes_other_advice_of_its_rule_says_for_whom_it_is() -> None:
    """Within one rule, advice that excludes other advice holds for another job or is left out with a reason, so that no
    reader is told both; what is left must still be the first advice of the rule."""
    for rule in rules():
        for job in JOBS.values():
            advice = given(rule, job)
            (found,) = combinable([finding(rule, advice)])
            assert found.advice[0] == advice[0], rule.id


def test_a_mindspore_job_is_advised_no_api_of_pytorch() -> None:
    book = load_host().name_book()
    for rule in rules():
        for advice in given(rule, JOBS["mindspore"]):
            assert "pytorch" not in book.frameworks_of(advice.text.en), (rule.id, advice.text.en)


def test_rules_for_gpus_name_nothing_of_npus() -> None:
    """In no text, setting or threshold."""
    foreign = re.compile(r"\bNPUs?\b|npu_|torch_npu|\bnpu\b|Ascend|昇腾|\bCANN\b|HCCL|msprof|MindSpore", re.IGNORECASE)
    for rule in rules():
        if rule.ruleset == "gpu":
            assert not foreign.search(rule.rule.model_dump_json()), rule.id


def test_no_setting_that_can_hang_is_set_for_a_whole_process() -> None:
    """AIV for every group of a process hangs jobs with several communicators (HCCL_OP_EXPANSION_MODE in the
    documentation of HCCL): it is given to one group, in code."""
    for rule in rules():
        for advice in rule.rule.advice:
            assert "HCCL_OP_EXPANSION_MODE" not in advice.set, rule.id


def python_spans() -> Iterator[tuple[str, str]]:
    for rule in rules():
        for _, text in texts(rule.rule, ()):
            for words in (text.en, text.zh):
                yield from ((rule.id, code) for code, _ in spans(words) if "(" in code or " = " in code)


def test_python_in_texts_compiles() -> None:
    shell = ("--", "vllm serve", "curl ", "npu-smi", "msprof")
    broken = {
        (rule, code) for rule, code in python_spans() if not any(mark in code for mark in shell) and not parsed(code)
    }
    assert not broken


def test_both_languages_have_the_same_code() -> None:
    """Names and settings are the same in both languages of a text."""
    for rule in rules():
        for place, text in texts(rule.rule, ()):
            english, chinese = ({code for code, _ in spans(words)} for words in (text.en, text.zh))
            assert english == chinese, (rule.id, place, english ^ chinese)


def test_references_can_be_followed() -> None:
    for rule in rules():
        assert any(reference.url for reference in rule.rule.references), rule.id


OF_ONE_KIND = {"NS045", "NS047", "NS037", "NS040", "NS051", "CO022", "SA007", "GHD016", "HD026"}
"""Rules that judge one kind of work alone, or name another on purpose."""


def test_what_is_told_of_every_job_is_of_no_kind_of_work_alone() -> None:
    """A training has no requests, and a service no backward pass: such cases stand in ``exceptions``."""
    own = ("service", "serving", "request", "checkpoint", "decod", "prefill", "backward pass", "first steps of a")
    for rule in rules():
        told = rule.rule.text.not_a_problem_if
        if told is not None and rule.id not in OF_ONE_KIND:
            assert not [word for word in own if word in told.en], f"{rule.id}: {told.en}"
