"""Convert the times and durations of exports to integer nanoseconds.

A point in time such as ``1736408883688177.930`` us needs 61 bits in ns; a float64 has 53, a grid of 0.25 us there.
Points are therefore read as decimals, never as floats. Durations are short enough for a float64.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from advisor_core.contracts.tables import Int64Array

if TYPE_CHECKING:
    import numpy.typing as npt

NO_TIME = -1
"""Stands for a point or a duration that is absent or cannot be one."""

HOUR_US = 3600e6
DAY_US = 24 * HOUR_US
_DAY_NS = int(DAY_US * 1000)
_LATEST_NS = 2**63 - 1 - 2 * _DAY_NS
"""A start after which an end would not fit an int64."""
_LATEST_US = Decimal(2**63 - 1) / 1000


@cache
def point_type() -> pa.DataType:
    """Microseconds with three decimals: the unscaled value is the ns, and the low word of its 128 bits an int64."""
    return pa.decimal128(19, 3)


def exact_ns(text: str) -> int:
    """ns of a point or duration in us, to the nearest ns; ValueError where the text is none that int64 holds."""
    try:
        value = Decimal(text.strip())
        possible = 0 <= value <= _LATEST_US  # also keeps the next line from building a huge integer
    except (ArithmeticError, ValueError):
        raise ValueError(f"not a time in us: {text[:40]!r}") from None
    if not possible:
        raise ValueError(f"not a time between 1970 and 2262: {text[:40]!r}")
    return int((value * 1000).to_integral_value())


def points_ns(values: Iterable[Any]) -> Int64Array:
    """ns of points in us, given as text or numbers; `NO_TIME` for what is none."""
    values = list(values)
    try:
        return decimals_ns(_texts(values).cast(point_type()))
    except (pa.ArrowInvalid, pa.ArrowTypeError, UnicodeEncodeError):
        return np.fromiter(map(_point_or_none, values), np.int64, len(values))


def _texts(values: list[Any]) -> pa.Array:
    """The values as texts. Exporters that write whole microseconds without a point give integers."""
    try:
        return pa.array(values, pa.string())
    except pa.ArrowTypeError:
        return pa.array([str(value) if type(value) is int else value for value in values], pa.string())


def decimals_ns(points: pa.Array) -> Int64Array:
    """ns of an array of `point_type`; `NO_TIME` for null and for what is before 1970 or after 2262."""
    if len(points) == 0:
        return np.empty(0, np.int64)
    words = np.frombuffer(points.buffers()[1], np.int64).reshape(-1, 2)[points.offset : points.offset + len(points)]
    wrong = (words[:, 1] != 0) | (words[:, 0] < 0)
    if points.null_count:
        wrong |= points.is_null().to_numpy(zero_copy_only=False)
    return np.where(wrong, np.int64(NO_TIME), words[:, 0])


def astray(points: Int64Array) -> npt.NDArray[np.bool_]:
    """Mask of the points more than a day from the middle one: no profile is that long, and a single row with an absurd
    start would stretch a step over years."""
    known = points[points != NO_TIME]
    if len(known) == 0:
        return np.zeros(len(points), np.bool_)
    middle = np.partition(known, len(known) // 2)[len(known) // 2]
    far = (np.abs(points - middle) > _DAY_NS) | (points > _LATEST_NS)
    known_far: npt.NDArray[np.bool_] = far & (points != NO_TIME)
    return known_far


def spans_ns(us: npt.NDArray[np.float64], longest_us: float = 2.0**52) -> Int64Array:
    """ns of durations in us, to the nearest ns; `NO_TIME` for NaN, negative ones and ones above ``longest_us``."""
    possible = (us >= 0) & (us <= longest_us)
    return np.where(possible, np.rint(np.where(possible, us, 0.0) * 1000), NO_TIME).astype(np.int64)


def numbers(values: Sequence[Any]) -> npt.NDArray[np.float64]:
    """float64 of numbers or texts of numbers; NaN for what is none."""
    try:
        return np.fromiter(values, np.float64, len(values))
    except (TypeError, ValueError, OverflowError):
        return np.fromiter(map(_number_or_nan, values), np.float64, len(values))


def _point_or_none(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return NO_TIME
    try:
        return exact_ns(str(value))
    except ValueError:
        return NO_TIME


def _number_or_nan(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return float("nan")
