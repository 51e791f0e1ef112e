"""Cases in which a finding is no problem are told for the kind of work that they are about."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from advisor_core.contracts.advisor import Advisor
from advisor_core.contracts.problems import RuleFileError
from advisor_core.rules.applicability import Job
from advisor_core.rules.files.ruleset import load_rules
from advisor_core.rules.judge import Context, Judged, judge
from advisor_core.rules.places import Place

EXCEPTIONS = """\
exceptions:
  - when: profile.serves
    text: {en: "a service had no requests.", zh: "服务没有请求。"}
  - holds_for: {phase: [training]}
    text: {en: "it saves a checkpoint.", zh: "在保存 checkpoint。"}
"""


@pytest.fixture
def told(
    rule: Callable[..., str], tmp_path: Path, advisors: dict[str, Advisor], frame: pd.DataFrame
) -> Callable[..., Judged]:
    """The finding of a rule with these exceptions, for this job."""

    def judged(context: Context, exceptions: str = EXCEPTIONS) -> Judged:
        file = tmp_path / "r.yaml"
        file.write_text(rule() + exceptions, encoding="utf-8")
        (compiled,) = load_rules([file], advisors)
        (found,) = judge(compiled, frame.iloc[:1], context).rows
        return found

    return judged


def words(found: Judged) -> tuple[str, str] | None:
    text = found.not_a_problem_if
    return None if text is None else (text.en, text.zh)


def test_a_training_is_not_told_of_a_service(told: Callable[..., Judged]) -> None:
    found = told(Context(profile={"serves": False}, job=Job(phases=frozenset({"training"}))))
    assert words(found) == ("it saves a checkpoint.", "在保存 checkpoint。")


def test_a_service_is_not_told_of_checkpoints(told: Callable[..., Judged]) -> None:
    found = told(Context(profile={"serves": True}, job=Job(phases=frozenset({"decode"}))))
    assert words(found) == ("a service had no requests.", "服务没有请求。")


def test_where_the_kind_of_work_is_not_known_all_cases_are_told(told: Callable[..., Judged]) -> None:
    assert words(told(Context())) == (
        "a service had no requests. Or it saves a checkpoint.",
        "服务没有请求。或者在保存 checkpoint。",
    )


def test_in_a_recording_of_several_parts_the_place_of_the_time_decides(told: Callable[..., Judged]) -> None:
    both = Job(phases=frozenset({"training", "decode"}))
    places = {
        "decode": (Place("decode", "rollout", "rollout", 0.95), Place("training", "update", "update_actor", 0.05)),
        "training": (Place("training", "update", "update_actor", 1.0),),
    }
    of_rollout, of_update = (
        told(Context(profile={"serves": False}, job=both, places=lambda _, at=at: at)) for at in places.values()
    )
    assert words(of_rollout) is None
    assert words(of_update) == ("it saves a checkpoint.", "在保存 checkpoint。")


def test_an_exception_without_a_condition_is_a_mistake(told: Callable[..., Judged]) -> None:
    with pytest.raises(RuleFileError, match="the exception has no condition"):
        told(Context(), "exceptions:\n  - text: {en: A., zh: B。}\n")
