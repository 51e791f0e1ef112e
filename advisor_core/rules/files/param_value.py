"""The value that an option or a rule file gives a parameter, in the kind and the unit of the parameter."""

from __future__ import annotations

import math
import re
from fractions import Fraction

from advisor_core.contracts.problems import nearest
from advisor_core.rules.language.scope import kind_of
from advisor_core.rules.model import Param, ParamValue
from advisor_core.text.base import Scalar
from advisor_core.text.units import UNITS, base_of

_KINDS = {"number": "a number", "text": "a word", "bool": "true or false"}
_BOOLEANS = {"true": True, "false": False}
_NUMBER = re.compile(r"(?P<number>[-+]?(\d{1,15}\.?\d*|\.\d+)([eE][-+]?\d{1,2})?)\s*(?P<unit>[^\W\d][\w/]*|%)?")


class ParamValueError(ValueError):
    """A value does not fit a parameter. ``hint``: what may have been meant."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


def param_value(value: Scalar, param: Param) -> ParamValue:
    """The value in the kind of the parameter. Text of a command line may be a number with a unit (``30%``, ``2 ms``),
    which is converted into that of the parameter. Raises `ParamValueError`."""
    wanted = kind_of(param.value)
    if isinstance(value, str) and wanted == "number" and (found := _NUMBER.fullmatch(value.strip())):
        return _number(found["number"], found["unit"], param.unit)
    if isinstance(value, str) and wanted == "bool":
        converted: Scalar = _BOOLEANS.get(value.lower())
    else:
        converted = value
    if converted is None or kind_of(converted) != wanted or not _is_finite(converted):
        raise ParamValueError(f"{value!r} is not {_KINDS[wanted]}")
    return converted


def _number(digits: str, unit: str | None, wanted: str) -> int | float:
    if unit is None:
        return int(digits) if re.fullmatch(r"[-+]?\d+", digits) else float(digits)
    (base, factor), (wanted_base, wanted_factor) = base_of(unit), base_of(wanted)
    if unit not in UNITS and unit != wanted:
        raise ParamValueError(f"unknown unit {unit!r}", nearest(unit, UNITS))
    if base != wanted_base:
        raise ParamValueError(f"'{digits} {unit}' is in {unit}, but the parameter is in {wanted or 'a plain number'}")
    exact = Fraction(digits) * factor / wanted_factor
    return int(exact) if exact.denominator == 1 else float(exact)


def _is_finite(value: ParamValue) -> bool:
    return not isinstance(value, int | float) or math.isfinite(value)
