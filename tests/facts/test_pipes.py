"""How busy the pipes are: against a plain reference, kernel by kernel."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor_core.contracts.missing import Unavailable
from advisor_core.facts.device.pipes import PIPES, pipes
from advisor_core.testing import fact_store, table


def kernels(*rows: dict[str, Any]) -> Any:
    return fact_store(kernels=table("kernels", [{"type": "Add", "core": "AI_VECTOR_CORE", **row} for row in rows]))


def test_the_duration_is_the_base_not_the_time_of_the_core() -> None:
    """80 us of 100 on the vector unit are 80 %, though the core itself ran 90 us (89 % in the export)."""
    frame = kernels({"duration_us": 100, "aiv_us": 90, "aiv_vec_us": 80, "aiv_mte2_us": 20})[pipes]
    assert frame["aiv_vec"].tolist() == [0.8] and frame["aiv_mte2"].tolist() == [0.2]
    assert frame["bound"].tolist() == ["aiv_vec"] and frame["bound_ratio"].tolist() == [0.8]
    assert frame["aic_mac"].isna().all()


def test_more_rounds_than_one_are_no_more_than_the_duration() -> None:
    """The exporter multiplies by the rounds of the cores: MaxPoolGrad of a real export has 101.669 us in 100.742."""
    frame = kernels({"duration_us": 100.742, "aiv_scalar_us": 101.669})[pipes]
    assert frame["bound_ratio"].tolist() == [1.0]


def test_kernels_without_times_have_no_bound() -> None:
    frame = kernels(
        {"duration_us": 100, "aiv_vec_us": 50},
        {"duration_us": 100},
        {"duration_us": 100, **dict.fromkeys((f"{pipe}_us" for pipe in PIPES), 0)},
        {"duration_us": 0, "aiv_vec_us": 50},
    )[pipes]
    assert frame["bound"].tolist() == ["aiv_vec", "", "", ""]
    assert frame["bound_ratio"].isna().tolist() == [False, True, True, True]


@pytest.mark.parametrize("times", [{}, {"aiv_us": 90.0, "aic_us": 0.0}, {"aiv_vec_us": 0.0}])
def test_without_pipe_utilisation_there_is_none(times: dict[str, float]) -> None:
    with pytest.raises(Unavailable) as reason:
        kernels({"duration_us": 100, **times})[pipes]
    assert reason.value.collect is not None and "PipeUtilization" in reason.value.collect.en


TIME = st.one_of(st.none(), st.integers(0, 120))


@given(st.lists(st.tuples(st.integers(0, 100), st.lists(TIME, min_size=9, max_size=9)), min_size=1, max_size=6))
def test_agrees_with_a_plain_reference(rows: list[tuple[int, list[int | None]]]) -> None:
    given_rows = [
        {"duration_us": duration, **{f"{pipe}_us": t for pipe, t in zip(PIPES, times, strict=True) if t is not None}}
        for duration, times in rows
    ]
    if not any(time for _, times in rows for time in times):
        with pytest.raises(Unavailable):
            kernels(*given_rows)[pipes]
        return
    frame = kernels(*given_rows)[pipes]
    for number, (duration, times) in enumerate(rows):
        known = {
            pipe: min(time / duration, 1)
            for pipe, time in zip(PIPES, times, strict=True)
            if time is not None and duration
        }
        if not any(times) or not duration:
            assert frame["bound"][number] == "" and math.isnan(frame["bound_ratio"][number])
            continue
        assert frame["bound_ratio"][number] == pytest.approx(max(known.values()))
        assert known[frame["bound"][number]] == max(known.values())
        for pipe in PIPES:
            expected = known.get(pipe)
            assert (
                math.isnan(frame[pipe][number]) if expected is None else frame[pipe][number] == pytest.approx(expected)
            )
