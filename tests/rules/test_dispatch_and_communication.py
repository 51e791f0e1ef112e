"""What all rules on dispatch, communication and capture have in common, and what they say of whole profiles."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from advisor_core.result.run import RunResult
from advisor_core.rules.compiled import CompiledRule
from tests.advisors.build import book, host, judged_for_gpus

FILES = ("host_dispatch", "communication", "capture")
OWN = ("HD", "CO", "DQ")
Run = Callable[..., RunResult]


def rules() -> Iterator[CompiledRule]:
    for file in FILES:
        yield from book(file)


def test_every_measurement_is_judged() -> None:
    judged = {rule.rule.advisor for rule in rules()}
    measured = {name for name in host().advisors if name.split(".")[0].removesuffix("_job") in FILES}
    assert judged <= measured and measured - judged <= judged_for_gpus()


@pytest.mark.parametrize("rule", list(rules()), ids=lambda rule: rule.id)
def test_rule_is_complete(rule: CompiledRule) -> None:
    texts = rule.rule.text
    for text in (texts.title, texts.good, texts.why, texts.verify, *(advice.text for advice in rule.rule.advice)):
        assert text.en.strip() and re.search(r"[一-鿿]", text.zh)
        slots = r"\{\{\s*([\w.]+)"
        english = re.sub(r"\{\{ [\w.]+ \| plural\([^)]*\) \}\}", "", text.en)  # Chinese has no plural
        assert sorted(re.findall(slots, english)) == sorted(re.findall(slots, text.zh))
    for measured in (texts.title, texts.why):
        assert not re.search(r"\d\s*(%|ms|µs|us|GB|MB)\b", measured.en), "numbers come from the row or from params"
    for path in rule.rule.claims:
        assert path.split("/")[0] in {"idle", "communication", "{{ leaf }}"}
    if rule.id.startswith("DQ"):
        assert not rule.rule.claims and rule.rule.impact.value == 0
    changes = [advice for advice in rule.rule.advice if advice.set]
    assert all(advice.risk is not None for advice in changes), "a setting has a risk"


def test_symptoms_are_explained_by_their_causes() -> None:
    causes: dict[str, set[str]] = {}
    for rule in rules():
        for symptom in rule.explains:
            causes.setdefault(symptom, set()).add(rule.id)
    idle = {"HD002", "HD003", "HD004", "HD005", "HD007", "HD008", "HD009", "HD010", "HD012", "HD013", "HD014"}
    idle |= {"HD015", "HD016", "HD017", "HD018", "HD019", "HD021", "HD022"}
    assert causes["HD001"] == idle
    hidden = {"CO017", "CO019", "CO020", "CO021", "CO022", "CO023", "CO024"}
    assert causes["CO001"] == {f"CO{number:03}" for number in range(2, 16)} | hidden


def fired(result: RunResult) -> dict[str, str]:
    return {finding.rule: finding.severity for finding in result.findings}


def test_alexnet_leads_with_the_late_rank_and_the_late_host(profiles: Path, advisor_run: Run) -> None:
    result = advisor_run(profiles / "ascend" / "alexnet-ddp-text-level1", select=OWN)
    assert not [rule for rule in result.rules if rule.state == "error"]
    leading = [(finding.rule, finding.severity) for finding in result.findings[:2]]
    assert leading == [("CO010", "high"), ("HD002", "high")]
    late = result.findings[0]
    assert late.subject == {"late": 5} and late.ranks == [0, 1] and late.rank == 0
    assert [claim.path for claim in late.impact.claims] == ["communication/wait/rank 5"]
    # What no cause explains of the symptoms is little; no nanosecond is claimed twice.
    by_rule = {finding.rule: finding for finding in result.findings}
    assert by_rule["HD001"].impact.share_of_step < 0.01
    for rank in (0, 1):
        claimed = sum(finding.impact.share_of_step for finding in result.findings if finding.rank == rank)
        assert claimed <= 1
    # The options that slow the host put host findings in doubt, the six missing ranks those of communication.
    caveats = {
        finding.rule[:2]: [text.en for text in finding.caveats] for finding in result.findings if finding.caveats
    }
    assert sorted(caveats) == ["CO", "HD"]
    assert ["host times are longer" in text for text in caveats["HD"]] == [True]
    assert ["2 of at least 8 ranks" in text for text in caveats["CO"]] == [True]


def test_sample_with_known_problems(advisor_sample: Path, advisor_run: Run) -> None:
    result = advisor_run(advisor_sample, select=OWN)
    assert not [rule for rule in result.rules if rule.state == "error"]
    found = fired(result)
    expected = {
        "HD002": "slow-host-dispatch",
        "HD004": "item-synchronisation",
        "HD005": "online-compilation",
        "HD007": "slow-data-loader",
        "CO002": "late-rank",
        "CO003": "communication-not-overlapped",
        "CO005": "small-communication-packets",
        "CO010": "late-rank",
    }
    assert not {rule: problem for rule, problem in expected.items() if rule not in found}
    late = next(finding for finding in result.findings if finding.rule == "CO010")
    assert late.subject == {"late": 1} and late.observation["cause"] == "idle/host/dataloader"
    # Nothing that is not in the sample.
    assert not set(found) & {
        "HD006",
        "HD008",
        "HD009",
        "HD010",
        "HD011",
        "HD012",
        "HD013",
        "HD014",
        "CO004",
        "CO007",
        "CO008",
    }


@pytest.mark.parametrize("scenario", ["healthy-training", "healthy-training-single"])
def test_healthy_samples_have_nothing_that_matters(
    scenario: str, shared_sample: Callable[..., Path], advisor_run: Run
) -> None:
    result = advisor_run(shared_sample(scenario), select=OWN)
    assert not [rule for rule in result.rules if rule.state == "error"]
    assert {rule for rule, severity in fired(result).items() if severity != "low"} == set()
