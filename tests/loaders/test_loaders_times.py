from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor_core.loaders.readers import times

NS = st.integers(min_value=0, max_value=2**63 - 1)


@given(NS)
def test_points_are_exact_to_the_nanosecond(ns: int) -> None:
    text = f"{ns // 1000}.{ns % 1000:03d}"
    assert times.exact_ns(text) == ns
    assert times.points_ns([text]).tolist() == [ns]


@given(NS.map(lambda ns: ns - ns % 1000))
def test_points_without_a_fraction(ns: int) -> None:
    assert times.points_ns([str(ns // 1000), ns // 1000]).tolist() == [ns, ns]


@given(st.decimals(min_value=0, max_value=10**15, places=6))
def test_digits_below_a_nanosecond_are_rounded(us: Decimal) -> None:
    expected = int((us * 1000).to_integral_value(ROUND_HALF_EVEN))
    assert times.points_ns([str(us)]).tolist() == [expected]


def test_the_example_that_a_float_gets_wrong() -> None:
    assert times.exact_ns("1736408883688177.930\t") == 1736408883688177930
    assert times.points_ns(["1736408883688177.930", "1736408883688177.931"]).tolist() == [
        1736408883688177930,
        1736408883688177931,
    ]


@pytest.mark.parametrize("text", ["", "abc", "-1", "NaN", "Infinity", "99999999999999999999", "1e400", "1e999999999"])
def test_what_is_no_point(text: str) -> None:
    with pytest.raises(ValueError, match="not a time"):
        times.exact_ns(text)
    assert times.points_ns([text, "5"]).tolist() == [times.NO_TIME, 5000]


def test_points_of_other_types_are_none() -> None:
    assert times.points_ns([None, True, [1], "1.5"]).tolist() == [-1, -1, -1, 1500]


def test_sliced_decimals_with_nulls() -> None:
    points = pa.array(["1.000", None, "2.500", "9999999999999999.999"]).cast(times.point_type())
    assert times.decimals_ns(points).tolist() == [1000, -1, 2500, -1]
    assert times.decimals_ns(points[2:3]).tolist() == [2500]
    assert times.decimals_ns(points[:0]).tolist() == []


def test_spans() -> None:
    us = np.array([0.60003125, 8873.756000000001, 0.0, -0.001, np.nan, np.inf, 4e9])
    assert times.spans_ns(us, times.HOUR_US).tolist() == [600, 8873756, 0, -1, -1, -1, -1]


@given(st.integers(min_value=0, max_value=3_600_000_000_000))
def test_spans_of_three_decimals_are_exact(ns: int) -> None:
    assert times.spans_ns(np.array([float(f"{ns // 1000}.{ns % 1000:03d}")])).tolist() == [ns]


def test_whole_microseconds_among_texts_are_read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Traces of older PyTorch write points as integers; one by one they took a tenth of the load."""
    monkeypatch.setattr(times, "_point_or_none", pytest.fail)
    assert times.points_ns([1623143089861123, "5.25", 7, None]).tolist() == [1623143089861123000, 5250, 7000, -1]
