"""Doubt: totals that two files of one recording both have and give differently.

It is found before anything is derived (`advisor_core.facts.doubt`). A table that is clearly cut off, or doubled, is
withheld: it is `Missing` to all that asks for it. What hangs on a table that is only somewhat off is marked.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from advisor_core.contracts.keys import Key
from advisor_core.text.base import Text


@dataclass(frozen=True)
class Disagreement:
    """A total that two tables give differently.

    ``total``: what is counted, and of what (a step, a type of kernels). ``unit``: ``ns`` or ``count``. ``table`` is the
    one that is doubted, with its ``file`` and what it says (``value``); ``other_table``, ``other_file`` and ``other``
    are those that speak against it. ``off``: the difference over the larger of the two.
    """

    total: Text
    unit: str
    table: str
    file: str
    value: float
    other_table: str
    other_file: str
    other: float
    off: float


@dataclass(frozen=True)
class Doubt:
    """The result of comparing the files of a rank.

    ``compared``: pairs of tables that have a total in common. ``disagreements``: worst first. ``withheld``: names of
    tables that nothing is derived from; ``marked``: by name of a table that is still used, the caveat of what hangs on
    it.
    """

    compared: int = 0
    disagreements: tuple[Disagreement, ...] = ()
    withheld: Collection[str] = ()
    marked: dict[str, Text] = field(default_factory=dict)


DOUBT: Key[Doubt] = Key("doubt", "what files of the recording say against each other")
