"""Cross-check a loaded rank: withhold tables that other files show to be wrong (cut off, doubled, of another time), and
mark the others."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from advisor_core.contracts.doubt import Disagreement, Doubt
from advisor_core.contracts.missing import Missing
from advisor_core.contracts.profile import Profile
from advisor_core.contracts.tables import DEVICE_TASKS, STEP_TRACE, Table
from advisor_core.facts.doubt.compare import compared, witness
from advisor_core.facts.doubt.totals import SUMMARIES, statements
from advisor_core.result.run import Diagnostic
from advisor_core.text.base import Text
from advisor_core.text.messages import message

WITHHELD_FROM: Final = 0.1
"""A table that is off by a tenth is withheld: it would make, or hide, idle time of a tenth of the step, which is what
the broad rules call a problem. Our choice."""

MARKED_FROM: Final = 0.005
"""Results that depend on a table that is off by more than this are marked: the tolerance of sums of time."""

_TOLD = 4
"""Totals of a pair of files that one sentence names at most."""


def cross_checked(profile: Profile) -> Profile:
    """The profile with its `Doubt`, in which a withheld table is missing, with the reason."""
    pairs, found = compared(statements(profile.given()), profile.tables)
    worst: dict[str, list[Disagreement]] = {}
    for one in found:
        if one.table not in SUMMARIES:  # nothing but evidence is taken from these
            worst.setdefault(one.table, []).append(one)
    withheld = {
        name: said for name, said in worst.items() if said[0].off > WITHHELD_FROM and not _alone(said, profile.tables)
    }
    marked = {name: said for name, said in worst.items() if said[0].off > MARKED_FROM and name not in withheld}
    doubt = Doubt(
        compared=pairs,
        disagreements=tuple(found),
        withheld=frozenset(withheld),
        marked={name: message("doubt.caveat", disagreement=_worst(said)) for name, said in marked.items()},
    )
    missing = {
        name: Missing(message("doubt.withheld", disagreement=_worst(said)), message("doubt.collect"))
        for name, said in withheld.items()
    }
    return dataclasses.replace(
        profile,
        tables={name: table for name, table in profile.tables.items() if name not in withheld},
        missing={**profile.missing, **missing},
        doubt=doubt,
    )


def _alone(said: Sequence[Disagreement], tables: Mapping[str, Table]) -> bool:
    """Whether the rows contradict one another and nothing could stand in: what was written from the same rows is
    damaged with them."""
    own = {witness(said[0].table, tables)}
    others = {witness(name, tables) for name in (DEVICE_TASKS.name, STEP_TRACE.name) if name in tables}
    return {witness(one.other_table, tables) for one in said} == own and others <= own


def doubts(doubt: Doubt) -> Iterable[Diagnostic]:
    """One sentence for each pair of files that disagree."""
    for said in _by_files(doubt.disagreements):
        table = said[0].table
        state = "withheld" if table in doubt.withheld else "marked" if table in doubt.marked else "told"
        text = message(f"doubt.{state}", disagreement=_sentence(said))
        yield Diagnostic(severity="warning", source=said[0].file, message=text)


def _by_files(found: Sequence[Disagreement]) -> list[list[Disagreement]]:
    """The disagreements of each doubted table with each file, worst first, no total twice."""
    pairs: dict[tuple[str, str], dict[str, Disagreement]] = {}
    for one in sorted(found, key=lambda one: -one.off):
        pairs.setdefault((one.table, one.other_file), {}).setdefault(one.total.en, one)
    return [list(said.values()) for said in pairs.values()]


def _worst(said: Sequence[Disagreement]) -> Text:
    """The value of the file that is furthest away."""
    return _sentence(_by_files(said)[0])


def _sentence(said: Sequence[Disagreement]) -> Text:
    """Both files with their numbers: ``kernel_details.csv disagrees with step_trace_time.csv: computing ...``."""
    told = [_total(one) for one in said[:_TOLD]]
    totals = Text(en=", ".join(text.en for text in told), zh="，".join(text.zh for text in told))
    kind = "own" if said[0].other_file == said[0].file else "disagreement"
    return message(f"doubt.{kind}", file=said[0].file, other_file=said[0].other_file, totals=totals)


def _total(one: Disagreement) -> Text:
    numbers = [one.value, one.other]
    value, other = (f"{number / 1e6:.3f} ms" if one.unit == "ns" else f"{number:.0f}" for number in numbers)
    return message("doubt.total", total=one.total, value=value, other=other)
