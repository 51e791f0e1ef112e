"""Waits of one rank that the comparison of the ranks shows: who came last to a collective, or to a send and its
receive, and how long that took.

`advisor_core.job.settle` makes it; a rank that is looked at alone has `no_waits`. It is given to the facts of a rank
before any of them that depends on it is computed.
"""

from __future__ import annotations

from functools import cache

import pandas as pd

from advisor_core.contracts.columns import Column
from advisor_core.contracts.keys import Key

CROSS_RANK_WAITS: Key[pd.DataFrame] = Key("cross_rank_waits", "whom this rank waited for in each compared collective")
"""A frame with a row per compared collective."""

COLUMNS = (
    Column("work", "int", "", "row of work"),
    Column("last_rank", "int", "", "the rank that arrived last"),
    Column("waited_ns", "int", "ns", "uncovered time that this rank waited for it, 0 for the last rank itself"),
    Column("pair", "bool", "", "a send and its receive were compared, not a collective"),
)

_DTYPES = {"int": "int64", "bool": "bool"}


@cache
def no_waits() -> pd.DataFrame:
    """Nothing was compared."""
    return pd.DataFrame({column.name: pd.Series(dtype=_DTYPES[column.dtype]) for column in COLUMNS})
