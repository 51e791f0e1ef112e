"""Which tables of a rank disagree about a total, and which of two is to be doubted.

A file is doubted more, the more other files speak against it and the fewer agree with it. Between two that stand alone
a table of rows is doubted rather than a sum that the exporter made of complete data, and of two tables of rows the one
that says less.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations

import pandas as pd

from advisor_core.contracts.doubt import Disagreement
from advisor_core.contracts.tables import Table
from advisor_core.facts.doubt.contradictions import contradictions
from advisor_core.facts.doubt.totals import SUMMARIES, TOTALS, Total
from advisor_core.text.base import Text
from advisor_core.text.messages import message

_NAMED = 3
"""How many types of kernels or APIs are named where more differ."""


_CERTAIN = 10
"""What outweighs all other witnesses."""


@dataclass(frozen=True)
class _Pair:
    """What two tables say of one total: ``about`` what, and the values of the ``first`` and the ``second``. ``apart``
    is whether they are further apart than rounding explains."""

    total: str
    first: str
    second: str
    values: tuple[tuple[str, float, float], ...]
    apart: bool

    @property
    def frame(self) -> pd.DataFrame:
        return pd.DataFrame(self.values, columns=["about", "first", "second"])


def compared(said: pd.DataFrame, tables: Mapping[str, Table]) -> tuple[int, list[Disagreement]]:
    """How many pairs of tables have a total in common, and the totals that they give differently, worst first."""
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


def _pairs(said: pd.DataFrame) -> Iterator[_Pair]:
    """The tables that speak of the same total, two by two. They are few values of many kinds: no frame pays here."""
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


def _sums(said: pd.DataFrame) -> dict[str, dict[str, dict[str, float]]]:
    """Total to table to subject to value. A table that tells a subject twice (a doubled row) says the sum."""
    whole: dict[str, dict[str, dict[str, float]]] = defaultdict(lambda: defaultdict(lambda: defaultdict(float)))
    columns = (said[name].tolist() for name in ("total", "table", "about", "value"))
    for total, table, about, value in zip(*columns, strict=True):
        whole[total][table][about] += 0.0 if math.isnan(value) else float(value)
    return whole


def _beside(
    first: Mapping[str, float], second: Mapping[str, float], rule: Total
) -> tuple[tuple[str, float, float], ...]:
    """What both say, or either where the other means nothing by saying nothing."""
    same = list(first) == list(second)
    subjects = list(first) if same else sorted(first.keys() | second.keys())
    return tuple(
        (about, first.get(about, 0.0), second.get(about, 0.0))
        for about in subjects
        if rule.complete or (about in first and about in second)
    )


def _base(rule: Total, wall: float | None, larger: float) -> float:
    """What rounding is a share of: the step where there is one, else the larger value."""
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
    frame = pair.frame

    def suspicion(name: str, own: str, other: str) -> tuple[bool, int, bool, float]:
        score = 0 if same else scores.get((unit, witness(name, tables)), 0)
        return frame[own].sum() == 0, score, name not in SUMMARIES, float(frame[other].sum() - frame[own].sum())

    return suspicion(pair.first, "first", "second") >= suspicion(pair.second, "second", "first")


def _disagreement(pair: _Pair, first: bool, tables: Mapping[str, Table]) -> Disagreement:
    doubted, witness = (pair.first, pair.second) if first else (pair.second, pair.first)
    own, others = ("first", "second") if first else ("second", "first")
    frame = pair.frame
    gaps = (frame["first"] - frame["second"]).abs()
    largest = max(frame["first"].sum(), frame["second"].sum())
    worst = frame.loc[gaps.sort_values(ascending=False, kind="stable").index]
    named = worst[gaps[worst.index] > 0].head(_NAMED)
    return Disagreement(
        total=_named(pair.total, named["about"].tolist()),
        unit=TOTALS[pair.total].unit,
        table=doubted,
        file=tables[doubted].source.file,
        value=float(named[own].sum()),
        other_table=witness,
        other_file=tables[witness].source.file,
        other=float(named[others].sum()),
        off=float(gaps.sum() / largest) if largest else 0.0,
    )


def _named(total: str, about: list[str]) -> Text:
    return message(f"doubt.total.{total}", about=", ".join(about))
