"""Findings that came and went, and what their changes had been promised to win."""

from __future__ import annotations

from advisor_core.compare.baseline import accepted
from advisor_core.compare.compare import compare
from advisor_core.compare.findings import finding_differences, judged
from advisor_core.gates.baseline import baseline_of
from advisor_core.result.comparison import Comparison
from advisor_core.result.finding import Claim, Finding
from tests import report_fixtures
from tests.compare.results import finding, plan, result, step

BEFORE = [step({"compute/matmul": 600, "idle/sync": 400}, 0, number) for number in range(5)]
AFTER = [step({"compute/matmul": 600, "idle/sync": 100}, 0, number) for number in range(5)]


def states(told: Comparison) -> dict[str, str]:
    return {row.rule: row.state for row in told.findings}


def test_states() -> None:
    before = [
        finding("GONE", 100),
        finding("WORSE", 50),
        finding("BETTER", 100),
        finding("SAME", 100),
        finding("LOST", 9),
    ]
    after = [
        finding("NEW", 30),
        finding("WORSE", 90),
        finding("BETTER", 20),
        finding("SAME", 105),
        finding("SUDDEN", 9),
    ]
    told = compare(
        result(BEFORE, before, states={"NEW": "pass", "SUDDEN": "cannot_answer"}),
        result(AFTER, after, states={"GONE": "not_applicable", "LOST": "left_out"}),
    )
    assert states(told) == {
        "GONE": "gone",
        "NEW": "new",
        "WORSE": "worse",
        "BETTER": "better",
        "SAME": "same",
        "LOST": "unknown_after",
        "SUDDEN": "unknown_before",
    }


def test_a_rule_that_the_other_side_does_not_have_was_not_judged() -> None:
    assert states(compare(result(BEFORE, [finding("A", 5)]), result(AFTER))) == {"A": "unknown_after"}


def test_severity_tells_where_there_is_no_time() -> None:
    before = [finding("A", severity="high"), finding("B", 100, severity="low")]
    after = [finding("A", severity="low"), finding("B", 100, severity="high")]
    assert states(compare(result(BEFORE, before), result(AFTER, after))) == {"A": "better", "B": "same"}


def test_one_of_a_rule_about_another_thing() -> None:
    before, after = finding("A", 90, fingerprint="late 5"), finding("A", 95, fingerprint="late 6")
    (row,) = compare(result(BEFORE, [before]), result(AFTER, [after])).findings
    assert (row.state, row.before_ns, row.after_ns, row.before, row.after) == ("other_subject", 90, 95, "F1", "F1")


def test_other_thresholds() -> None:
    before, after = result(BEFORE, [finding("A", 90)]), result(AFTER, [finding("A", 5)])
    changed = after.rules[0].model_copy(update={"params": {"share": 0.2}})
    assert states(compare(before, after.model_copy(update={"rules": [changed]}))) == {"A": "judged_differently"}


def test_one_change_alone() -> None:
    before = result(BEFORE, [finding("A", 300), finding("B", 50)], plan=plan(1000, ("A", 280, 280), ("B", 40, 30)))
    told = compare(before, result(AFTER, [finding("B", 50)], states={"A": "pass"})).promises
    assert told is not None and (told.together_ns, told.basis, told.came_ns) == (280, "alone", 300)
    (item,) = told.items
    assert (item.promised_ns, item.range_ns, item.own_ns) == (280, (279, 281), 300)
    assert told.came_range_ns is not None and told.came_range_ns[0] <= 300 <= told.came_range_ns[1]


def test_several_changes_together_or_in_turn() -> None:
    actions = (("A", 280, 280), ("B", 40, 30), ("C", 20, 5))
    found = [finding("A", 300), finding("B", 50), finding("C", 40)]
    before = result(BEFORE, found, plan=plan(1000, *actions))
    first = compare(before, result(AFTER, [found[2]], states={"A": "pass", "B": "pass"})).promises
    assert first is not None and (first.together_ns, first.basis) == (310, "together")
    others = compare(before, result(AFTER, [found[1]], states={"A": "pass", "C": "pass"})).promises
    assert others is not None and (others.together_ns, others.basis) == (285, "in_turn")


def test_a_finding_whose_kernels_are_still_there_was_not_acted_on() -> None:
    """Its idle time went with that of another finding; half of its kernels gone is a change of its own."""

    def unfused(kernels_ns: int, idle_ns: int) -> Finding:
        claims = [Claim(rank=0, path="compute/matmul", ns=kernels_ns), Claim(rank=0, path="idle/sync", ns=idle_ns)]
        impact = finding("B", kernels_ns + idle_ns).impact.model_copy(update={"claims": claims})
        return finding("B", impact=impact)

    loader, actions = finding("A", 300), (("A", 280, 280), ("B", 140, 30))
    before = result(BEFORE, [loader, unfused(40, 100)], plan=plan(1000, *actions))
    for kernels_ns, acted_on in ((39, ["A"]), (20, ["A", "B"])):
        told = compare(before, result(AFTER, [unfused(kernels_ns, 10)], states={"A": "pass"}))
        assert told.promises is not None and states(told)["B"] == "better"
        assert [told.findings[one.finding].rule for one in told.promises.items] == acted_on


def test_a_setting_that_was_made_without_effect_is_told() -> None:
    advised = finding("A", 300, sets={"TASK_QUEUE_ENABLE": "2"}, kind="env")
    before = result(BEFORE, [advised], plan=plan(1000, ("A", 280, 280)))
    after = result(BEFORE, [advised], environment={"variables": {"TASK_QUEUE_ENABLE": "2"}})
    told = compare(before, after)
    assert told.settings == {"TASK_QUEUE_ENABLE": (None, "2")}
    assert told.promises is not None and told.promises.items[0].settings == ["TASK_QUEUE_ENABLE=2"]
    assert (told.promises.together_ns, told.promises.came_ns, told.promises.items[0].own_ns) == (280, 0, 0)


def test_without_a_replay_what_was_claimed() -> None:
    symptom = finding("SYMPTOM", 80, explained_by=["A"])
    before = result(BEFORE, [symptom, finding("A", 60)])
    told = compare(before, result(AFTER, states={"A": "pass", "SYMPTOM": "pass"})).promises
    assert told is not None and (told.together_ns, told.basis, len(told.items)) == (60, "claims", 1)


def test_versions_forbid_promises() -> None:
    before = result(BEFORE, [finding("A", 300)], plan=plan(1000, ("A", 280, 280)), source={"versions": {"torch": "1"}})
    told = compare(before, result(AFTER, states={"A": "pass"}, source={"versions": {"torch": "2"}}))
    assert told.promises is None and "promises" in told.withheld


def test_what_a_baseline_found_in_a_role_is_gone_where_the_role_was_asked() -> None:
    result = report_fixtures.of_roles()
    (role,) = {finding.role for finding in result.findings[:1]}
    assert role is not None
    after = result.model_copy(update={"findings": result.findings[1:]})
    rows = finding_differences(accepted(baseline_of(result), after), judged(after), 1_000_000)
    assert [row.state for row in rows if row.fingerprint == result.findings[0].fingerprint] == ["gone"]
