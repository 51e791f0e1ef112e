"""Cores and clock of the chip: from the record, or back from the cycles that the exporter's own formula gives."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor_core.contracts.missing import Unavailable
from advisor_core.facts.device.chip import Chip, chip
from advisor_core.testing import fact_store, profile, table


def counted(cores: int, mhz: int, time_us: float, blocks: int, *, tail_us: float = 3) -> dict[str, Any]:
    """A cube kernel as the exporter writes it. Its blocks go round the cores: the cycles of all of them add up, and
    the time is cycles / clock / blocks x rounds, rounded to a nanosecond."""
    rounds = -(-blocks // cores)
    cycles = round(time_us / rounds * mhz * blocks)
    duration = time_us + tail_us
    return {
        "type": "MatMulV3",
        "core": "AI_CORE",
        "duration_us": duration,
        "aic_us": cycles / mhz / blocks * rounds,
        "aic_cycles": float(cycles),
        "block_dim": blocks,
        "cube_utilization": round(cycles / (mhz * cores * duration), 5),
    }


def chip_of(*rows: dict[str, Any], **about: Any) -> Chip:
    found = fact_store(about=profile(**about), kernels=table("kernels", rows))[chip]
    assert isinstance(found, Chip)
    return found


VECTOR = {"type": "Add", "core": "AI_VECTOR_CORE", "duration_us": 10}


def test_cycles_tell_cores_and_clock() -> None:
    found = chip_of(counted(20, 1650, 100, 20), counted(20, 1650, 300, 16), VECTOR)
    assert (found.cube_cores, found.vector_cores) == (20, 40)
    assert found.mhz == pytest.approx(1650, rel=1e-4) and found.basis == "cycle counters"


def test_one_core_for_both_has_as_many_vector_cores() -> None:
    assert chip_of(counted(32, 1000, 100, 32)).vector_cores == 32


def test_more_blocks_than_cores_do_not_lower_the_clock() -> None:
    """Most kernels here have several rounds: cycles over time and blocks is 1/2 and 1/4 of the clock for them."""
    rows = [counted(24, 1800, 200, blocks) for blocks in (48, 96, 96, 40, 24)]
    found = chip_of(*rows, VECTOR)
    assert found.mhz == pytest.approx(1800, rel=1e-4) and found.cube_cores == 24


@given(
    st.sampled_from([(8, 1060), (20, 1650), (24, 1800), (32, 1000)]),
    st.lists(st.tuples(st.integers(25, 5_000), st.integers(1, 300)), min_size=1, max_size=12),
    st.integers(25, 5_000),
)
def test_any_mix_of_kernels_tells_the_chip(chip: tuple[int, int], kernels: list[tuple[int, int]], time_us: int) -> None:
    """As long as the fastest tenth has at least one kernel of one round; one that uses all cores tells their number."""
    cores, mhz = chip
    rows = [counted(cores, mhz, time, 1 + blocks % cores) for time, blocks in kernels]
    found = chip_of(*rows, counted(cores, mhz, time_us, cores), counted(cores, mhz, time_us, cores))
    assert found.mhz == pytest.approx(mhz, rel=1e-3) and found.cube_cores == cores


def test_the_record_goes_before_the_cycles() -> None:
    recorded = {"ai_core_num": 24, "aiv_num": 48, "aic_frequency": 1850}
    found = chip_of(counted(20, 1650, 100, 20), chip=recorded)
    assert (found.cube_cores, found.vector_cores, found.basis) == (24, 48, "info.json")
    assert found.mhz == pytest.approx(1650, rel=1e-4)
    assert chip_of(VECTOR, chip=recorded).mhz == 1850


@pytest.mark.parametrize(
    "row",
    [
        VECTOR,
        {**counted(24, 1800, 19, 24)},  # too short to count
        {**counted(24, 1800, 100, 24), "cube_utilization": float("nan")},
        {**counted(24, 1800, 100, 24), "aic_cycles": float("nan")},
    ],
)
def test_without_cycles_the_chip_is_unknown(row: dict[str, Any]) -> None:
    with pytest.raises(Unavailable) as reason:
        chip_of(row)
    assert reason.value.collect is not None
