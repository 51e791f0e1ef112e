"""Rows whose name has a word of the vocabulary in it."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd


def matching(names: pd.Series, pattern: re.Pattern[str]) -> np.ndarray:
    """Mask of the rows of a categorical whose name contains the pattern; each distinct name is tried once."""
    column, search = names.cat, pattern.search
    hits = np.array([search(str(name)) is not None for name in column.categories.tolist()], dtype=bool)
    return hits[column.codes.to_numpy()] if len(hits) else np.zeros(len(names), dtype=bool)
