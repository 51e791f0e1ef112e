"""Rules and advice by the parts of a recording that the time of a finding lies in."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from advisor_core.rules.applicability import Job, conditions
from advisor_core.rules.judge import Context, judge
from advisor_core.rules.model import HoldsFor
from advisor_core.rules.places import Place, kind_and_part
from advisor_core.run.pipeline import run
from advisor_core.run.prepared import RunOptions, prepared
from advisor_core.text.base import Text
from tests.sample.small import small

ROLLOUT = Place("decode", "rollout", "rollout", 1.0)
UPDATE = Place("training", "update_actor", "update_actor", 1.0)


def words(name: str) -> Text:
    return Text(en=name, zh=name)


def told(holds: HoldsFor, *places: Place) -> list[str] | None:
    found = conditions(holds, Job(phases=frozenset({"training", "prefill", "decode"}), places=places), words)
    return None if found is None else [text.en for text in found]


def shared(*parts: tuple[Place, float]) -> list[Place]:
    return [Place(place.part, place.phase, place.role, share) for place, share in parts]


@pytest.mark.parametrize("phase", ["training", "decode"])
def test_advice_is_that_of_the_part(phase: str) -> None:
    holds = HoldsFor(phase=[phase])
    assert told(holds, UPDATE) == ([] if phase == "training" else None)
    assert told(holds, ROLLOUT) == ([] if phase == "decode" else None)


def test_advice_for_one_of_two_parts_says_for_which() -> None:
    places = shared((ROLLOUT, 0.4), (UPDATE, 0.6))
    assert told(HoldsFor(phase=["decode"]), *places) == ["For the part of this in decode (rollout) (40 % of its time)."]
    assert told(HoldsFor(phase=["training", "decode"]), *places) == []
    assert told(HoldsFor(), *places) == []


def test_advice_for_next_to_nothing_of_it_is_left_out() -> None:
    places = shared((ROLLOUT, 0.95), (UPDATE, 0.05))
    assert told(HoldsFor(phase=["training"]), *places) is None
    assert told(HoldsFor(phase=["decode"]), *places) == []


def test_what_is_not_known_is_asked() -> None:
    unknown = Place("unknown", "reward", "reward", 1.0)
    assert told(HoldsFor(phase=["training"]), unknown) == ["Only for training."]
    assert told(HoldsFor(role=["rollout"]), unknown) is None
    assert told(HoldsFor(role=["rollout"]), Place("decode", "", "", 1.0)) == [
        "Only in the processes that run this phase: rollout."
    ]


def test_log_probabilities_are_computed_by_the_software_of_training() -> None:
    log_probs = Place("log_probs", "log_prob", "log_prob", 1.0)
    assert told(HoldsFor(phase=["training"]), log_probs) == []
    assert told(HoldsFor(phase=["prefill", "decode"]), log_probs) is None
    assert kind_and_part([log_probs]) == ("training", "training")


def test_a_rule_about_inference_judges_the_rows_in_a_rollout_only() -> None:
    """SA007 asks for profile.kind == 'inference'; of an iteration as a whole that is training."""
    rule = prepared(RunOptions())[1]["SA007"]
    names = rule.advisor.declared()
    row = {name: 1.0 if column.dtype in ("float", "int") else "x" for name, column in names.items()}
    row |= {"tier_below": 128, "m": 140}
    frame = pd.DataFrame([row, row])
    places = [(UPDATE,), (ROLLOUT,)]
    asked: list[int] = []

    def place(number: int) -> tuple[Place, ...]:
        asked.append(number)
        return places[number]

    whole = judge(rule, frame, Context(profile={"kind": "training", "phase": "training"}))
    assert whole.state == "not_applicable"
    parts = judge(rule, frame, Context(profile={"kind": "training", "phase": "training"}, places=place))
    assert {judged.row for judged in parts.rows} <= {1}
    assert parts.state != "not_applicable"
    assert set(asked) == {0, 1}


@pytest.fixture(scope="module")
def iteration(shared_sample: Callable[..., Path]) -> Path:
    return shared_sample(small("slow-rollout", tokens=48))


def test_a_finding_in_a_rollout_says_so_and_has_no_advice_for_training(iteration: Path) -> None:
    result = run([iteration], RunOptions(select=("HD002",)), jobs=1)
    (finding,) = result.findings
    assert [(at.part, at.phase) for at in finding.parts] == [("decode", "rollout")]
    assert finding.parts[0].share > 0.9
    advice = " ".join(each.text.en for each in finding.advice)
    assert "task queue" not in advice
    assert "micro-batch" not in advice
    assert "cudagraph_capture_sizes" in advice
    assert {summary.phase for summary in result.phase_summaries} >= {"rollout", "update_actor"}


def test_the_plan_of_a_slow_rollout_captures_graphs_before_it_touches_the_host(iteration: Path) -> None:
    """The engine is slow because it launches kernel by kernel (cause ``slow-rollout``): the advice for the rollout
    explains that of the engine by itself and that of hosts, and wins what they would."""
    result = run([iteration], RunOptions(select=("HD002", "HD022", "RL004")), jobs=1)
    rules = {finding.fingerprint: finding.rule for finding in result.findings}
    assert sorted(rules.values()) == ["HD002", "HD022", "RL004"]
    assert result.plan is not None
    (action,) = result.plan.actions
    assert rules[action.finding] == "RL004"
    assert {rules[name] for name in action.covers} == {"HD002", "HD022"}
