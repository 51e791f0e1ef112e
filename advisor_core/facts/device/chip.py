"""Number of cores of the chip, and the clock at which they ran."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from advisor_core.contracts.facts import Facts, fact
from advisor_core.contracts.missing import NotApplicable, Unavailable
from advisor_core.contracts.profile import PROFILE
from advisor_core.contracts.tables import KERNELS
from advisor_core.names.model import Generation
from advisor_core.text.messages import message

_ENOUGH_CYCLES_NS = 20_000
"""Shorter kernels say little about the clock: their cycle counters include start and end."""

_ONE_ROUND = 0.75
"""Blocks that go two rounds seem to run at half the clock: half way between that and the clock."""


@dataclass(frozen=True)
class Chip:
    """``cube_cores`` and ``vector_cores``; ``mhz``: the clock measured during the profile; ``basis``: how we know."""

    cube_cores: int
    vector_cores: int
    mhz: float
    basis: str

    @property
    def generations(self) -> tuple[Generation, ...]:
        """The generations that have such a number of cores (platform_config/*.ini of CANN); empty where none does.

        Atlas A2 and A3 have 20 to 25 cube cores and twice as many vector cores per die, so that a profile does not tell
        them apart; Ascend 950 has 28 to 36. On 910A (30 or 32 cores) and 310P (8 or 10) a core computes both."""
        if self.vector_cores == 2 * self.cube_cores:
            known: dict[range, tuple[Generation, ...]] = {range(20, 26): ("A2", "A3"), range(28, 37): ("950",)}
        else:
            known = {range(30, 33): ("910A",), range(8, 11): ("310P",)}
        return next((names for cores, names in known.items() if self.cube_cores in cores), ())


@fact("chip", needs=(KERNELS, PROFILE), shared=True)
def chip(facts: Facts) -> Chip:
    """Cores and clock, from the recorded device info or else from the cycle counters of cube kernels.

    clock [MHz] = aic_cycles / (aic time [us] x blocks), on kernels that run on cube cores only, where there are no
    more blocks than cores: the exporter multiplies the time by the rounds that the cores go, so that more blocks seem
    to run at a fraction of the clock (256 vector blocks on 48 cores of a real export: 300 of 1800 MHz). The upper end
    of what the kernels say is therefore the clock.
    cores = aic_cycles / (clock x duration x cube_utilization). Both checked on real exports: 24 x 1800 and 20 x 1650.
    A DB export has no cube_utilization: there the largest launches tell the cores, if they can.
    """
    kernels, recorded = facts[KERNELS], facts[PROFILE].chip
    if not facts[PROFILE].vocabulary.core_counters:
        raise NotApplicable(message("pipes.never"))
    cubes = kernels[
        (kernels["core"] == "AI_CORE") & (kernels["aic_ns"] > _ENOUGH_CYCLES_NS) & (kernels["block_dim"] > 0)
    ]
    clocks = (cubes["aic_cycles"] / (cubes["aic_ns"] / 1e3 * cubes["block_dim"])).dropna()
    mhz = float(np.quantile(clocks, 0.9, method="higher")) if len(clocks) else float("nan")
    cubes_recorded, vectors_recorded = recorded.get("ai_core_num"), recorded.get("aiv_num")
    if cubes_recorded is not None and vectors_recorded is not None:
        clock = mhz if np.isfinite(mhz) else float(recorded.get("aic_frequency") or "nan")
        return Chip(int(cubes_recorded), int(vectors_recorded), clock, "info.json")
    occupied = cubes[cubes["cube_utilization"] > 0.1]
    shares = occupied["aic_cycles"] / (mhz * occupied["duration_ns"] / 1e3 * occupied["cube_utilization"])
    cores = float(shares.median())
    basis = "cycle counters"
    if not np.isfinite(cores) or cores < 0.5:
        cores, basis = _largest_launch(kernels, mhz), "largest launches"
    if not cores:
        raise Unavailable(message("chip.unknown"), message("pipes.collect"), ("level1", "pipes"))
    count = round(cores)
    return Chip(count, count * _vector_cores_per_cube(kernels), mhz, basis)


def _largest_launch(kernels: pd.DataFrame, mhz: float) -> float:
    """Cube cores where no occupancy is recorded (DB exports): the most blocks that went in one round, at the full
    clock. 0 unless the cube and the vector side, counted apart, agree: a few small kernels do not fill the chip."""
    most = {}
    for core, side in (("AI_CORE", "aic"), ("AI_VECTOR_CORE", "aiv")):
        own = kernels[(kernels["core"] == core) & (kernels[f"{side}_ns"] > _ENOUGH_CYCLES_NS)]
        clocks = own[f"{side}_cycles"] / (own[f"{side}_ns"] / 1e3 * own["block_dim"])
        most[side] = own.loc[clocks > _ONE_ROUND * mhz, "block_dim"].max()
    agree = most["aiv"] == most["aic"] * _vector_cores_per_cube(kernels)
    return float(most["aic"]) if agree else 0.0


def _vector_cores_per_cube(kernels: pd.DataFrame) -> int:
    """2 where vector cores are separate from cube cores (A2, A3, 950), 1 where one core has both (910A)."""
    return 2 if (kernels["core"].isin(["AI_VECTOR_CORE", "MIX_AIV", "MIX_AIC"])).any() else 1
