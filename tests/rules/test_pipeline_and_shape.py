"""What all rules on pipes and shapes have in common, and what they say of whole profiles."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from advisor_core.plugins.host import load_host
from advisor_core.result.finding import Finding
from advisor_core.result.run import RunResult
from advisor_core.rules.compiled import CompiledRule
from tests.advisors.build import book, host, judged_for_gpus

FILES = ("pipeline_bound", "shape_affinity")
OWN = ("PB", "SA")
Run = Callable[..., RunResult]

CLASSES = load_host().vocabulary("ascend").operator_classes.names


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
    assert texts.not_a_problem_if is not None or rule.id == "PB014", "every kernel has a reason to be as it is"
    prose = [texts.title, texts.good, texts.why, texts.verify, *(advice.text for advice in rule.rule.advice)]
    prose += [advice.risk for advice in rule.rule.advice if advice.risk] + [texts.not_a_problem_if or texts.good]
    for text in prose:
        assert text.en.strip() and re.search(r"[一-鿿]", text.zh)
        slots = r"\{\{\s*([\w.]+)"
        english = re.sub(r"\{\{ [\w.]+ \| plural\([^)]*\) \}\}", "", text.en)  # Chinese has no plural
        assert sorted(re.findall(slots, english)) == sorted(re.findall(slots, text.zh))
    for words in (texts.title.en, texts.title.zh):
        assert not re.search(r"\d", re.sub(r"\{\{.*?\}\}|mte\d", "", words)), "numbers come from the row"
    for words in (texts.why.en, texts.why.zh):
        assert not re.search(r"\d\s*(%|ms|µs|us|GB|MB|KB|B)\b", words), "numbers come from the row or from params"
    for path in rule.rule.claims:
        if path.startswith("idle/"):
            assert rule.rule.impact.idle, "which part is idle time is told"
            continue
        assert path.startswith("compute/") and (path.split("/")[1] in CLASSES or "{{" in path)


DECIDING = {"PB016", "PB017"}
"""Rules that say which operator decides the length of the step: they ask to look, and have thresholds of their own."""


@pytest.mark.parametrize("rule", [one for one in rules() if one.id not in DECIDING], ids=lambda rule: rule.id)
def test_savings_are_bounds_or_estimates_and_small_ones_are_left_out(rule: CompiledRule) -> None:
    assert rule.rule.impact.basis in {"upper_bound", "estimate"}
    assert rule.params["min_share"] == 0.01 and "params.min_share" in str(rule.rule.when)


@pytest.mark.parametrize(
    "rule",
    [rule for rule in rules() if rule.id not in {"PB005", "PB014", "PB015", "PB020", "PB021", "SA011"} | DECIDING],
    ids=lambda rule: rule.id,
)
def test_a_rule_that_changes_code_or_settings_names_a_risk(rule: CompiledRule) -> None:
    """All but those that only ask to look: each has at least one change that may cost memory, accuracy or latency."""
    changes = [advice for advice in rule.rule.advice if advice.kind in {"code", "config", "env"}]
    assert changes and any(advice.risk for advice in changes)


LESS_PRECISE = re.compile(r"quantise|16-bit|BF16|npu_format_cast")


@pytest.mark.parametrize("rule", list(rules()), ids=lambda rule: rule.id)
def test_what_can_change_the_accuracy_says_so_and_never_comes_first(rule: CompiledRule) -> None:
    advice = rule.rule.advice
    assert not advice[0].hazards
    for one in advice:
        if LESS_PRECISE.search(one.text.en):
            assert "accuracy" in one.hazards and one.risk is not None
    assert len(advice) <= 6


def fired(result: RunResult) -> dict[str, str]:
    return {finding.rule: finding.severity for finding in result.findings}


def found(result: RunResult, rule: str) -> list[Finding]:
    return [finding for finding in result.findings if finding.rule == rule]


def kernels(sample: Path, rank: int) -> list[dict[str, str]]:
    """The rows of kernel_details.csv."""
    file = sorted(sample.glob("*_ascend_pt"))[rank] / "ASCEND_PROFILER_OUTPUT" / "kernel_details.csv"
    with file.open(encoding="utf-8") as text:
        return list(csv.DictReader(text))


def products(sample: Path, rank: int) -> list[tuple[str, str, float]]:
    """(input shapes, core, us) of the matrix products that the sample wrote for a rank."""
    return [
        (row["Input Shapes"].strip('"'), row["Accelerator Core"], float(row["Duration(us)"]))
        for row in kernels(sample, rank)
        if row["Type"].startswith("MatMul")
    ]


def test_sample_names_the_vocabulary(advisor_sample: Path, advisor_run: Run) -> None:
    result = advisor_run(advisor_sample, select=OWN)
    assert not [rule for rule in result.rules if rule.state == "error"]
    assert fired(result) == {"SA001": "high"}
    for finding in found(result, "SA001"):
        seen = finding.observation
        assert finding.subject == {"axis": 50257, "dtype": "BF16"} and seen["good"] == 50432
        assert seen["example"] == "8192,50257 x 50257,2048"
        assert {claim.path for claim in finding.impact.claims} <= {"compute/matmul", "compute/format_conversion"}
        assert finding.rank is not None
        mine = [us for shapes, core, us in products(advisor_sample, finding.rank) if shapes == "8192,50257;50257,2048"]
        assert len(mine) == 2  # one in each of two steps
        assert seen["total_ns"] == pytest.approx(1e3 * sum(mine) / 2) and seen["mixed_ns"] == seen["total_ns"]
        assert 0 < finding.impact.ns_per_step < seen["total_ns"] + seen["conversion_ns"]  # type: ignore[operator]


def test_sample_names_the_products_on_one_input_and_what_they_are_worth(advisor_sample: Path, advisor_run: Run) -> None:
    """Query, key and value fill the cores alone (8192 rows), so that merging saves less than the split costs; a launch
    less per layer is what is left, and the default leaves that out, as everything below a percent."""
    result = advisor_run(advisor_sample, select=("SA005",), overrides=(("SA005.min_share", 0),))
    assert fired(result) == {"SA005": "low"}
    for finding in found(result, "SA005"):
        seen = finding.observation
        assert finding.subject == {"input_shape": "8192,2048", "widths": "2048, 512, 512", "dtype": "BF16"}
        assert (seen["products"], seen["places"], seen["together"], seen["operator"]) == (3, 3, 3072, "MatMulV3")
        # 1024 + 256 + 256 blocks of 128 x 128 in 43 + 11 + 11 rounds of 24 cores; of 128 x 256: 22 + 6 + 6 or, as
        # one, 32: counted in widths 22 x 256 + 2 x 11 x 128 = 8448 or less against 32 x 256 = 8192.
        assert seen["cost_ratio"] == pytest.approx(8192 / (min(22 * 256, 43 * 128) + 2 * min(6 * 256, 11 * 128)))
        assert seen["total_ns"] < seen["together_ns"] + seen["split_ns"]  # type: ignore[operator]
        assert seen["gain_ns"] == 0 and finding.impact.share_of_step < 0.01


@pytest.mark.parametrize("scenario", ["healthy-training", "healthy-training-single"])
def test_healthy_samples_have_nothing_that_matters(
    scenario: str, shared_sample: Callable[..., Path], advisor_run: Run
) -> None:
    result = advisor_run(shared_sample(scenario), select=OWN)
    assert not [rule for rule in result.rules if rule.state in {"error", "cannot_answer"}]
    assert {rule for rule, severity in fired(result).items() if severity != "low"} == set()
    # The padded vocabulary, K = 50432, is a good axis.
    assert not found(result, "SA001") and not found(result, "SA002")


def test_alexnet_lowered_thresholds_agree_with_the_bookings(profiles: Path, advisor_run: Run) -> None:
    """With everything reported, the findings of a rank never claim more of a class than the ledger books there."""
    lowered = tuple((f"{rule.id}.min_share", 0) for rule in rules() if "min_share" in rule.params)
    result = advisor_run(profiles / "ascend" / "alexnet-ddp-text-level1", select=OWN, overrides=lowered)
    assert not [rule for rule in result.rules if rule.state == "error"]
    assert {"PB002", "PB004", "PB013", "SA004"} <= set(fired(result))
    for step in result.ledger:
        booked: dict[str, int] = {}
        for entry in step.entries:
            booked[entry.path] = booked.get(entry.path, 0) + entry.ns
        claimed: dict[str, int] = {}
        for finding in result.findings:
            if finding.rank == step.rank:
                for claim in finding.impact.claims:
                    claimed[claim.path] = claimed.get(claim.path, 0) + claim.ns
        assert claimed and all(ns <= booked.get(path, 0) for path, ns in claimed.items())
