from __future__ import annotations

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from advisor_core.text.units import (
    UNITS,
    UnitError,
    convert,
    format_exact,
    format_in,
    format_quantity,
    format_raw,
    to_base,
)


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0, "ns", "0 ns"),
        (5, "ns", "5 ns"),
        (950, "ns", "950 ns"),
        (8_870_000, "ns", "8.87 ms"),
        (101_960_000, "ns", "102 ms"),
        (999_900, "ns", "1.00 ms"),  # not "1,000 µs"
        (1_234_000_000_000, "ns", "1,234 s"),
        (-1500, "ns", "-1.50 µs"),
        (8.87, "ms", "8.87 ms"),
        (0.755, "ratio", "75.5 %"),
        (-0.00001, "ratio", "0.0 %"),
        (12.5, "%", "12.5 %"),
        (512, "B", "512 B"),
        (1_500_000, "B", "1.50 MB"),
        (1.6e12, "B/s", "1.60 TB/s"),
        (31, "B/ns", "31.0 GB/s"),
        (1_234_567, "count", "1,234,567"),
        (12.5, "count", "12.5"),
        (3.0, "", "3"),
        (1e-7, "x", "0.000000100 x"),
        (1e-30, "", "0"),
        (1e15, "", "1,000,000,000,000,000"),
        ("MatMul", "", "MatMul"),
    ],
)
def test_quantities_read_well(value: float | str, unit: str, text: str) -> None:
    assert format_quantity(value, unit) == format_quantity(value, unit, "zh") == text


@pytest.mark.parametrize("value", [None, math.nan, math.inf, -math.inf])
def test_what_is_not_known_says_so(value: float | None) -> None:
    assert format_quantity(value, "ns") == format_exact(value, "ns") == format_raw(value) == "unknown"
    assert format_in(value, "ns", "ms", "zh") == "未知"


def test_booleans_are_words() -> None:
    assert [format_quantity(v, "", lang) for v in (True, False) for lang in ("en", "zh")] == ["yes", "是", "no", "否"]


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (50, "us", "50 µs"),
        (0.1, "ratio", "10 %"),
        (0.0005, "ratio", "0.05 %"),
        (12.5, "%", "12.5 %"),
        (1500, "ns", "1,500 ns"),
    ],
)
def test_thresholds_keep_their_unit_and_digits(value: float, unit: str, text: str) -> None:
    assert format_exact(value, unit) == text


def test_conversions_are_exact() -> None:
    assert to_base(50, "us") == 50_000
    assert isinstance(to_base(50, "us"), int)
    assert to_base(0.1, "ms") == 100_000
    assert to_base(7, "%") == 0.07  # 7 * 0.01 is not
    assert to_base(1.5, "MiB") == 1_572_864
    assert to_base(3, "tokens") == 3
    assert convert(2, "ms", "us") == 2000
    with pytest.raises(UnitError, match="ns cannot be shown in MB"):
        convert(1, "ns", "MB")


def test_chosen_units() -> None:
    assert format_in(136_580_000, "ns", "ms") == "137 ms"
    assert format_in(16_384, "B", "KiB") == "16.0 KiB"
    assert format_in(16_384, "B", "bytes") == "16,384 B"
    assert format_raw(1234567) == "1234567"
    assert format_raw(1e-7) == "0.0000001"
    assert format_in(1e305, "GB", "B") == "unknown"  # beyond what a float holds


@given(st.one_of(st.floats(), st.integers(-(2**63), 2**63)), st.sampled_from([*UNITS, "", "tokens"]))
@example(1.797693134862316e306, "ratio")
def test_no_number_is_ever_scientific(value: float, unit: str) -> None:
    for text in (format_quantity(value, unit), format_exact(value, unit), format_raw(value)):
        number = text.split(" ")[0]
        assert number == "unknown" or set(number) <= set("-0123456789,.")
        assert not number.startswith("-0") or float(number.replace(",", ""))
