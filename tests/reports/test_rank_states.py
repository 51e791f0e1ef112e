"""A rule's state with several ranks is told with the ranks it holds for."""

from __future__ import annotations

from types import ModuleType

import pytest

from advisor_core.result.run import RuleOutcome, State
from advisor_core.text.base import Text
from reports.html import HtmlRenderer
from reports.labels import Labels
from reports.markdown import MarkdownRenderer
from reports.rank_states import rank_list, rank_states


def outcome(ranks: dict[State, list[int]]) -> RuleOutcome:
    title = Text(en="In order.", zh="正常。")
    return RuleOutcome(rule="XX001", name="x", title=title, state="cannot_answer", ranks=ranks)


def test_each_state_has_its_ranks() -> None:
    mixed = outcome({"pass": [0, 2], "cannot_answer": [1, 3]})
    assert rank_states(mixed, Labels("en")) == "in order on ranks 0 and 2, cannot be answered on ranks 1 and 3"
    assert rank_states(mixed, Labels("zh")) == "rank 0、2 正常，rank 1、3 无法判断"


def test_ranks_that_agree_and_rules_of_the_job_say_nothing_of_ranks() -> None:
    assert rank_states(outcome({"pass": [0, 1]}), Labels("en")) == rank_states(outcome({}), Labels("en")) == ""


@pytest.mark.parametrize(
    ("ranks", "said"),
    [
        ([4], "rank 4"),
        ([0, 1], "ranks 0 and 1"),
        ([0, 1, 2], "ranks 0–2"),
        ([5, 0, 1, 2, 7, 8], "ranks 0–2, 5, 7 and 8"),
    ],
)
def test_neighbouring_ranks_are_named_by_the_first_and_the_last(ranks: list[int], said: str) -> None:
    assert rank_list(ranks, Labels("en")) == said


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_reports_tell_them(example: ModuleType, lang: str) -> None:
    base = example.training()
    mixed = outcome({"pass": [0, 2], "cannot_answer": [1, 3]})
    result = base.model_copy(update={"rules": [*base.rules, mixed]})
    said = rank_states(mixed, Labels(lang))
    assert said in HtmlRenderer().render(result, lang)
    assert said in MarkdownRenderer().render(result, lang)
