"""Rows whose name has a word of the vocabulary in it."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    import numpy.typing as npt

KEPT = 256
"""Answers that are kept: those about two to four ranks, each of which asks 60 to 120 times."""


def matching(names: pd.Series, pattern: re.Pattern[str]) -> npt.NDArray[np.bool_]:
    """Mask of the rows of a categorical whose name contains the pattern; each distinct name is tried once, also where
    several facts and advisors ask the same of one table or of parts of it."""
    column = names.cat
    if not len(column.categories):
        return np.zeros(len(names), dtype=np.bool_)
    return _tried(_Names(column.categories), pattern)[column.codes.to_numpy()]


class _Names:
    """The distinct names of a table. Frames that are taken from one another share them, and an index never changes, so
    one is told by its identity; it is held, so that no other takes its place in memory."""

    def __init__(self, held: pd.Index) -> None:
        self.held = held

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Names) and self.held is other.held

    def __hash__(self) -> int:
        return id(self.held)


@lru_cache(KEPT)
def _tried(names: _Names, pattern: re.Pattern[str]) -> npt.NDArray[np.bool_]:
    """Whether each of the names contains the pattern. The last is for code -1: no name."""
    search = pattern.search
    hits = np.array([*(search(str(name)) is not None for name in names.held.tolist()), False], dtype=np.bool_)
    hits.flags.writeable = False
    return hits
