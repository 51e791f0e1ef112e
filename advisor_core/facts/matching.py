"""Rows whose name has a word of the vocabulary in it."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd


def matching(names: pd.Series, pattern: re.Pattern[str]) -> np.ndarray:
    """Mask of the rows of a categorical whose name contains the pattern; each distinct name is tried once."""
    hits = np.array([bool(pattern.search(str(name))) for name in names.cat.categories.tolist()], dtype=bool)
    return hits[names.cat.codes.to_numpy()] if len(hits) else np.zeros(len(names), dtype=bool)
