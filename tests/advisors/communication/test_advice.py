"""Advice about communication: what is safe comes first, what depends on chip, phase and groups."""

from __future__ import annotations

import pytest

from advisor_core.api.testing import Scene
from tests.advisors.communication.scenes import CHIPS, advised, decoding, naming, specs, training
from tests.advisors.communication.test_small_calls import packets


@pytest.mark.parametrize("rule", [f"CO{number:03}" for number in range(1, 15)])
def test_advice_begins_with_what_is_safe(rule: str) -> None:
    given = specs(rule)
    assert not given[0].hazards and all(advice.risk is not None for advice in given if advice.hazards or advice.set)


@pytest.mark.parametrize("rule", [f"CO{number:03}" for number in range(1, 15)])
def test_nothing_is_set_for_a_process_that_is_meant_for_one_group(rule: str) -> None:
    """AIV for every group hangs jobs with several groups; a larger buffer for every group takes memory for each."""
    for advice in specs(rule):
        assert not {"HCCL_OP_EXPANSION_MODE", "HCCL_BUFFSIZE"} & set(advice.set)


def halting() -> Scene:
    """A collective of which no plane does anything for 200 us."""
    return Scene().kernel(0, 600).collective(600, 400, [(600, 700, None), (900, 1000, None)])


def test_aiv_is_for_one_group_and_never_for_the_process() -> None:
    (advice,) = naming(specs("CO005"), "hccl_op_expansion_mode")
    assert "3}" in advice.text.en and "pg_options" in advice.text.en and not advice.set
    assert advice.hazards == ["hang", "crash"] and "Can hang" in advice.risk.en and "挂死" in advice.risk.zh
    assert "`HCCL_OP_EXPANSION_MODE`" in advice.text.en
    assert advice.holds_for.phase == ["prefill", "decode"] and advice.holds_for.chip == ["A3"]
    assert advice.holds_for.versions == {"extension": ">=7.0.0"}
    assert {"mc2", "moe-dispatch"} <= set(advice.excludes)


def test_a_group_that_is_made_anew_is_made_by_all_ranks() -> None:
    """`new_group` is a collective call: ranks that leave it out leave the others waiting."""
    made = [advice for rule in ("CO003", "CO005") for advice in naming(specs(rule), "new_group(")]
    assert len(made) == 2
    for advice in made:
        assert "hang" in advice.hazards and "same order" in advice.text.en + advice.risk.en
        assert "相同的顺序" in advice.text.zh + advice.risk.zh


def test_aiv_is_for_inference_on_chips_that_have_it_and_comes_last() -> None:
    def places(scene: Scene, chip: str) -> list[int]:
        given = advised("CO005", scene, chip=CHIPS[chip])
        return [number - len(given) for number in range(len(given)) if given[number] in naming(given, "(AIV)")]

    assert places(decoding(packets(small=10)), "A2 A3") == [-1]
    assert places(decoding(packets(small=10)), "950") == [] and places(decoding(packets(small=10)), "910A") == []
    assert places(training(packets(small=10)), "A2 A3") == []


def test_who_issues_the_tasks_depends_on_the_chip() -> None:
    """A2 and A3 have the same cores per die: without more the report gives both, each with its condition."""
    given = [one for one in advised("CO009", halting(), chip=CHIPS["A2 A3"]) if "is the default" in one.text.en]
    assert ["`HOST` is the default" in one.text.en for one in given] == [True, False]
    assert ["`AI_CPU` is the default" in one.text.en for one in given] == [False, True]
    assert all(one.only_if is not None for one in given)
    assert [one.kind for one in advised("CO009", halting(), chip=CHIPS["910A"])] == ["investigate"]
