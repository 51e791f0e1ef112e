"""What of the mark of the only recorded step no figure counts."""

from __future__ import annotations

from types import ModuleType

import pytest

from advisor_core.result.run import RunResult
from reports.html import HtmlRenderer
from reports.markdown import MarkdownRenderer


def with_mark(example: ModuleType, before_ns: int, after_ns: int) -> RunResult:
    result: RunResult = example.training()
    first = result.profile.steps[0]
    wall = next(mean.wall_ns for mean in result.mean_steps if mean.rank == first.rank)
    mark = wall + before_ns + after_ns
    own = first.model_copy(update={"mark_ns": mark, "mark_before_ns": before_ns, "mark_after_ns": after_ns})
    return result.model_copy(update={"profile": result.profile.model_copy(update={"steps": [own]})})


@pytest.mark.parametrize(("lang", "said"), [("en", "its mark on the host lasts"), ("zh", "在 host 上的标记长")])
def test_it_is_told_below_the_bars(example: ModuleType, lang: str, said: str) -> None:
    result = with_mark(example, 20_000_000, 3_000_000)
    for renderer in (HtmlRenderer(), MarkdownRenderer()):
        told = renderer.render(result, lang).replace("\u00a0", " ")
        assert told.count(said) == 1
        assert "20.0 ms" in told and "3.00 ms" in told


def test_little_is_not_told(example: ModuleType) -> None:
    assert "its mark on the host" not in MarkdownRenderer().render(with_mark(example, 10_000, 0), "en")
    assert "its mark on the host" not in MarkdownRenderer().render(example.training(), "en")
