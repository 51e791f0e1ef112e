"""What a recording without step marks holds beside what is judged, below the bars of the first page."""

from __future__ import annotations

from types import ModuleType

import pytest

from advisor_core.result.run import RunResult
from reports.html import HtmlRenderer
from reports.markdown import MarkdownRenderer

SAID = {"en": ("in no figure here", "the device copied for"), "zh": ("不计入任何数字", "device 上的拷贝共")}


def unmarked(example: ModuleType, before_ns: int, copied_ns: int | None) -> RunResult:
    result: RunResult = example.training()
    own = result.profile.steps[0].model_copy(
        update={
            "step": None,
            "recorded_before_ns": before_ns,
            "recorded_after_ns": 3_000_000,
            "copied_beside_ns": copied_ns,
        }
    )
    profile = result.profile.model_copy(update={"steps": [own], "window": "recording"})
    return result.model_copy(update={"profile": profile})


@pytest.mark.parametrize("copied_ns", [7_770_000, 0, None])
@pytest.mark.parametrize("lang", SAID)
def test_it_is_told_below_the_bars(example: ModuleType, lang: str, copied_ns: int | None) -> None:
    result = unmarked(example, 20_000_000_000, copied_ns)
    beside, copied = SAID[lang]
    for renderer in (HtmlRenderer(), MarkdownRenderer()):
        told = renderer.render(result, lang).replace("\u00a0", " ")
        assert told.count(beside) == 1 and "20.0 s" in told and "3.00 ms" in told
        assert told.count(copied) == bool(copied_ns)
        assert not copied_ns or "7.77 ms" in told


def test_little_is_not_told(example: ModuleType) -> None:
    result = unmarked(example, 0, None)
    own = result.profile.steps[0].model_copy(update={"recorded_after_ns": 10_000})
    little = result.model_copy(update={"profile": result.profile.model_copy(update={"steps": [own]})})
    for written in (MarkdownRenderer().render(little, "en"), MarkdownRenderer().render(example.training(), "en")):
        assert SAID["en"][0] not in written
