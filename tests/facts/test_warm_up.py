"""A first step that compiles or calls for the first time is no step of the steady ones."""

from __future__ import annotations

import pytest

from advisor_core.api.testing import Scene, judge_rule
from advisor_core.facts.ledger.totals import ledger
from advisor_core.facts.steps.recorded_steps import recorded_steps
from advisor_core.facts.steps.steps import steps
from advisor_core.facts.steps.warm_up import warm_up
from advisor_core.facts.store import FactStore

MS = 1_000.0


def loop(first_ms: float = 10, *, compile_ms: float = 0, linear_ms: float = 0, later_compile_ms: float = 0) -> Scene:
    """Four steps: the first lasts ``first_ms``, the others 10 ms each. A step has a kernel at its start and one 9 ms
    later, and two calls of an operator of 20 us. In the first step a call compiles, or the first operator takes longer;
    ``later_compile_ms`` in each other step."""
    made, begin = Scene(), 0.0
    for number in range(4):
        length = first_ms if not number else 10
        made.step(number, begin - 50, length * MS - 60)
        made.kernel(begin, 500, step=number).kernel(begin + length * MS - 1_000, 500, step=number)
        made.event("cpu_op", "aten::linear", begin + 600, (linear_ms * MS if not number else 0) + 20)
        made.event("cpu_op", "aten::linear", begin + length * MS - 1_200, 20)
        compiled = compile_ms if not number else later_compile_ms
        if compiled:
            made.event("runtime", "aclopCompileAndExecute", begin + 700, compiled * MS)
        begin += length * MS
    return made


def numbers(store: FactStore) -> list[int]:
    found: list[int] = store[steps]["step"].tolist()
    return found


def test_a_first_step_that_compiles_is_left_out_and_told_once() -> None:
    store = loop(60, compile_ms=45).store()
    assert numbers(store) == [1, 2, 3] and store[recorded_steps]["step"].tolist() == [0, 1, 2, 3]
    found = store[warm_up]
    assert (found.step, found.usual_ns, found.compile_ns) == (0, 10_000_000, 45_000_000)
    assert found.end_ns - found.start_ns == 60_000_000 and found.first_calls_ns == found.wait_ns == 0
    assert store[ledger]["ns"].sum() == 29_500_000  # three steps, the last to the end of its last task
    told = judge_rule("DQ019", loop(60, compile_ms=45).store())
    assert told.state == "fail" and told.first.observation["steps"] == 3
    assert told.first.observation["first_over_rest"] == 6.0
    assert judge_rule("DQ015", loop(60, compile_ms=45).store()).state == "pass"


def test_what_only_the_first_step_compiles_is_no_finding_about_the_steady_step() -> None:
    assert judge_rule("HD005", loop(60, compile_ms=45).store()).state != "fail"
    assert judge_rule("HD005", loop(60, compile_ms=45, later_compile_ms=5).store()).state == "fail"


def test_a_first_call_that_takes_far_longer_than_later_ones() -> None:
    store = loop(40, linear_ms=25).store()
    assert numbers(store) == [1, 2, 3]
    assert store[warm_up].first_calls_ns == 25_000_000 and store[warm_up].compile_ns == 0


@pytest.mark.parametrize(
    "made",
    [
        loop(60),  # longer, and nothing says why
        loop(60, compile_ms=10),  # compiling is the smaller part of it
        loop(12, compile_ms=1.5),  # not much longer
        loop(60, compile_ms=9, later_compile_ms=9),  # every step compiles
    ],
)
def test_other_first_steps_stay(made: Scene) -> None:
    store = made.store()
    assert numbers(store) == [0, 1, 2, 3]
    assert judge_rule("DQ019", made.store()).state == "not_applicable"


def test_a_chosen_step_is_shown_whichever_it_is() -> None:
    store = loop(60, compile_ms=45).store(selected_step=0)
    assert numbers(store) == [0]


def test_a_rank_that_waits_for_another_one_to_compile() -> None:
    """Its first step is longer by the first all-reduce, which takes far longer than those of later steps."""
    made = loop(60)
    for number, begin in enumerate((0.0, 60 * MS, 70 * MS, 80 * MS)):
        made.collective(begin + 600, 50 * MS if not number else 200, None, step=number)
    store = made.store()
    assert numbers(store) == [1, 2, 3]
    assert store[warm_up].wait_ns == 49_800_000
    assert store[warm_up].waits and not loop(60, compile_ms=45).store()[warm_up].waits
    # Where the whole job was recorded and nobody warms up, the first step is one like the others.
    assert numbers(made.store(keeps_first_step=True)) == [0, 1, 2, 3]
