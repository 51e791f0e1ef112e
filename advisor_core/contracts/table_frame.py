"""Frames whose rows and columns are chosen in a fraction of the time that pandas takes.

An analysis chooses rows of the tables of a rank, and columns of them, some thousands of times; each time pandas finds
out anew what it was given, and asks each column of text whether a value may be missing, which no choice of rows that
are there can make so. A `TableFrame` is a frame of pandas in all else, and so is what comes of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from pandas.api.internals import create_dataframe_from_blocks  # type: ignore[import-not-found]  # not in the stubs

if TYPE_CHECKING:
    import numpy.typing as npt

Block = tuple[Any, "npt.NDArray[np.intp]"]
"""Columns of one type: a numpy array of two dimensions, a row for each column, or an array of pandas for one; and the
places of the columns in the frame."""


class TableFrame(pd.DataFrame):
    """A frame of pandas. ``frame[name]``, ``frame[[name, ...]]``, ``frame[mask]``, ``take``, and what pandas does by
    it (``loc`` by a mask, ``iloc`` by numbers), are quick."""

    @property
    def _constructor(self) -> type[TableFrame]:
        return TableFrame

    def _constructor_from_mgr(self, mgr: Any, axes: Any) -> TableFrame:
        return _held(mgr, axes)

    def _constructor_sliced_from_mgr(self, mgr: Any, axes: Any) -> pd.Series:
        column: pd.Series = pd.Series._from_mgr(mgr, axes)  # type: ignore[attr-defined]
        object.__setattr__(column, "_name", None)  # the caller gives it one
        return column

    def __getitem__(self, key: Any) -> Any:
        if type(key) is str:
            place = self.columns.get_loc(key)
            if type(place) is int:
                return self._ixs(place, axis=1)  # type: ignore[operator]
        elif type(key) is list and key and all(type(name) is str for name in key):
            places: Any = [self.columns.get_loc(name) for name in key]
            if all(type(place) is int for place in places):
                return super().take(places, axis=1)
        return super().__getitem__(key)

    def take(self, indices: Any, axis: Any = 0, **kwargs: Any) -> TableFrame:  # type: ignore[misc]
        """As of any frame, which pandas marks as final: whatever chooses rows asks it."""
        if axis not in (0, "index") or kwargs or isinstance(indices, slice) or len(self.columns) == 0:
            return super().take(indices, axis=axis, **kwargs)
        rows = np.asarray(indices, dtype=np.intp)
        blocks: list[Block] = []
        for values, places in _blocks(self):
            if isinstance(values, np.ndarray):
                blocks.append((values.take(rows, axis=1), places))
            elif values.ndim == 1:
                blocks.append((values.take(rows), places))
            else:  # times and dates as pandas has them
                return super().take(indices, axis=axis)
        return of_blocks(blocks, self.index.take(rows), self.columns)


def _blocks(frame: pd.DataFrame) -> list[Block]:
    mgr: Any = frame._mgr
    return [(block.values, block.mgr_locs.as_array) for block in mgr.blocks]


def _held(mgr: Any, axes: Any) -> TableFrame:
    frame: TableFrame = TableFrame._from_mgr(mgr, axes=axes)  # type: ignore[attr-defined]
    return frame


def table_frame(frame: pd.DataFrame) -> TableFrame:
    """The same frame as one whose rows and columns are chosen quickly; nothing is copied."""
    if isinstance(frame, TableFrame):
        return frame
    shallow: Any = frame.copy(deep=False)
    return _held(shallow._mgr, shallow.axes)


def of_blocks(blocks: Sequence[Block], index: pd.Index, columns: pd.Index) -> TableFrame:
    """The frame of these columns, whose places together are 0 to their number less one."""
    frame: Any = create_dataframe_from_blocks(blocks, index, columns)
    return _held(frame._mgr, frame.axes)
