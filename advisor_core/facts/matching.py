"""Rows whose name has a word of the vocabulary in it."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from advisor_core.contracts.frames import Held

if TYPE_CHECKING:
    import numpy.typing as npt

KEPT = 256
"""Answers that are kept: those about two to four ranks, each of which asks 60 to 120 times."""


def matching(names: pd.Series, pattern: re.Pattern[str]) -> npt.NDArray[np.bool_]:
    """Mask of the rows of a categorical whose name contains the pattern; each distinct name is tried once, also where
    several facts and advisors ask the same of one table or of parts of it."""
    column: Any = names.array
    if not len(column.categories):
        return np.zeros(len(names), dtype=np.bool_)
    hits: npt.NDArray[np.bool_] = _tried(Held(column.categories), pattern)[column.codes]
    return hits


@lru_cache(KEPT)
def _tried(names: Held[pd.Index], pattern: re.Pattern[str]) -> npt.NDArray[np.bool_]:
    """Whether each of the names contains the pattern. The last is for code -1: no name. Frames that are taken from one
    another share their names, and an index never changes."""
    search = pattern.search
    hits = np.array([*(search(str(name)) is not None for name in names.value.tolist()), False], dtype=np.bool_)
    hits.flags.writeable = False
    return hits
