"""Peak rates of the chip of a profile: those of the model that fits what was recorded, at the measured clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from advisor_core.contracts.facts import Facts, fact
from advisor_core.contracts.missing import Unavailable
from advisor_core.contracts.profile import PROFILE, Profile
from advisor_core.contracts.tables import KERNELS
from advisor_core.facts.device.chip import Chip, chip
from advisor_core.facts.device.shapes import moved_bytes
from advisor_core.text.messages import message
from advisor_core.vocabulary.chips import ChipModel

_SAME_CLOCK = 0.03
"""Clocks of one model differ by less: nominal clocks of models with equal cores lie 3 % apart or more (chips.yaml)."""

_SAME_MEMORY = 0.1
"""A device records a little less than its nominal memory: 79.2 of 80 GiB, 31.7 of 32 in the recordings."""

_BULK_BYTES = 500_000_000
"""More than twice the largest cache: what moves as much says what the memory gives, not the cache."""

_NEAR_PEAK = (0.6, 1.05)
"""Of the bandwidth of the memory, what the quickest long kernels reach: 0.75 to 0.99 on two chips of recordings
(docs/sources.md#memory-bandwidth); a kernel at 0.8 of one memory reaches 0.4 of one that is twice as fast."""

GIB = 1 << 30


@dataclass(frozen=True)
class Peaks:
    """``models``: the models that fit, by name; none where only the generation of the chip is known. ``cores``,
    ``vector_cores``, ``mhz``: as measured or recorded, else as the model has them. ``flops``: FLOP/s of the matrix unit
    by dtype; ``vector_flops``: of the vector unit. ``reached``: the part of ``flops`` that the best of many large
    products reached on chips of this model, by dtype.
    ``hbm``: B/s of the device memory; ``l2_bytes``, ``l2_read`` and ``l2_write`` (B/s): of the last cache; NaN unknown.
    ``links``: B/s of a link in one direction. ``basis``: how cores and clock are known: ``info.json``, ``cycle
    counters``, ``largest launches`` or ``device``, as recorded with the nominal clock. ``hbm_inferred``: the models
    have unlike memories, and the quickest long kernels told which it is."""

    models: tuple[str, ...]
    cores: int
    vector_cores: int
    mhz: float
    basis: str
    flops: Mapping[str, float] = field(default_factory=dict)
    vector_flops: Mapping[str, float] = field(default_factory=dict)
    hbm: float = float("nan")
    l2_bytes: float = float("nan")
    l2_read: float = float("nan")
    l2_write: float = float("nan")
    links: Mapping[str, float] = field(default_factory=dict)
    hbm_inferred: bool = False
    reached: Mapping[str, float] = field(default_factory=dict)

    def of(self, dtype: str) -> float:
        """FLOP/s of the matrix unit on operands of this type; NaN unknown."""
        return self.flops.get(dtype, float("nan"))


@fact("peaks", needs=(PROFILE,), wants=(chip, KERNELS), shared=True)
def peaks(facts: Facts) -> Peaks:
    """Peak rates of the chip, from the models that plugins register (``chips.yaml``).

    Cores and clock as measured tell the model on Ascend; multiprocessors, compute capability and size of the memory on
    GPUs. Where several models fit, what they agree in holds. Of unlike memories the one is taken whose bandwidth the
    quickest long kernels come near; without such kernels it is unknown, and nothing is guessed. A chip of a known
    generation with another number of cores has the rates of its cores, and an unknown memory.
    """
    profile, found = facts[PROFILE], facts.get(chip)
    told = True
    if found is not None:
        fitting = _of_cores(profile.vocabulary.chips, found)
        told = bool(fitting)
        fitting = fitting or _of_generation(profile.vocabulary.chips, found)
        mhz, basis = found.mhz, found.basis
    else:
        fitting, basis = _of_device(profile), "device"
        mhz = float("nan")
    if not fitting:
        raise Unavailable(message("chip.unknown"), message("pipes.collect"), ("level1", "pipes"))
    if not np.isfinite(mhz):
        mhz = _agreed([model.mhz for model in fitting])
    cores = found.cube_cores if found is not None else fitting[0].cores
    vectors = found.vector_cores if found is not None else fitting[0].vector_cores or cores
    memories = {model.hbm_gbs * 1e9 for model in fitting if model.hbm_gbs and told}
    hbm = memories.pop() if len(memories) == 1 else _by_kernels(memories, facts)
    per_core, per_vector = cores * mhz * 1e6, vectors * mhz * 1e6
    dtypes, vector_dtypes, measured = (
        sorted(set.intersection(*map(set, told_of)))
        for told_of in zip(*((model.flops, model.vector_flops, model.reached) for model in fitting), strict=True)
    )
    return Peaks(
        models=tuple(model.name for model in fitting if told),
        cores=cores,
        vector_cores=vectors,
        mhz=mhz,
        basis=basis,
        flops={name: max(model.flops[name] for model in fitting) * per_core for name in dtypes},
        vector_flops={name: max(model.vector_flops[name] for model in fitting) * per_vector for name in vector_dtypes},
        hbm=hbm,
        # The larger cache holds more: a bound that is too low is no error, one that is too high is.
        l2_bytes=max(model.l2_mib for model in fitting) * (1 << 20) or float("nan"),
        l2_read=_agreed([model.l2_read for model in fitting]) * per_core,
        l2_write=_agreed([model.l2_write for model in fitting]) * per_core,
        links={name: value * 1e9 for name, value in fitting[0].links.items()},
        hbm_inferred=len({model.hbm_gbs for model in fitting if model.hbm_gbs}) > 1,
        reached={name: min(model.reached[name] for model in fitting) for name in measured},
    )


def _agreed(values: Sequence[float]) -> float:
    """The value that all models have; NaN where they differ or do not know it."""
    return values[0] if values[0] and len(set(values)) == 1 else float("nan")


def _of_cores(models: Sequence[ChipModel], found: Chip) -> list[ChipModel]:
    """The models with these cores: of those the ones with this clock, if any has it."""
    alike = [m for m in models if (m.cores, m.vector_cores or m.cores) == (found.cube_cores, found.vector_cores)]
    near = [m for m in alike if abs(m.mhz - found.mhz) / m.mhz < _SAME_CLOCK]
    nearest = min((abs(m.mhz - found.mhz) for m in near), default=0.0)
    return [m for m in near if abs(m.mhz - found.mhz) <= nearest + 1] or alike


def _of_generation(models: Sequence[ChipModel], found: Chip) -> list[ChipModel]:
    """The models of the generation of a chip whose number of cores none of them has."""
    known = found.generations
    return [m for m in models if known and Chip(m.cores, m.vector_cores or m.cores, m.mhz, "").generations == known]


def _of_device(profile: Profile) -> list[ChipModel]:
    """The models with these multiprocessors, this compute capability and this memory, as far as recorded."""
    recorded = profile.chip
    cores, capability, memory = (
        recorded.get(name) for name in ("multiprocessors", "compute_capability", "memory_bytes")
    )
    if not isinstance(cores, int) or not isinstance(memory, int):
        return []
    return [
        model
        for model in profile.vocabulary.chips
        if model.cores == cores
        and model.compute_capability == capability
        and abs(memory / GIB - model.memory_gib) <= _SAME_MEMORY * model.memory_gib
    ]


def _by_kernels(memories: set[float], facts: Facts) -> float:
    """The slowest of these memories that the quickest long kernels allow, if they come near it; NaN else."""
    kernels = facts.get(KERNELS)
    if kernels is None or not memories:
        return float("nan")
    long = kernels[(kernels["duration_ns"] > 0) & (kernels["core"] == "AI_VECTOR_CORE")]
    moved = moved_bytes(long).to_numpy(dtype=np.float64)
    rates = (moved / long["duration_ns"].to_numpy() * 1e9)[moved >= _BULK_BYTES]
    if not len(rates):
        return float("nan")
    best = float(np.quantile(rates, 0.9))
    low, high = _NEAR_PEAK
    return next((memory for memory in sorted(memories) if low * memory <= best <= high * memory), float("nan"))
