"""Frames of facts are what they declare: checked when they are made, and none is left out."""

from __future__ import annotations

import dataclasses
import typing

import numpy.typing as npt
import pandas as pd
import pytest

from advisor_core.api.facts import Column, Facts, fact
from advisor_core.contracts.facts import Fact
from advisor_core.contracts.keys import Answers
from advisor_core.contracts.registry import Registry
from advisor_core.facts.communication.cross_rank_waits import no_waits
from advisor_core.facts.store import FactStore
from advisor_core.plugins.host import load_host

ROW = Column("row", "int", "", "row")
FACTS = [value for value in load_host().facts.values() if not value.name.startswith("hello")]


def frames_of(kind: object) -> set[str]:
    """The fields of a value that are frames; '' for a value that is one."""
    if kind is pd.DataFrame:
        return {""}
    if not (isinstance(kind, type) and dataclasses.is_dataclass(kind)):
        return set()
    return {name for name, hint in hints_of(kind).items() if hint is pd.DataFrame}


def hints_of(thing: object) -> dict[str, object]:
    """Its annotations; types of arrays are imported by type checkers alone."""
    return typing.get_type_hints(thing, localns={"npt": npt})


@pytest.mark.parametrize("declared", FACTS, ids=lambda declared: declared.name)
def test_every_frame_of_a_fact_declares_its_columns(declared: Fact[object]) -> None:
    assert set(declared.frames) == frames_of(hints_of(declared.compute)["return"])
    for columns in declared.frames.values():
        names = [column.name for column in columns]
        assert len(names) == len(set(names)) and all(column.meaning for column in columns)


@dataclasses.dataclass(frozen=True)
class Pair:
    left: pd.DataFrame
    right: int


def store_of(value: Fact[object]) -> FactStore:
    registry: Registry[Fact[object]] = Registry("fact")
    registry.add(value)
    return FactStore(registry, Answers())


def test_a_frame_that_is_not_what_it_declares_is_no_fact() -> None:
    @fact("whole", columns=(ROW,))
    def whole(facts: Facts) -> pd.DataFrame:
        """A frame."""
        return pd.DataFrame({"row": [1.5]})

    @fact("half", frames={"left": (ROW,)})
    def half(facts: Facts) -> Pair:
        """A frame in a field."""
        return Pair(pd.DataFrame({"line": [1]}), 1)

    @fact("none", columns=(ROW,))
    def none(facts: Facts) -> object:
        """No frame."""
        return [1]

    told = {
        whole: "whole.row is declared int, but has dtype float64",
        half: "half.left gives other columns than it declares: without ['row'], with ['line']",
        none: "none declares columns and is no frame: list",
    }
    for value, words in told.items():
        store = store_of(value)
        missing = store.missing(value)
        assert missing is not None and missing.kind == "failed"
        assert words in store.diagnostics[0].message.en


def test_a_frame_that_is_what_it_declares_is_given() -> None:
    @fact("half", frames={"left": (ROW,)})
    def half(facts: Facts) -> Pair:
        """A frame in a field."""
        return Pair(pd.DataFrame({"row": [1]}), 1)

    assert store_of(half)[half].right == 1


def test_what_the_comparison_of_ranks_gives_is_checked() -> None:
    @fact("nothing")
    def nothing(facts: Facts) -> int:
        """Nothing."""
        return 0

    store = store_of(nothing)
    store.settle(no_waits())
    with pytest.raises(TypeError, match=r"cross_rank_waits gives other columns"):
        store.settle(no_waits().drop(columns="work"))
