"""Ids with which rows of an export name rows of another table."""

from __future__ import annotations

import numpy as np

from advisor_core.contracts.tables import Int64Array


def lost_ids(named: Int64Array, recorded: Int64Array) -> int:
    """Number of the ids ``named`` that lie between the first and the last recorded one and are not recorded.

    What these name was lost; what lies outside came before the recording or after it. Negative ids name nothing.
    """
    ids = recorded[recorded >= 0]
    if not len(ids):
        return 0
    within = (named > ids.min()) & (named < ids.max())
    return int((within & ~np.isin(named, ids)).sum())
