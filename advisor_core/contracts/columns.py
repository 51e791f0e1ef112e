"""The columns of a frame, declared once: what they hold, how reports head them, whether a frame is what was declared.

Columns are looked at as a whole, never row by row: a check costs microseconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import numpy as np
import pandas as pd

from advisor_core.text.base import Text
from advisor_core.text.headings import heading_key

Dtype = Literal["int", "float", "bool", "text"]


@dataclass(frozen=True)
class Column:
    """A column: ``dtype`` is what its values are. Text and floats that are not known are ``None`` and NaN; whole
    numbers and truth values may be so only where the column is ``nullable``. ``zh``: its Chinese heading without the
    unit; '' where it has none. The English heading is the name. ``optional``: a finding leaves it out where it is not
    known, as it then says nothing of what was recorded."""

    name: str
    dtype: Dtype
    unit: str
    meaning: str
    nullable: bool = False
    zh: str = ""
    optional: bool = False

    @property
    def key(self) -> str:
        """The key of its heading."""
        return heading_key(self.name, self.unit)

    @property
    def heading(self) -> Text:
        """The heading in both languages; in Chinese the English one where there is no other."""
        english = self.key.replace("_", " ")
        return Text(en=english, zh=self.zh or english)


def conform(frame: pd.DataFrame, columns: Sequence[Column], owner: str) -> pd.DataFrame:
    """The declared columns of what ``owner`` measured. Raises TypeError that names the owner, the column and a value,
    for a column that is absent or holds something else. Whole floats pass as integers, and None anywhere that a value
    may be unknown, as frames that are put together from rows have them."""
    place = {name: number for number, name in enumerate(frame.columns)}
    absent = [column.name for column in columns if column.name not in place]
    if absent:
        raise TypeError(f"{owner} does not give its declared columns {', '.join(absent)}")
    held = arrays_of(frame)
    for column in columns:
        if not _is_of(held[place[column.name]].dtype, column.dtype):
            _require(held[place[column.name]], column, owner)
    names = tuple(column.name for column in columns)
    # By place: names in an index of text are looked up slowly, and `iloc` takes three times as long as `take`.
    declared = frame.copy(deep=False) if tuple(place) == names else frame.take([place[name] for name in names], axis=1)
    declared.index = pd.RangeIndex(len(frame))
    declared.columns = index_of(names)
    return declared


def arrays_of(frame: pd.DataFrame) -> list[Any]:
    """The values of each column as the frame holds them, an array of numpy or of pandas: to be read and not written, as
    other frames may hold them too. A `Series` of each takes ten times as long."""
    arrays: Any = frame._iter_column_arrays
    return list(arrays())


def array_of(frame: pd.DataFrame, name: str) -> Any:
    """The values of one column, as `arrays_of`. Raises KeyError."""
    array: Any = frame._get_column_array
    return array(frame.columns.get_loc(name))


@cache
def index_of(names: tuple[str, ...]) -> pd.Index:
    """Names of columns as plain objects: conditions look them up again and again."""
    return pd.Index(names, dtype=object)


def fits(value: object, dtype: Dtype) -> bool:
    """Whether one value of a table is of a type, as in `conform`; None and NaN are values that are not known."""
    if value is None or value is pd.NA or (isinstance(value, float | np.floating) and np.isnan(value)):
        return True
    if isinstance(value, bool | np.bool_):
        return dtype == "bool"
    if isinstance(value, int | np.integer):
        return dtype in {"int", "float"}
    if isinstance(value, float | np.floating):
        return dtype == "float" or (dtype == "int" and bool(value == np.floor(value)))
    return dtype == "text" and isinstance(value, str)


def require_exactly(frame: pd.DataFrame, columns: Sequence[Column], owner: str) -> None:
    """Raise TypeError, as `conform`, for a frame that has other columns or other dtypes than these: what a fact gives
    is exactly what it declares."""
    given = {str(name): array.dtype for name, array in zip(frame.columns, arrays_of(frame), strict=True)}
    names = {column.name for column in columns}
    if given.keys() != names:
        lacks, more = sorted(names - given.keys()), sorted(given.keys() - names)
        raise TypeError(f"{owner} gives other columns than it declares: without {lacks}, with {more}")
    for column in columns:
        dtype = given[column.name]
        if len(frame) and _KINDS[column.dtype] != _kind(dtype):
            raise TypeError(f"{owner}.{column.name} is declared {column.dtype}, but has dtype {dtype}")


_KINDS = {"int": "i", "float": "f", "bool": "b", "text": "O"}


def _kind(dtype: object) -> str:
    """The kind of a dtype, as in numpy; everything that holds text is ``O``."""
    if isinstance(dtype, np.dtype):
        return "i" if dtype.kind == "u" else dtype.kind
    return "O" if isinstance(dtype, pd.CategoricalDtype | pd.StringDtype) else ""


def _is_of(dtype: object, declared: Dtype) -> bool:
    """Whether all values of a numpy or pandas dtype are of a declared type."""
    return _kind(dtype) == _KINDS[declared] and (declared != "text" or isinstance(dtype, pd.StringDtype))


def _require(values: Any, column: Column, owner: str) -> None:
    if isinstance(values, pd.Categorical):
        given = values.codes >= 0
        known = np.asarray(values.categories if column.dtype == "text" else values[given])
    else:
        values = np.asarray(values)
        given = ~np.asarray(pd.isna(values))
        known = values if given.all() else values[given]
    if not given.all() and column.dtype in {"int", "bool"} and not column.nullable:
        raise TypeError(f"{owner}.{column.name} is declared {column.dtype} and not nullable, but a value is not known")
    fitting = _fits(known, column.dtype)
    if not fitting.all():
        wrong = known[~fitting][0]
        raise TypeError(f"{owner}.{column.name} is declared {column.dtype}, but is {wrong!r}")


def _fits(known: np.ndarray, dtype: Dtype) -> np.ndarray:
    """A mask of the known values that are of a type."""
    kind = _kind(known.dtype)
    if kind == "O":  # few rows, and one look at all values in C where they are of one type
        inferred = pd.api.types.infer_dtype(known, skipna=True)
        if inferred in _INFERRED[dtype]:
            return np.ones(len(known), dtype=bool)
        return np.array([isinstance(value, _types(dtype)) for value in known.tolist()], dtype=bool)
    if dtype == "int" and kind == "f":
        numbers = known.astype(np.float64)
        return np.asarray(numbers == np.floor(numbers))
    return np.full(len(known), kind == _KINDS[dtype] or (dtype == "float" and kind == "i"))


_INFERRED = {
    "int": {"integer", "empty"},
    "float": {"floating", "integer", "mixed-integer-float", "empty"},
    "bool": {"boolean", "empty"},
    "text": {"string", "empty"},
}


def _types(dtype: Dtype) -> tuple[type, ...]:
    """The types of single values."""
    return {"int": (int, np.integer), "float": (int, float), "bool": (bool,), "text": (str,)}[dtype]
