"""Settings as a job has them and as an advice gives them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor_core.names.settings import Setting, clash, concerns

ALLOC = "PYTORCH_NPU_ALLOC_CONF"
GROW = Setting(ALLOC, "expandable_segments:True", separator=",")


@pytest.mark.parametrize(
    ("recorded", "is_set"),
    [
        ({}, False),
        ({ALLOC: ""}, False),
        ({ALLOC: "expandable_segments:True"}, True),
        ({ALLOC: "expandable_segments:true"}, True),
        ({ALLOC: "page_size:1g, expandable_segments:True"}, True),
        ({ALLOC: "expandable_segments:False"}, False),
        ({ALLOC: "max_split_size_mb:512"}, False),
    ],
)
def test_a_value_inside_a_list_of_options_counts_as_set(recorded: dict[str, str], is_set: bool) -> None:
    assert GROW.is_set(recorded) is is_set


def test_what_is_recorded_as_not_set_has_its_default() -> None:
    off = Setting("ASCEND_LAUNCH_BLOCKING", "0", default="0")
    assert off.is_set({"ASCEND_LAUNCH_BLOCKING": ""}) and not off.is_set({"ASCEND_LAUNCH_BLOCKING": "1"})
    assert not off.is_set({}), "not recorded is not known"


def test_options_are_put_beside_those_that_are_set() -> None:
    assert GROW.beside({}) == "expandable_segments:True"
    assert GROW.beside({ALLOC: "page_size:1g"}) == "page_size:1g,expandable_segments:True"
    assert GROW.beside({ALLOC: "expandable_segments:False,page_size:1g"}) == "page_size:1g,expandable_segments:True"
    assert Setting("TASK_QUEUE_ENABLE", "2").beside({"TASK_QUEUE_ENABLE": "1"}) == "2"


def test_what_an_exclusion_is_about() -> None:
    assert concerns("graph-capture", "graph-capture") and not concerns("graph", "graph-capture")
    assert concerns("HCCL_OP_EXPANSION_MODE=AIV", "HCCL_OP_EXPANSION_MODE=aiv")
    assert not concerns("HCCL_OP_EXPANSION_MODE=AIV", "HCCL_OP_EXPANSION_MODE=AI_CPU")
    assert concerns("HCCL_OP_EXPANSION_MODE", "HCCL_OP_EXPANSION_MODE=AI_CPU"), "a name alone means any value"
    assert concerns(f"{ALLOC}=max_split_size_mb", f"{ALLOC}=max_split_size_mb:512")
    assert not concerns(f"{ALLOC}=max_split", f"{ALLOC}=max_split_size_mb:512")


@pytest.mark.parametrize(
    ("one", "other", "clashes"),
    [
        ((["TASK_QUEUE_ENABLE=2"], ["graph-capture"]), (["graph-capture"], []), True),
        ((["graph-capture"], []), (["TASK_QUEUE_ENABLE=2"], ["graph-capture"]), True),
        ((["TASK_QUEUE_ENABLE=2"], []), (["TASK_QUEUE_ENABLE=1"], []), True),
        ((["TASK_QUEUE_ENABLE=2"], []), (["TASK_QUEUE_ENABLE=2"], []), False),
        (([f"{ALLOC}=page_size:1g"], []), ([f"{ALLOC}=expandable_segments:True"], []), False),
        (([f"{ALLOC}=max_split_size_mb:512"], []), ([f"{ALLOC}=max_split_size_mb:256"], []), True),
        (([], ["mc2"]), (["coc"], []), False),
    ],
)
def test_clash(one: tuple[list[str], list[str]], other: tuple[list[str], list[str]], clashes: bool) -> None:
    assert bool(clash(*one, *other)) is clashes


WORDS = st.lists(st.sampled_from(["a", "b", "X=1", "X=2", "L=p:1", "L=q:1", "L=p:2"]), max_size=4)


@given(WORDS, WORDS, WORDS, WORDS)
def test_clash_is_symmetric(used: list[str], excluded: list[str], others: list[str], no: list[str]) -> None:
    assert bool(clash(used, excluded, others, no)) is bool(clash(others, no, used, excluded))
