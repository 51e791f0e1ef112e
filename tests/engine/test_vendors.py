"""A rule set is for the profiles of its vendors; of others a report says so in a line, and nothing of its rules."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from advisor_core.contracts.profile import Profile, RankInput
from advisor_core.loaders.ascend_pytorch.loader import AscendPytorchLoader
from advisor_core.result.run import RunResult
from advisor_core.run.explain import explain
from advisor_core.run.pipeline import run
from advisor_core.run.prepared import RunOptions, installed_host
from reports.html import HtmlRenderer
from reports.markdown import MarkdownRenderer
from reports.terminal import summary

Recorded = Callable[..., RunResult]

MINE = """
id: MY001
name: device-idle-a-third
advisor: host_dispatch.idle
VENDORS
text: {title: Idle, why: Idle., good: Busy., verify: Look again.}
when: idle_share >= 0
severity: {medium: true}
impact: {value: idle_ns, basis: exact}
advice: [{kind: investigate, text: Look.}]
references: [{title: ours}]
"""


@pytest.fixture(scope="module")
def recorded(short_job: Path) -> Recorded:
    """As many ranks of the sample, as if they had been recorded on devices of these vendors."""
    ranks = sorted(short_job.iterdir())

    @cache
    def judged(*vendors: str, rulesets: tuple[Path, ...] = (), select: tuple[str, ...] = ()) -> RunResult:
        load = AscendPytorchLoader.load

        def of_vendor(loader: AscendPytorchLoader, source: RankInput) -> Profile:
            profile = load(loader, source)
            return dataclasses.replace(profile, vendor=vendors[profile.rank % len(vendors)])

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(AscendPytorchLoader, "load", of_vendor)
            return run(ranks[: len(vendors)], RunOptions(rulesets=rulesets, select=select), jobs=1)

    return judged


def ascend_rules() -> set[str]:
    return {path.stem for path in (installed_host().rulesets["ascend"].root).glob("*/*.yaml")}


def test_rules_for_other_devices_are_not_judged_and_say_why(recorded: Recorded) -> None:
    result = recorded("gpu")
    ascend = [outcome for outcome in result.rules if outcome.ruleset == "ascend"]
    assert {outcome.rule for outcome in ascend} == ascend_rules()
    assert not any(finding.rule in ascend_rules() for finding in result.findings)
    assert {outcome.state for outcome in ascend} == {"not_applicable"}
    (reason,) = {(outcome.reason.en, outcome.reason.zh) for outcome in ascend if outcome.reason}
    assert reason[0].startswith("the rule set ascend is for Ascend NPUs, and this is a recording of ")
    assert reason[1].startswith("规则集 ascend 适用于昇腾 NPU，而该 profile 采集自")
    assert all(not outcome.condition and not outcome.params for outcome in ascend)
    assert "Ascend NPUs" in explain(result, "HD001", "en")


@pytest.mark.parametrize(
    ("lang", "said"), [("en", " of the set ascend are for Ascend NPUs"), ("zh", "规则集 ascend 中的")]
)
def test_a_report_tells_it_in_one_line(recorded: Recorded, lang: str, said: str) -> None:
    result = recorded("gpu")
    brief = summary(result, lang, ["report.html"])
    assert brief.count(said) <= 1  # what it leaves out first where it is short of room
    assert not ascend_rules() & set(re.findall(r"\b[A-Z]{2,5}\d{3}\b", brief))
    for report in (HtmlRenderer().render(result, lang), MarkdownRenderer().render(result, lang)):
        assert report.count(said) == 1
        assert str(len(ascend_rules())) in next(line for line in report.splitlines() if said in line)
        assert not ascend_rules() & set(re.findall(r"\b[A-Z]{2,5}\d{3}\b", report))


def test_rules_of_a_known_vendor_and_of_none(recorded: Recorded) -> None:
    """A recording whose vendor is not known is judged by all sets."""
    for vendor in ("ascend", ""):
        ascend = [outcome for outcome in recorded(vendor).rules if outcome.ruleset == "ascend"]
        assert ascend and all(outcome.only_for is None for outcome in ascend)


def test_each_rank_is_judged_by_the_rules_of_its_own_vendor(recorded: Recorded) -> None:
    result = recorded("ascend", "gpu")
    (idle,) = [outcome for outcome in result.rules if outcome.rule == "HD001"]
    assert idle.only_for is None and 1 in idle.ranks["not_applicable"]
    assert not any(1 in ranks for state, ranks in idle.ranks.items() if state != "not_applicable")


@pytest.mark.parametrize(("vendors", "judged"), [("", True), ("vendors: [gpu]", True), ("vendors: [ascend]", False)])
def test_a_file_of_the_user_is_for_any_vendor_unless_it_says(
    recorded: Recorded, tmp_path: Path, vendors: str, judged: bool
) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(MINE.replace("VENDORS", vendors), encoding="utf-8")
    if "gpu" in vendors and "gpu" not in installed_host().vocabularies:
        pytest.skip("no plugin knows the words of GPUs")
    (mine,) = [
        outcome for outcome in recorded("gpu", rulesets=(file,), select=("MY001",)).rules if outcome.rule == "MY001"
    ]
    assert mine.ruleset == "mine" and (mine.only_for is None) == judged
