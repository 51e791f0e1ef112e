"""Facts, tables and the profile are asked for by typed keys, and nothing else."""

from __future__ import annotations

import ast
import types
from pathlib import Path
from typing import Any

import pytest

from advisor_core import testing
from advisor_core.api import Text
from advisor_core.api.advisors import Column, Observations, advisor, job_advisor
from advisor_core.api.facts import (
    COMMUNICATION_TASKS,
    DEVICE_TASKS,
    KERNELS,
    PROFILE,
    Facts,
    JobFacts,
    Missing,
    NotApplicable,
    Unavailable,
    fact,
    launches,
    ledger,
    row_refs,
    steps,
    work,
)
from advisor_core.contracts.keys import Answers
from advisor_core.facts.job_store import JobStore
from advisor_core.facts.store import FactStore
from advisor_core.plugins.hookspecs import hookimpl
from advisor_core.plugins.host import load_host
from advisor_core.testing import table

ROOT = Path(__file__).parent.parent.parent
TOLD = Text(en="no", zh="无")


def store() -> FactStore:
    return testing.fact_store(kernels=table("kernels", [{"start_us": 0, "duration_us": 80, "type": "Add"}]))


def test_what_is_declared_can_be_asked_for_and_nothing_else() -> None:
    facts = store().view((steps,), (launches,))
    assert len(facts[steps]) == 1 and facts.get(launches) is None and launches not in facts
    assert isinstance(facts.find(launches), Missing)
    with pytest.raises(Unavailable):
        facts[launches]
    for ask in (facts.find, facts.get, facts.__getitem__, facts.__contains__, facts.missing):
        with pytest.raises(LookupError, match="'work' is not declared"):
            ask(work)


def test_a_fact_of_another_plugin_that_has_the_same_name_is_not_taken_for_it() -> None:
    @fact("steps")
    def other(facts: Facts) -> int:
        """Not the registered one."""
        return 1

    assert isinstance(store().find(other), Missing) and len(store()[steps]) == 1


@pytest.mark.parametrize(
    ("missing", "error"),
    [(Missing(TOLD, TOLD, ("gc",)), Unavailable), (Missing(TOLD, kind="not_applicable"), NotApplicable)],
)
def test_what_is_missing_stops_what_needs_it_and_comes_back_as_it_was(missing: Missing, error: type[Exception]) -> None:
    given = Answers()
    given.put(KERNELS, missing)
    with pytest.raises(error) as stopped:
        FactStore({}, given).view((KERNELS,), ())
    assert stopped.value.missing == missing  # type: ignore[attr-defined]


def test_the_job_sees_the_ranks_that_have_a_value() -> None:
    ranks = {0: Answers(), 1: Answers()}
    ranks[0].put(ledger, store()[ledger])
    ranks[1].put(ledger, Missing(TOLD))
    job = JobStore(ranks)
    assert list(job.view((ledger,), ()).ranks(ledger)) == [0] and job.missing(ledger) is None
    assert job.view((), (steps,)).ranks(steps) == {}
    with pytest.raises(Unavailable):
        job.view((steps,), ())
    with pytest.raises(LookupError, match="'work' is not declared"):
        job.view((ledger,), ()).ranks(work)


def test_an_advisor_of_the_job_needs_shared_facts() -> None:
    for key in (work, PROFILE):
        with pytest.raises(TypeError, match="is not a shared fact"):
            job_advisor("a.b", needs=(key,), columns=())  # type: ignore[arg-type]


def test_a_fact_that_no_plugin_registered_is_told_when_plugins_are_loaded() -> None:
    @fact("nobody.registers")
    def unregistered(facts: Facts) -> int:
        """Not there."""
        return 1

    @advisor("a.b", needs=(unregistered,), columns=[Column("x", "int", "", "x")])
    def measure(facts: Facts, params: Any) -> Observations:
        """Needs it."""
        raise NotImplementedError

    plugin = types.ModuleType("incomplete")
    plugin.advisor_register_advisors = hookimpl(lambda registry: registry.add(measure))  # type: ignore[attr-defined]
    status = {found.name: found for found in load_host([("incomplete", plugin)]).plugins}
    assert status["incomplete"].lacks == ("a.b asks for the fact 'nobody.registers', which no plugin registered",)
    assert not any(found.lacks for name, found in status.items() if name != "incomplete")


def _strings(tree: ast.AST) -> list[str]:
    """Where a string is used to ask for a fact or to declare one as needed."""
    found = []
    for node in ast.walk(tree):
        asked: list[ast.expr] = []
        match node:
            case ast.Subscript(value=ast.Name(id="facts" | "store"), slice=key):
                asked = [key]
            case ast.Call(func=ast.Attribute(value=ast.Name(id="facts" | "store")), args=args):
                asked = list(args[:1]) if node.func.attr != "note" else []  # type: ignore[attr-defined]
            case ast.Compare(left=left, comparators=[ast.Name(id="facts" | "store")]):
                asked = [left]
            case ast.keyword(arg="needs" | "wants", value=value):
                asked = [part for part in ast.walk(value) if isinstance(part, ast.Constant)]
        found += [f"line {part.lineno}" for part in asked if isinstance(part, ast.Constant) and part.value is not None]
    return found


def test_no_fact_is_asked_for_by_a_string() -> None:
    assert _strings(ast.parse('facts["a"]; "a" in facts; facts.get("a"); fact("x", needs=("a",))')) == ["line 1"] * 4
    files = [path for room in ("advisor_core", "advisors", "examples") for path in (ROOT / room).rglob("*.py")]
    assert len(files) > 100
    told = {str(path.relative_to(ROOT)): _strings(ast.parse(path.read_text(encoding="utf-8"))) for path in files}
    assert {path: lines for path, lines in told.items() if lines} == {}


def test_facts_of_the_job_are_typed_like_those_of_a_rank() -> None:
    shared = Answers()
    shared.put(ledger, store()[ledger])
    assert JobFacts({3: shared}, (ledger,)).ranks(ledger)[3].equals(Facts(shared, (ledger,))[ledger])


def test_rows_say_which_table_they_are_of() -> None:
    tasks = table("device_tasks", [{"name": "Add", "task_type": "AI_CORE", "start_us": 0, "duration_us": 5}])
    whole = {"name": "hcom_allReduce__1_0_1", "plane": -1, "start_us": 6, "duration_us": 2}
    traced = testing.fact_store(device_tasks=tasks, communication_tasks=table("communication_tasks", [whole]))[work]
    assert [(where.table, where.rows.tolist()) for where in row_refs(traced)] == [
        (DEVICE_TASKS, [0]),
        (COMMUNICATION_TASKS, [0]),
    ]
    assert [where.table for where in row_refs(store()[work])] == [KERNELS] and row_refs(traced.iloc[:0]) == []
