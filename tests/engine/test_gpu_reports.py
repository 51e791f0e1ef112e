"""Reports on real recordings of GPUs: advice for the device, in both languages, and no word of another vendor's."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from advisor_core.result.run import RunResult
from reports.html import HtmlRenderer
from reports.markdown import MarkdownRenderer
from reports.terminal import summary
from tests.once import ResultOf

RECORDINGS = (
    "alexnet-a100.json.gz",
    "bert-small-h100.json.gz",
    "nccl-collectives-a100.json.gz",
    "ns-resolution-v100.json.gz",
    "resnet50-workers-0",
    "resnet50-workers-4",
    "sglang_Qwen3-8B_prefilldecode.json.gz",
    "trace-diff",
    "vllm-prefill-decode-graph.json.gz",
)
OF_NPUS = re.compile(
    r"\bNPUs?\b|torch_npu|\bnpu\b|npu_|npu-smi|Ascend|昇腾|\bcann\b|HCCL|AI.?Core|AI.?CPU|\bcube\b|msprof|MindSpore|"
    r"\bacl[A-Z]|aclnn|TASK_QUEUE|trace_view|_ascend_pt|HF32",
    re.IGNORECASE,
)
TOLD_ONCE = re.compile(r"of the set ascend are for Ascend NPUs|规则集 ascend 中的 \d+ 条规则适用于昇腾 NPU")
NOT_SHOWN = re.compile(r"<style.*?</style>|<script.*?</script>|npu-advisor", re.DOTALL)

Judged = Callable[[str], RunResult]


@pytest.fixture(scope="module")
def judged(result_of: ResultOf, profiles: Path) -> Judged:
    folder = profiles / "kineto"
    if not folder.is_dir():
        pytest.skip("no real recordings of GPUs")
    return cache(lambda name: result_of(folder / name))


AGAIN = "resnet50-workers-4"
"""The same job as another recording, with other loaders."""
LANGS = ("en", "zh")
EACH_IN_ONE = [
    pytest.param(name, lang, marks=() if (number + place) % 2 == 0 and name != AGAIN else pytest.mark.search)
    for number, name in enumerate(RECORDINGS)
    for place, lang in enumerate(LANGS)
]
"""Each recording is reported in one language in the gate, and each language of several recordings."""


@pytest.mark.parametrize(("name", "lang"), EACH_IN_ONE)
def test_no_word_of_npus(judged: Judged, name: str, lang: str) -> None:
    """Apart from the one line that says which rules were not judged."""
    result = judged(name)
    assert {source.vendor for source in result.inputs} == {"gpu"}
    for report in (
        HtmlRenderer().render(result, lang),
        MarkdownRenderer().render(result, lang),
        summary(result, lang, ["report.html"]),
    ):
        lines = NOT_SHOWN.sub("", report).splitlines()
        rest = "\n".join(line for line in lines if not TOLD_ONCE.search(line))
        assert rest.count("\n") == len(lines) - 2, "one line tells it"
        assert not [rest[max(0, word.start() - 60) : word.end() + 60] for word in OF_NPUS.finditer(rest)]


@pytest.mark.parametrize("name", RECORDINGS)
def test_every_finding_is_of_a_rule_for_gpus(judged: Judged, name: str) -> None:
    result = judged(name)
    assert result.findings and all(finding.rule.startswith("G") for finding in result.findings)
    assert not [outcome for outcome in result.rules if outcome.state == "error"]
    assert all(outcome.only_for is not None for outcome in result.rules if outcome.ruleset == "ascend")


@pytest.mark.parametrize("span", ["1623143566756", pytest.param("1623143089861", marks=pytest.mark.search)])
def test_the_data_loader_comes_first_and_keeps_its_promise(judged: Judged, span: str) -> None:
    """With four workers the steps of the same job take 117 to 127 ms (README of the recordings)."""
    before = judged(f"resnet50-workers-0/worker0.{span}.pt.trace.json.gz")
    first = before.findings[0]
    assert first.rule == "GHD006" and first.severity == "high"
    assert "num_workers" in first.advice[0].text.en
    after = judged("resnet50-workers-4")
    promised = before.mean_steps[0].wall_ns - first.impact.ns_per_step
    assert promised == pytest.approx(after.mean_steps[0].wall_ns, rel=0.2)
    saved = before.mean_steps[0].wall_ns - after.mean_steps[0].wall_ns
    assert first.impact.ns_per_step == pytest.approx(saved, rel=0.2)
    assert "GHD006" not in {finding.rule for finding in after.findings}


def test_traces_of_two_jobs_are_told(judged: Judged) -> None:
    """Rank 3 of eight on A100 and rank 1 of two on V100, eight days apart, are no job."""
    result = judged("trace-diff")
    (found,) = [finding for finding in result.findings if finding.rule == "GDQ010"]
    assert found.observation["aspects"] == "chip, world_size, start"
    assert found.observation["apart_ns"] > 8 * 86_400 * 10**9
    assert "GDQ010" not in {finding.rule for finding in judged("resnet50-workers-0").findings}


def test_nothing_is_a_mean_over_ranks_of_two_jobs(judged: Judged) -> None:
    """Steps of 124.2 and 77.2 ms: 100.7 ms is that of no job."""
    result = judged("trace-diff")
    assert len(result.profile.apart) == 1 and result.profile.world_size is None
    assert {mean.rank: round(mean.wall_ns / 1e6, 1) for mean in result.mean_steps} == {1: 124.2, 3: 77.2}
    assert result.environment.chip["name"] == "Tesla V100-SXM2-16GB, NVIDIA A100-PG509-200"
    assert not result.work and not result.phase_summaries
    for lang in ("en", "zh"):
        written = MarkdownRenderer().render(result, lang)
        assert "100.7 ms" not in written and "mean of 2 ranks" not in written and "2 个 rank 均值" not in written
        assert "124.2 ms" in written and "77.24 ms" in written


FIRST_PAGE = {"en": "The GPU waits for the data loader", "zh": "GPU 等待数据加载"}


@pytest.mark.parametrize("lang", FIRST_PAGE)
@pytest.mark.parametrize("span", ["1623143566756", pytest.param("1623143089861", marks=pytest.mark.search)])
def test_the_first_cause_on_the_first_page_is_the_data_loader(judged: Judged, span: str, lang: str) -> None:
    """The first problem is the symptom, idle time; first in what to change is its largest cause. The plan begins with
    that, with its advice, on the first page and the terminal, and no cause of another kind has more time."""
    result = judged(f"resnet50-workers-0/worker0.{span}.pt.trace.json.gz")
    first = result.problems[0]
    loader = next(problem for problem in result.problems if problem.number == first.actor)
    (finding,) = (one for one in result.findings if one.fingerprint == loader.findings[0])
    assert finding.rule == "GHD006" and loader.number == first.causes[0] == "F1a"
    causes = [problem for problem in result.problems if not problem.causes]
    assert max(causes, key=lambda problem: problem.stake_ns) is loader
    page = summary(result, lang, ["report.html"])
    first_change = next(line for line in page.splitlines() if line.startswith("  F"))
    assert first_change.startswith("  F1a [") and FIRST_PAGE[lang] in first_change
    advice = page[page.index("->") :].splitlines()[0]
    assert "num_workers" in advice
    assert result.plan is not None and result.plan.actions[0].problem == "F1a"
    assert re.search(rf"^\| (\[)?F1a {FIRST_PAGE[lang]}", MarkdownRenderer().render(result, lang), re.MULTILINE)


@pytest.mark.parametrize("name", RECORDINGS)
def test_only_a_first_pass_is_called_one(judged: Judged, name: str) -> None:
    """The AlexNet one begins with 6 s in a `cudaFree`; the others are of processes that ran before."""
    result = judged(name)
    marked = {finding.rule for finding in result.findings if finding.first_pass is not None}
    assert marked == ({"GHD001", "GHD008"} if name.startswith("alexnet") else set())
    assert {finding.first_pass for finding in result.findings} - {None} <= result.numbers.keys()
