"""The results that depend on a doubted table: all that is derived from it, as facts declare it."""

from __future__ import annotations

from collections.abc import Iterable

from advisor_core.contracts.doubt import DOUBT
from advisor_core.contracts.facts import Fact
from advisor_core.contracts.keys import AnyKey, Source
from advisor_core.contracts.tables import TableSchema
from advisor_core.text.base import Text


def tables_behind(keys: Iterable[AnyKey]) -> set[str]:
    """Names of the tables that these values may be derived from: by what facts need and, where they have several
    sources, by what they want."""
    seen: set[AnyKey] = set()
    waiting = list(keys)
    while waiting:
        key = waiting.pop()
        if key not in seen:
            seen.add(key)
            waiting += [*key.needs, *key.wants] if isinstance(key, Fact) else []
    return {key.name for key in seen if isinstance(key, TableSchema)}


def caveats(needs: Iterable[AnyKey], rank: Source) -> tuple[Text, ...]:
    """Doubts about a measurement on a rank that needs these values. Values that it only wants are evidence beside
    it."""
    doubt = rank.get(DOUBT)
    if doubt is None or not doubt.marked:
        return ()
    behind = tables_behind(needs)
    return tuple(caveat for table, caveat in sorted(doubt.marked.items()) if table in behind)
