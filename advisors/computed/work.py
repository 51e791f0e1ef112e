"""The fact that says what every kernel of the steps computes, and what it needs for it at least on its chip."""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd

from advisor_core.api.facts import (
    COMPUTED_COLUMNS,
    COMPUTED_WORK,
    ComputedWork,
    Facts,
    Peaks,
    aggregated,
    fact,
    launches,
    peaks,
    steps,
)
from advisors.computed.kinds import Kinds, kinds_of
from advisors.fusion.chains import fusion_chains
from advisors.fusion.clipping import gradient_clipping
from advisors.fusion.nodes import kernel_nodes
from advisors.layers.layers import layers
from advisors.roofline.bounds import Roofline, roofline
from advisors.roofline.quantities import read_in_steps
from advisors.roofline.work import kernel_work
from advisors.step_kernels import StepKernels, step_kernels

_KEYS: Final = ["kind", "what", "dtype", "block", "pass"]


@fact(
    COMPUTED_WORK,
    needs=(step_kernels, kernel_nodes, kernel_work, fusion_chains, gradient_clipping, steps),
    wants=(layers, roofline, peaks, launches),
    frames={"rows": COMPUTED_COLUMNS},
)
def computed_work(facts: Facts) -> ComputedWork:
    """What the kernels of the steps compute, in words of no vendor, with the bound of this chip for it."""
    kernels = facts[step_kernels]
    kinds = kinds_of(facts)
    rows = _rows(kernels, kinds, facts.get(roofline))
    known = facts.get(peaks)
    return ComputedWork(
        rows=rows,
        samples=read_in_steps(facts),
        peak_flops={} if known is None else _rates(known),
        peak_bytes=None if known is None or not np.isfinite(known.hbm) else known.hbm,
    )


def _rows(kernels: StepKernels, kinds: Kinds, found: Roofline | None) -> pd.DataFrame:
    """The sums of `COMPUTED_COLUMNS`. A bound is that of all kernels of an operator together, no longer than they
    took."""
    unknown = np.full(len(kinds.kind), np.nan)
    computing, memory = (unknown, unknown) if found is None else (found.computing_ns, found.memory_ns)
    # The time of a kernel that was quicker than its bytes allow counts as its bound for them: part of them is cached.
    computing, memory = computing * kinds.part, memory * kinds.part
    known = np.isfinite(computing) & np.isfinite(memory)
    ns = kernels.frame["duration_ns"].to_numpy(dtype=np.int64)
    frame = pd.DataFrame(
        {
            **{name: pd.Categorical(getattr(kinds, "passes" if name == "pass" else name)) for name in _KEYS},
            "call": kinds.call,
            "unit": kinds.unit,
            "calls": kinds.times,
            "kernels": 1,
            "ns": ns,
            "bounded_ns": np.where(known, ns, 0),
            "computing_ns": np.where(known, computing, 0.0),
            "memory_ns": np.where(known, memory, 0.0),
            "flops": np.nan_to_num(kinds.flops * kinds.part),
        }
    )
    sums = {name: (name, "sum") for name in ("kernels", "ns", "bounded_ns", "computing_ns", "memory_ns", "flops")}
    calls = aggregated(frame, [*_KEYS, "unit", "call"], sort=False, calls=("calls", "max"), **sums)
    least = np.maximum(calls["computing_ns"], calls["memory_ns"])
    calls["least_ns"] = np.minimum(least, calls["bounded_ns"])
    sums["least_ns"] = ("least_ns", "sum")
    units = aggregated(calls, [*_KEYS, "unit"], sort=False, calls=("calls", "max"), **sums)
    rows = aggregated(units, _KEYS, sort=True, calls=("calls", "sum"), **sums)
    whole = {name: rows[name].round().astype("int64") for name in ("least_ns", "computing_ns", "memory_ns")}
    texts = {name: rows[name].astype(object) for name in _KEYS}
    told: pd.DataFrame = rows.assign(**texts, **whole)[[column.name for column in COMPUTED_COLUMNS]]
    return told


def _rates(chip: Peaks) -> dict[str, float]:
    """FLOP/s by dtype. FP32 may be shortened to HF32 unless a kernel says that it may not: the peak is then that."""
    rates = {name: float(rate) for name, rate in chip.flops.items() if np.isfinite(rate)}
    return rates | ({"FLOAT": rates["HF32"]} if "HF32" in rates else {})


FACTS = (computed_work,)
