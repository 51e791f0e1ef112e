"""One simulated job, exported in every way: whoever can answer gives the same answer, whoever cannot says so."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from advisor_core.result.finding import Finding
from advisor_core.result.run import RunResult
from tests.once import ResultOf

JOB = "transformer-training"
LEVEL_RULES = {"DQ001"}
"""What such a rule finds is the level itself."""
ABOUT_THE_EXPORT = {("DQ002", "level"), ("CO006", "tensor_parallel")}
"""Observations of how the profile was taken: only newer exports record the parallel layout."""
LAUNCH_RULES = {"HD001", "HD002", "HD004", "HD005", "HD021", "HD025", "ME004"}
"""Rules about when the host launched. Arrows of the trace begin within the launching call; databases have the call,
and no arrow: where in the call it would begin is known to a fraction of a microsecond."""
REPLAYED = {"saving_ns", "launch_saving_ns"}
"""Columns of other rules that a replay of the launches gives."""
LAUNCH_CALLS = 0.005
"""Half a microsecond in the gaps that such rules add up (100 us and more each)."""
ROUNDING = 1e-5
"""Times of text exports have 1 ns, ratios of counters 0.001; the shortest sum that a rule measures is 0.1 ms."""

Answers = Callable[..., RunResult]

SAME = {
    "other-headers": {"headers": "2025"},
    "level2": {"level": "level2"},
    "db": {"format": "db"},
    "db-other-headers": {"format": "db", "headers": "2025"},
    "db-level2": {"format": "db", "level": "level2"},
}
VARIANTS = ("level2", "db", "db-other-headers")
"""Headers, format and level are each met in the gate, two of them at once."""
SHOWN = [
    pytest.param(options, id=name, marks=pytest.mark.search if name in VARIANTS else ())
    for name, options in SAME.items()
]
LESS = {
    "level0": {"level": "level0"},
    "db-level0": {"format": "db", "level": "level0"},
    "level-none": {"level": "level_none"},
    "db-level-none": {"format": "db", "level": "level_none"},
}


@pytest.fixture(scope="module")
def answers(result_of: ResultOf, shared_sample: Callable[..., Path]) -> Answers:
    """The result for a job that was exported with given options."""

    @cache
    def get(scenario: str = JOB, **options: Any) -> RunResult:
        return result_of(shared_sample(scenario, **options))

    return get


def states(result: RunResult) -> dict[str, str]:
    return {outcome.rule: outcome.state for outcome in result.rules}


def by_fingerprint(result: RunResult) -> dict[str, Finding]:
    return {finding.fingerprint: finding for finding in result.findings}


def differences(left: Finding, right: Finding, launch_calls: float) -> Iterator[str]:
    """What two findings of the same fingerprint do not agree in."""
    for what in ("rule", "subject", "severity", "rank", "ranks", "step", "confidence"):
        if getattr(left, what) != getattr(right, what):
            yield f"{left.rule} {what}: {getattr(left, what)!r} and {getattr(right, what)!r}"
    for column, value in left.observation.items():
        other = right.observation[column]
        relative = launch_calls if left.rule in LAUNCH_RULES or column in REPLAYED else ROUNDING
        if (left.rule, column) in ABOUT_THE_EXPORT:
            continue
        if isinstance(value, float) and isinstance(other, float):
            equal = value == pytest.approx(other, rel=relative, abs=2)
            if left.units.get(column) == "ratio":
                equal = value == pytest.approx(other, rel=relative, abs=relative)
        else:
            equal = value == other
        # a duration may be split otherwise between the layers of the host, where their borders are launches
        if not equal and not (left.rule in LAUNCH_RULES and launch_calls > ROUNDING and _is_layer(column, left)):
            yield f"{left.rule} {left.subject} {column}: {value!r} and {other!r}"


def _is_layer(column: str, finding: Finding) -> bool:
    """Whether the column is one layer's part of the late time, which the launching calls themselves are part of."""
    return finding.rule == "HD002" and column == "runtime_ns"


@pytest.mark.parametrize("options", SHOWN)
def test_exports_of_the_same_content_give_the_same_answer(answers: Answers, options: dict[str, str]) -> None:
    expected, result = answers(), answers(**options)
    assert states(result) == states(expected)
    ours, theirs = by_fingerprint(result), by_fingerprint(expected)
    assert ours.keys() == theirs.keys()
    launch_calls = LAUNCH_CALLS if options.get("format") == "db" else ROUNDING
    found = [text for key, finding in theirs.items() for text in differences(finding, ours[key], launch_calls)]
    assert not found, "\n".join(found)
    assert len(theirs) >= 15


@pytest.mark.parametrize("options", SHOWN)
def test_exports_of_the_same_content_have_the_same_ledger(answers: Answers, options: dict[str, str]) -> None:
    def totals(result: RunResult) -> dict[tuple[int, int | None, str], int]:
        sums: dict[tuple[int, int | None, str], int] = {}
        for ledger in result.ledger:
            for entry in ledger.entries:
                branch = entry.path.partition("/")[0]
                key = (ledger.rank, ledger.step, branch)
                sums[key] = sums.get(key, 0) + entry.ns
            sums[ledger.rank, ledger.step, "wall"] = ledger.wall_ns
        return sums

    expected, result = totals(answers()), totals(answers(**options))
    assert expected.keys() == result.keys()
    for key, time in expected.items():
        assert result[key] == pytest.approx(time, abs=100, rel=ROUNDING), key


@pytest.mark.parametrize("options", LESS.values(), ids=list(LESS))
def test_what_a_level_lacks_cannot_be_answered(answers: Answers, options: dict[str, str]) -> None:
    expected, result = states(answers()), answers(**options)
    assert len(states(result)) == len(expected)
    wrong = {
        rule: (expected[rule], state)
        for rule, state in states(result).items()
        if state not in (expected[rule], "cannot_answer") and rule not in LEVEL_RULES | {"CO010"}
    }
    assert not wrong
    given_up = {rule for rule, state in states(result).items() if state == "cannot_answer"}
    assert {"NS001", "PB001", "SA001", "CO004", "CO006"} <= given_up
    for outcome in result.rules:
        if outcome.state == "cannot_answer":
            assert outcome.reason is not None, outcome.rule


@pytest.mark.parametrize("options", LESS.values(), ids=list(LESS))
def test_a_lower_level_finds_nothing_new(answers: Answers, options: dict[str, str]) -> None:
    expected, result = answers(), answers(**options)
    known = by_fingerprint(expected)
    for fingerprint, finding in by_fingerprint(result).items():
        if finding.rule not in LEVEL_RULES:
            assert fingerprint in known, (finding.rule, finding.subject)
            assert finding.severity == known[fingerprint].severity
    assert states(result)["DQ001"] == "fail"


@pytest.mark.parametrize("options", [LESS["level0"], LESS["db-level0"]], ids=["level0", "db-level0"])
@pytest.mark.parametrize("job", [JOB, "format-conversions"])
def test_what_names_tell_is_what_types_tell(answers: Answers, job: str, options: dict[str, str]) -> None:
    """Level 0 has names of kernels in place of types and shapes. What follows from types and times alone is found by
    names as well, and says so; what shapes tell of it is unknown, and no other value. A rule that would have to leave
    something out, such as kernels that belong to a computation, cannot answer: it would find more than at level 1,
    which the tests above forbid."""
    known = by_fingerprint(answers(job))
    named = [finding for finding in answers(job, **options).findings if finding.observation.get("by_name") is True]
    assert [finding.rule for finding in named] == ["NS003"]
    for finding in named:
        expected = known[finding.fingerprint].observation
        assert expected["by_name"] is False
        for column, value in finding.observation.items():
            if column != "by_name" and value is not None:
                equal = pytest.approx(expected[column], rel=ROUNDING) if isinstance(value, float) else expected[column]
                assert value == equal, (finding.rule, column)


@pytest.mark.parametrize("options", [LESS["level0"], LESS["db-level0"]], ids=["level0", "db-level0"])
def test_who_is_late_cannot_be_told_without_the_steps_of_collectives(answers: Answers, options: dict[str, str]) -> None:
    assert states(answers())["CO010"] == "fail"
    assert states(answers(**options))["CO010"] == "cannot_answer"


def test_a_level_without_device_tasks_has_no_ledger(answers: Answers) -> None:
    for options in (LESS["level-none"], LESS["db-level-none"]):
        assert not answers(**options).ledger
        applied = {rule for rule, state in states(answers(**options)).items() if state in {"pass", "fail"}}
        assert not {rule for rule in applied if rule.startswith(("CO", "NS", "PB", "SA"))}


@pytest.mark.parametrize("format", ["text", "db"])
def test_a_healthy_job_is_healthy_in_every_export(answers: Answers, format: str) -> None:
    result = answers("healthy-training", **({} if format == "text" else {"format": format}))
    assert not [finding.rule for finding in result.findings if finding.severity == "high"]
    assert states(result) == states(answers("healthy-training"))
    assert by_fingerprint(result).keys() == by_fingerprint(answers("healthy-training")).keys()


@pytest.mark.parametrize("scenario", ["leak", pytest.param("fragmentation", marks=pytest.mark.search)])
def test_memory_is_the_same_in_every_export(answers: Answers, scenario: str) -> None:
    """Tables of text exports have sizes in KB and MB and times in us, databases bytes and ns."""
    expected, result = answers(scenario), answers(scenario, format="db")
    ours, theirs = (
        [finding for finding in answer.findings if finding.rule.startswith("ME")] for answer in (result, expected)
    )
    assert len(ours) == len(theirs) == 1
    assert not list(differences(theirs[0], ours[0], ROUNDING))
    assert states(result) == states(expected)
    drawn = [{view.id: view for view in answer.views if "memory" in view.id} for answer in (result, expected)]
    assert drawn[0]["memory-peak-rank0"] == drawn[1]["memory-peak-rank0"]
    assert drawn[0]["memory-rank0"].data.series == drawn[1]["memory-rank0"].data.series
