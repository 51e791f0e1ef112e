"""Utilisation of the busiest pipe of each kernel."""

from __future__ import annotations

import numpy as np
import pandas as pd

from advisor_core.contracts.columns import Column
from advisor_core.contracts.facts import Facts, fact
from advisor_core.contracts.frames import narrowed
from advisor_core.contracts.missing import NotApplicable, Unavailable
from advisor_core.contracts.profile import PROFILE
from advisor_core.contracts.tables import KERNELS
from advisor_core.text.messages import message

PIPES = (
    "aic_mac",
    "aic_scalar",
    "aic_mte1",
    "aic_mte2",
    "aic_fixpipe",
    "aiv_vec",
    "aiv_scalar",
    "aiv_mte2",
    "aiv_mte3",
)
"""mac: cube; vec: vector; mte1: L1 to L0; mte2: memory to L1 or UB; mte3: UB to memory; fixpipe: L0C to memory."""


COLUMNS = (
    *(Column(pipe, "float", "ratio", f"part of the duration that {pipe} is busy, NaN not recorded") for pipe in PIPES),
    Column("bound", "text", "", "the busiest pipe, '' none"),
    Column("bound_ratio", "float", "ratio", "part of the duration that this pipe is busy"),
)


@fact("pipes", needs=(KERNELS, PROFILE), columns=COLUMNS)
def pipes(facts: Facts) -> pd.DataFrame:
    """Share of each kernel's duration that each pipe was busy; one row per row of ``kernels``.

    The ratios that the exporter writes divide by the time of the core (error 0.1 % against 7-12 % when dividing by the
    duration, measured on two real exports); here the duration is the base, so that start and end of a kernel count
    as not used, which is what its user waits for.
    """
    kernels = facts[KERNELS]
    if not facts[PROFILE].vocabulary.core_counters:
        raise NotApplicable(message("pipes.never"))
    times = narrowed(kernels, [f"{pipe}_ns" for pipe in PIPES]).to_numpy(dtype=np.float64)
    measured = np.nansum(times, axis=1) > 0
    if not measured.any():
        raise Unavailable(message("pipes.none"), message("pipes.collect"), ("level1", "pipes"))
    duration = kernels["duration_ns"].to_numpy(dtype=np.float64)
    ratios = np.full_like(times, np.nan)
    usable = measured & (duration > 0)
    ratios[usable] = np.minimum(times[usable] / duration[usable, None], 1.0)
    frame = pd.DataFrame(ratios, columns=list(PIPES))
    best = np.where(usable, np.nan_to_num(ratios, nan=-1.0).argmax(axis=1), -1)
    names = pd.Index([*PIPES, ""])
    frame["bound"] = pd.Categorical.from_codes(np.where(best >= 0, best, len(PIPES)), categories=names)
    frame["bound_ratio"] = np.where(usable, np.nanmax(np.where(usable[:, None], ratios, -1.0), axis=1), np.nan)
    return frame
