"""Units: conversions, and how a number is written in a report.

One table serves conditions (``50 us`` against a column in ns), texts and reports. Only the standard library: reports
and the rule checker import it.
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TypeGuard

from advisor_core.text.base import Scalar

Number = int | float


class UnitError(ValueError):
    """A quantity was asked for in a unit of another kind."""


@dataclass(frozen=True)
class Unit:
    """``factor`` of this unit make one ``base``; ``label`` is what follows the number."""

    base: str
    factor: Fraction
    label: str


def _units(base: str, **factors: tuple[int, str]) -> dict[str, Unit]:
    return {name: Unit(base, Fraction(factor), label) for name, (factor, label) in factors.items()}


_PERCENT = Unit("ratio", Fraction(1, 100), "%")

UNITS: Mapping[str, Unit] = {
    **_units("ns", ns=(1, "ns"), us=(10**3, "µs"), ms=(10**6, "ms"), s=(10**9, "s")),
    **_units("B", B=(1, "B"), kB=(10**3, "kB"), KB=(10**3, "kB"), MB=(10**6, "MB"), GB=(10**9, "GB")),
    **_units("B", bytes=(1, "B"), KiB=(2**10, "KiB"), MiB=(2**20, "MiB"), GiB=(2**30, "GiB")),
    **_units("B/s", **{"B/s": (1, "B/s"), "MB/s": (10**6, "MB/s"), "GB/s": (10**9, "GB/s"), "TB/s": (10**12, "TB/s")}),
    **_units("B/s", **{"B/ns": (10**9, "GB/s")}),
    **_units("Hz", Hz=(1, "Hz"), MHz=(10**6, "MHz"), GHz=(10**9, "GHz")),
    **_units("count", count=(1, "")),
    **_units("ratio", ratio=(1, "")),
    "percent": _PERCENT,
    "%": _PERCENT,
    "\u00b5s": Unit("ns", Fraction(1000), "µs"),
    "\u03bcs": Unit("ns", Fraction(1000), "µs"),
}
"""The known units; any other unit is its own base, converts into nothing, and is written behind the number."""

_READABLE: Mapping[str, tuple[str, ...]] = {
    "ns": ("ns", "us", "ms", "s"),
    "B": ("B", "kB", "MB", "GB"),
    "B/s": ("B/s", "MB/s", "GB/s", "TB/s"),
    "Hz": ("Hz", "MHz", "GHz"),
}
"""The units in which a number of each base unit may be shown, smallest first."""

_BINARY = frozenset({"KiB", "MiB", "GiB"})

_WHOLE = frozenset({"ns", "B", "count"})
"""Base units whose values are whole numbers wherever they come out whole."""

_WORDS: Mapping[str, tuple[str, str]] = {
    "unknown": ("unknown", "未知"),
    "true": ("yes", "是"),
    "false": ("no", "否"),
    "empty": ("(empty)", "（空）"),
}


def word(name: str, lang: str) -> str:
    """``unknown``, ``true``, ``false`` or ``empty`` as the reader's word."""
    return _WORDS[name][lang == "zh"]


def base_of(unit: str) -> tuple[str, Fraction]:
    """The unit that ``unit`` is converted to, and how many of it make one; an unlisted unit is its own base."""
    known = UNITS.get(unit)
    return (known.base, known.factor) if known else (unit, Fraction(1))


def to_base(value: Number, unit: str) -> Number:
    """``value`` in the base unit, exactly: ``to_base(50, "us")`` is ``50000``, ``to_base(7, "%")`` is ``0.07``."""
    base, factor = base_of(unit)
    if factor == 1:
        return value
    exact = Fraction(str(value)) * factor
    return int(exact) if base in _WHOLE and exact.denominator == 1 else float(exact)


def convert(value: Number, unit: str, target: str) -> float:
    """``value`` of ``unit`` in ``target``. Raises `UnitError` where that has no meaning."""
    (base, factor), (target_base, target_factor) = base_of(unit), base_of(target)
    if base != target_base:
        raise UnitError(f"{unit or 'a plain number'} cannot be shown in {target}")
    return value if factor == target_factor else float(value) * float(factor / target_factor)


@functools.lru_cache(maxsize=1 << 14, typed=True)
def format_quantity(value: Scalar, unit: str, lang: str = "en") -> str:
    """The value as a reader wants it: ``8.87 ms``, ``75.0 %``, ``1,234``, ``unknown``. Text comes back as it is.

    Times, sizes and rates move to the unit that keeps the number short, with three significant digits. Sizes in powers
    of two stay in their unit: those of device memory are read beside files and chips that count so.
    """
    if not _is_number(value):
        return _format_other(value, lang)
    if unit in _BINARY:
        return format_in(value, unit, unit, lang)
    base, factor = base_of(unit)
    if base == "ratio":
        return format_in(value, unit, "percent", lang)
    if base not in _READABLE:
        return _labelled(_plain_number(value), unit)
    amount = float(value) * float(factor)
    return _labelled(*_readable(amount, base)) if math.isfinite(amount) else _labelled(_plain_number(value), unit)


def format_in(value: Scalar, unit: str, target: str, lang: str = "en") -> str:
    """The value in exactly the unit ``target``. Raises `UnitError` where that has no meaning."""
    if not _is_number(value):
        return _format_other(value, lang)
    is_ratio = base_of(target)[0] == "ratio"
    amount = convert(value, unit, "percent" if is_ratio else target)
    if not math.isfinite(amount):
        return word("unknown", lang)
    if is_ratio:
        return f"{_fixed(amount, 1)} %"
    if target in {"count", "bytes", "B"}:
        return _labelled(_fixed(amount, 0), target)
    return _labelled(_significant(amount), target)


def format_exact(value: Scalar, unit: str, lang: str = "en") -> str:
    """A chosen number, such as a threshold: in the unit it was written in (a ratio: in percent), with all its digits
    and no more."""
    if not _is_number(value):
        return _format_other(value, lang)
    if base_of(unit)[0] == "ratio":
        percent = Fraction(str(value)) * (base_of(unit)[1] * 100)
        if abs(percent) > sys.float_info.max:
            return word("unknown", lang)
        return f"{_shortest(float(percent))} %"
    return _labelled(_shortest(value), unit)


def format_raw(value: Scalar, lang: str = "en") -> str:
    """The bare value: no unit, no separators, never scientific."""
    if not _is_number(value):
        return _format_other(value, lang)
    return _shortest(value).replace(",", "")


def _is_number(value: Scalar) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _format_other(value: Scalar, lang: str) -> str:
    """Text as it is, booleans and what is not known as words (NaN and infinities are not known)."""
    if isinstance(value, bool):
        return word("true" if value else "false", lang)
    return value if isinstance(value, str) else word("unknown", lang)


def _readable(amount: float, base: str) -> tuple[str, str]:
    names = _READABLE[base]
    chosen, divisor = names[0], _number_of(names[0])
    # Compared after rounding, so that 999.9 us reads "1.00 ms" and not "1,000 µs".
    rounded = abs(float(f"{amount:.2e}"))
    for name in names[1:]:
        if rounded >= (factor := _number_of(name)):
            chosen, divisor = name, factor
    amount /= divisor
    whole = chosen == names[0] and amount == int(amount)
    return (_fixed(amount, 0) if whole else _significant(amount)), chosen


@functools.cache
def _number_of(unit: str) -> float:
    """The number of its base that a unit is; fractions take long to become numbers."""
    return float(UNITS[unit].factor)


def _plain_number(value: Number) -> str:
    if isinstance(value, int) or (value == int(value) and abs(value) < 1e15):
        return _fixed(value, 0) if isinstance(value, float) else f"{value:,}"
    return _significant(value)


def _significant(value: float, digits: int = 3) -> str:
    """Three digits, or all digits before the point; never scientific."""
    if value == 0:
        return "0"
    exponent = int(f"{value:.{digits - 1}e}".split("e")[1])
    decimals = digits - 1 - exponent
    return _fixed(value, max(0, decimals)) if decimals <= 9 else "0"


def _fixed(value: float, decimals: int) -> str:
    text = f"{value:,.{decimals}f}"
    return text.removeprefix("-") if float(text.replace(",", "")) == 0 else text


def _shortest(value: Number) -> str:
    """All digits that tell the value from its neighbours, in groups of three."""
    if isinstance(value, int):
        return f"{value:,}"
    # Adding zero makes a plain zero of a negative one.
    text = f"{Decimal(repr(float(value) + 0.0)):,f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _labelled(number: str, unit: str) -> str:
    known = UNITS.get(unit)
    label = known.label if known else unit
    return f"{number} {label}" if label else number


def microseconds(ns: int) -> str:
    """A time in ns as the text of a decimal in µs, as trace events have it.

    >>> microseconds(1736408883694756090), microseconds(7), microseconds(-1500)
    ('1736408883694756.090', '0.007', '-1.500')
    """
    whole, rest = divmod(abs(ns), 1000)
    return f"{'-' if ns < 0 else ''}{whole}.{rest:03d}"
