"""Advice of one report never excludes other advice of it."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from advisor_core.names.settings import clash
from advisor_core.result.finding import Advice, Finding, Impact
from advisor_core.run.compatible_advice import combinable, exclusive
from advisor_core.text.base import Text


def advice(text: str = "Do it.", *, uses: list[str] | None = None, excludes: list[str] | None = None) -> Advice:
    settings = dict(item.split("=", 1) for item in uses or () if "=" in item)
    return Advice(kind="env", text=Text(en=text, zh="去做。"), set=settings, uses=uses or [], excludes=excludes or [])


def finding(rule: str, *items: Advice) -> Finding:
    text = Text(en="x", zh="某")
    return Finding.model_construct(
        rule=rule,
        name=rule.lower(),
        fingerprint=rule,
        title=text,
        impact=Impact(ns_per_step=1, gross_ns_per_step=1, share_of_step=0.1, basis="exact"),
        advice=list(items),
        withheld=[],
    )


QUEUE = advice(uses=["TASK_QUEUE_ENABLE=2"], excludes=["graph-capture"])
GRAPH = advice("Capture the model as a graph: one launch replays many kernels.", uses=["graph-capture"])
PLAIN = advice("Look at it.")


def test_the_later_of_two_that_exclude_each_other_is_left_out_with_the_reason() -> None:
    first, second = combinable([finding("HD002", QUEUE, PLAIN), finding("RL004", GRAPH, PLAIN)])
    assert first.advice == [QUEUE, PLAIN] and not first.withheld
    assert second.advice == [PLAIN]
    assert second.withheld[0].en == (
        "“Capture the model as a graph” is left out: it must not be combined with `TASK_QUEUE_ENABLE=2`, "
        "which HD002 advises."
    )


def test_the_first_advice_of_a_finding_comes_before_the_second_of_another() -> None:
    first, second = combinable([finding("HD002", PLAIN, QUEUE), finding("RL004", GRAPH)])
    assert first.advice == [PLAIN] and second.advice == [GRAPH] and first.withheld


def test_a_finding_whose_advice_is_all_left_out_still_says_what_to_do() -> None:
    _, second = combinable([finding("HD002", QUEUE), finding("RL004", GRAPH)])
    assert [item.kind for item in second.advice] == ["investigate"]


def test_within_a_finding() -> None:
    (one,) = combinable([finding("HD002", QUEUE, GRAPH, PLAIN)])
    assert one.advice == [QUEUE, PLAIN]
    assert one.withheld[0].en.endswith("with `TASK_QUEUE_ENABLE=2`, which stands above.")


WORDS = st.lists(st.sampled_from(["graph-capture", "X=1", "X=2", "mc2", "L=p:1", "L=q:1"]), max_size=3)
ADVICE = st.builds(lambda uses, excludes: advice(uses=uses, excludes=excludes), WORDS, WORDS)


@given(st.lists(st.lists(ADVICE, min_size=1, max_size=3), max_size=5))
def test_no_two_of_a_report_clash_and_nothing_else_is_lost(given: list[list[Advice]]) -> None:
    findings = [finding(f"AA{number:03}", *items) for number, items in enumerate(given)]
    result = combinable(findings)
    left = [item for found in result for item in found.advice]
    for one, other in itertools.combinations(left, 2):
        assert not clash(one.uses, one.excludes, other.uses, other.excludes)
    for before, after in zip(findings, result, strict=True):
        kept = [item for item in after.advice if item in before.advice]
        assert len(kept) + len(after.withheld) == len(before.advice)
        assert after.advice


def test_the_advice_of_an_alternative_is_left_out_whatever_its_place() -> None:
    first, second = combinable([finding("HD021", QUEUE), finding("RL004", GRAPH)], ["HD021"])
    assert second.advice == [GRAPH] and first.advice != [QUEUE] and len(first.withheld) == 1


def test_findings_exclude_each_other_where_all_that_changes_something_does() -> None:
    look = PLAIN.model_copy(update={"kind": "investigate"})
    assert exclusive(finding("HD021", look, QUEUE), finding("RL004", GRAPH))
    assert not exclusive(finding("HD021", QUEUE, PLAIN), finding("RL004", GRAPH)), "there is another way"
    assert not exclusive(finding("HD021", look), finding("RL004", GRAPH)), "nothing says what changes it"
