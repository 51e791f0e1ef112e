"""Small frames, made and cut in a fraction of the time that pandas takes for any frame.

An analysis makes some hundreds of frames of a few rows. What one of them costs is not its rows: it is finding out what
the values are, making an index of the names, and one piece of memory for each column.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

import numpy as np
import pandas as pd

from advisor_core.contracts.columns import index_of

if TYPE_CHECKING:
    import numpy.typing as npt

Chosen: TypeAlias = "npt.NDArray[np.bool_] | npt.NDArray[np.int64]"
"""Rows of a frame: a mask of them, or their numbers."""

T = TypeVar("T")


class Held(Generic[T]):
    """A value that is told by its identity, to remember what was found out about it. It is held, so that no other takes
    its place in memory."""

    def __init__(self, value: T) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Held) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


def frame_of(columns: Mapping[str, Any], rows: int) -> pd.DataFrame:
    """As ``pd.DataFrame(columns)`` of arrays with so many rows, in less time; none is copied."""
    frame = pd.DataFrame(dict(enumerate(columns.values())), index=pd.RangeIndex(rows), copy=False)
    frame.columns = index_of(tuple(columns))
    return frame


def narrowed(frame: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """As ``frame[names]``, in a fifth of the time: places are looked up one by one, not as an index of their own."""
    place: Any = frame.columns.get_loc
    narrow: pd.DataFrame = frame.take([place(name) for name in names], axis=1)
    return narrow


def picked(frame: pd.DataFrame, rows: Chosen, names: Sequence[str]) -> pd.DataFrame:
    """As ``frame.loc[rows, names].reset_index(drop=True)``: only what is asked for is taken from a wide table."""
    numbers = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
    return frame_of({name: frame[name].array.take(numbers) for name in names}, len(numbers))
