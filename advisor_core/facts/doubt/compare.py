"""Tables of a rank that disagree about a total, and the choice of the one to doubt.

A file is doubted more, the more other files speak against it and the fewer agree with it. Between two that stand alone
a table of rows is doubted rather than a sum that the exporter made of complete data, and of two tables of rows the one
that says less.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
import numpy.typing as npt

from advisor_core.contracts.doubt import Disagreement
from advisor_core.contracts.tables import Table
from advisor_core.facts.doubt.contradictions import contradictions
from advisor_core.facts.doubt.totals import SUMMARIES, TOTALS, Statement, Total
from advisor_core.text.base import Text
from advisor_core.text.messages import message

Floats = npt.NDArray[np.float64]

_NAMED = 3
"""Types of kernels or APIs that are named at most, where more differ."""


_CERTAIN = 10
"""A weight above that of all other witnesses together."""


@dataclass(frozen=True)
class _Pair:
    """One total in two tables: ``about`` names it, ``first`` and ``second`` are their values. ``apart``
    is whether they are further apart than rounding explains."""

    total: str
    first: str
    second: str
    values: tuple[tuple[str, float, float], ...]
    apart: bool

    @cached_property
    def firsts(self) -> Floats:
        return np.array([first for _, first, _ in self.values], dtype=np.float64)

    @cached_property
    def seconds(self) -> Floats:
        return np.array([second for _, _, second in self.values], dtype=np.float64)


def compared(said: Iterable[Statement], tables: Mapping[str, Table]) -> tuple[int, list[Disagreement]]:
    """Number of pairs of tables with a total in common, and the totals that they give differently, worst first."""
    pairs = list(_pairs(said))
    own = contradictions(tables)
    scores = _scores(pairs, tables, own)
    found = [
        _disagreement(pair, _doubts_first(pair, scores, tables), tables)
        for pair in pairs
        if pair.apart and not _told_by_sums(pair, pairs)
    ]
    ordered = sorted([*found, *own], key=lambda one: (-one.off, one.total.en))
    return len({(pair.first, pair.second) for pair in pairs}), ordered


def _pairs(said: Iterable[Statement]) -> Iterator[_Pair]:
    """The tables that speak of the same total, two by two."""
    whole = _sums(said)
    walls = {about: value for values in whole.get("wall", {}).values() for about, value in values.items()}
    for total, by_table in sorted(whole.items()):
        rule = TOTALS[total]
        slack = 1_000 if rule.unit == "ns" else 0
        for first, second in combinations(sorted(by_table), 2):
            beside = _beside(by_table[first], by_table[second], rule)
            if not beside:
                continue
            apart = any(
                abs(one - other) > slack + rule.rounding * _base(rule, walls.get(about), max(one, other))
                for about, one, other in beside
            )
            yield _Pair(total, first, second, beside, apart)


def _sums(said: Iterable[Statement]) -> dict[str, dict[str, dict[str, float]]]:
    """Total to table to subject to value. A table that tells a subject twice (a doubled row) says the sum."""
    whole: dict[str, dict[str, dict[str, float]]] = defaultdict(lambda: defaultdict(lambda: defaultdict(float)))
    for total, about, table, value in said:
        whole[total][table][about] += 0.0 if math.isnan(value) else float(value)
    return whole


def _beside(
    first: Mapping[str, float], second: Mapping[str, float], rule: Total
) -> tuple[tuple[str, float, float], ...]:
    """Both values of each subject: of all subjects where a missing one counts as 0, else of those that both name."""
    same = list(first) == list(second)
    subjects = list(first) if same else sorted(first.keys() | second.keys())
    return tuple(
        (about, first.get(about, 0.0), second.get(about, 0.0))
        for about in subjects
        if rule.complete or (about in first and about in second)
    )


def _base(rule: Total, wall: float | None, larger: float) -> float:
    """The base of the tolerance for rounding: the step where there is one, else the larger value."""
    return wall if rule.of_step and wall is not None else larger


def _told_by_sums(pair: _Pair, pairs: list[_Pair]) -> bool:
    """Whether the same two tables disagree about all kernels as well: types are told only where the sum is right."""
    whole = pair.total.removesuffix("_of")
    return whole != pair.total and any(
        other.apart and (other.total, other.first, other.second) == (whole, pair.first, pair.second) for other in pairs
    )


def _scores(pairs: list[_Pair], tables: Mapping[str, Table], own: list[Disagreement]) -> dict[tuple[str, str], int]:
    """By unit and witness: how many others speak against it, less those that agree in all that both say. Times that
    agree say little about a count, and the other way round. What a table says against itself is certain."""
    against: dict[tuple[str, str, str], bool] = defaultdict(bool)
    for pair in pairs:
        one, other = sorted((witness(pair.first, tables), witness(pair.second, tables)))
        if one != other:
            against[TOTALS[pair.total].unit, one, other] |= pair.apart
    scores: dict[tuple[str, str], int] = defaultdict(int)
    for (unit, *witnesses), apart in against.items():
        for name in witnesses:
            scores[unit, name] += 1 if apart else -1
    for contradiction in own:
        for unit in ("ns", "count"):
            scores[unit, witness(contradiction.table, tables)] += _CERTAIN
    return scores


def witness(table: str, tables: Mapping[str, Table]) -> str:
    """Tables of one trace are one witness; those of a database were written one by one."""
    source = tables[table].source
    return table if source.position == "rowid" else source.file


def _doubts_first(pair: _Pair, scores: Mapping[tuple[str, str], int], tables: Mapping[str, Table]) -> bool:
    """Whether the first of the two tables is to be doubted, rather than the second. One that has none of what the other
    lists has lost it, whatever else it says."""
    unit = TOTALS[pair.total].unit
    same = witness(pair.first, tables) == witness(pair.second, tables)
    first, second = float(pair.firsts.sum()), float(pair.seconds.sum())

    def suspicion(name: str, total: float, less: float) -> tuple[bool, int, bool, float]:
        score = 0 if same else scores.get((unit, witness(name, tables)), 0)
        return total == 0, score, name not in SUMMARIES, less

    return suspicion(pair.first, first, second - first) >= suspicion(pair.second, second, first - second)


def _disagreement(pair: _Pair, first: bool, tables: Mapping[str, Table]) -> Disagreement:
    doubted, witness = (pair.first, pair.second) if first else (pair.second, pair.first)
    own, others = (pair.firsts, pair.seconds) if first else (pair.seconds, pair.firsts)
    gaps = np.abs(own - others)
    largest = max(own.sum(), others.sum())
    worst = np.argsort(-gaps, kind="stable")[:_NAMED]
    named = worst[gaps[worst] > 0]
    return Disagreement(
        total=_named(pair.total, [pair.values[number][0] for number in named.tolist()]),
        unit=TOTALS[pair.total].unit,
        table=doubted,
        file=tables[doubted].source.file,
        value=float(own[named].sum()),
        other_table=witness,
        other_file=tables[witness].source.file,
        other=float(others[named].sum()),
        off=float(gaps.sum() / largest) if largest else 0.0,
    )


def _named(total: str, about: list[str]) -> Text:
    return message(f"doubt.total.{total}", about=", ".join(about))
