"""What the ledger of a report is of: steps, calls of a benchmark, stretches between holes, or a whole recording."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from advisor_core.result.run import LedgerWindow, RunResult
from reports.headline import verdict, what_ran
from reports.labels import Labels
from reports.markdown import MarkdownRenderer
from reports.outline import Outline
from tests.once import ResultOf

WORDS: dict[LedgerWindow, tuple[str, str]] = {
    "step": ("Step time", "单步耗时"),
    "call": ("Call time", "单次调用耗时"),
    "stretch": ("Stretch time", "单段耗时"),
    "recording": ("Recording time", "整次采集耗时"),
}


def of_window(result: RunResult, window: LedgerWindow) -> RunResult:
    return result.model_copy(update={"profile": result.profile.model_copy(update={"window": window})})


@pytest.mark.parametrize("window", WORDS)
def test_labels_call_the_window_what_it_is(window: LedgerWindow, example: ModuleType) -> None:
    outline = Outline(of_window(example.training(), window))
    for lang, words in zip(("en", "zh"), WORDS[window], strict=True):
        labels = Labels.of_result(outline.result, lang)
        assert labels(what_ran(outline, labels)[0].key) == words


def test_a_list_of_calls_has_no_steps_in_its_headline(example: ModuleType) -> None:
    result = of_window(example.training(), "call")
    said = verdict(Outline(result), Labels.of_result(result, "en"))
    assert "calls)" in said
    assert "step" not in said
    written = MarkdownRenderer().render(result, "en")
    assert "## Where the time of a call went" in written
    assert "one call here" in written


def test_real_recordings_without_a_loop_or_marks(result_of: ResultOf, profiles: Path) -> None:
    windows = {
        "ascend/msprof-op-summary": "stretch",  # rows of the file are missing between others
        "kineto/vllm-prefill-decode-graph.json.gz": "recording",  # no ProfilerStep
        "kineto/bert-small-h100.json.gz": "step",
    }
    for name, window in windows.items():
        assert result_of(profiles / name).profile.window == window
