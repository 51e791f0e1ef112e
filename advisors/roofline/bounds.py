"""Lower bounds: what every kernel needs at least, by its operations and its bytes, and the sums of parts of a step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from advisor_core.api.facts import Facts, Peaks, fact, peaks
from advisors.roofline.cached import cached_bytes
from advisors.roofline.work import KernelWork, kernel_work
from advisors.step_kernels import StepKernels, step_kernels

if TYPE_CHECKING:
    import numpy.typing as npt

Floats: TypeAlias = "npt.NDArray[np.float64]"
Bools: TypeAlias = "npt.NDArray[np.bool_]"

_SKIPS = 1.05
"""An attention that is quicker than its scores allow leaves some out (a window, a mask in blocks): unknown then."""


COUNTED = 0.5
"""Of the kernel time of a part, how much needs to have a bound for its operations and bytes to be told: below a half
most of them can be missing. Our choice."""


@dataclass(frozen=True)
class Roofline:
    """By row of the frame of `StepKernels`, NaN unknown. ``computing_ns``: operations at the peak for their type;
    ``memory_ns``: bytes at the bandwidth of the memory, or what a kernel took that was quicker, but no less than what
    memory and cache allow together; ``hbm_bytes``: from and to the memory. ``least_ns``: the longer of the two, if both
    are known. ``duration_ns``: as recorded."""

    peaks: Peaks
    duration_ns: Floats
    computing_ns: Floats
    memory_ns: Floats
    hbm_bytes: Floats

    @property
    def least_ns(self) -> Floats:
        return np.maximum(self.computing_ns, self.memory_ns)

    @property
    def computes(self) -> Bools:
        """Which kernels their operations bound, where both are known."""
        return np.asarray(self.computing_ns > self.memory_ns, dtype=np.bool_)

    @property
    def moves(self) -> Bools:
        """Which kernels their bytes bound, where both are known."""
        return np.asarray(self.computing_ns <= self.memory_ns, dtype=np.bool_)


@fact("roofline", needs=(step_kernels, kernel_work, peaks))
def roofline(facts: Facts) -> Roofline:
    """What every kernel of the steps needs at least on this chip.

    Operations: at the peak of the matrix unit for their type. Bytes: all of them from and to the memory. A kernel that
    is quicker than that has some in the last cache: it is at its bound, as far as the cache explains it. All bytes pass
    the cache at its own rates; from the memory come those that no kernel shortly before left in it, and of what is
    written as much as the cache holds may stay there when the kernel ends.
    """
    return roofline_of(facts[step_kernels], facts[kernel_work], facts[peaks])


def roofline_of(own: StepKernels, work: KernelWork, chip: Peaks) -> Roofline:
    """The same of these kernels on this chip."""
    frame = own.frame
    flops, read, written = (work.per_kernel(own, name) for name in ("flops", "read", "written"))
    duration = frame["duration_ns"].to_numpy(dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        computing = np.where(flops == 0, 0.0, flops / _peak(own, work, chip) * 1e9)
        cache = chip.l2_bytes if np.isfinite(chip.l2_bytes) else 0.0
        uncached = np.maximum(read - cached_bytes(own, work, cache) + np.maximum(written - cache, 0.0), 0.0)
        through = np.fmax(read / chip.l2_read, written / chip.l2_write)
        quickest = np.fmax(uncached / chip.hbm, through) * 1e9
        memory = np.minimum((read + written) / chip.hbm * 1e9, np.maximum(quickest, duration))
        moved = np.minimum(read + written, duration * chip.hbm / 1e9)
    attention = (work.table["kind"] == "attention").to_numpy()[frame["signature"].to_numpy()]
    skips = attention & (computing > _SKIPS * duration)
    return Roofline(chip, duration, np.where(skips, np.nan, computing), memory, moved)


def _peak(own: StepKernels, work: KernelWork, chip: Peaks) -> Floats:
    """FLOP/s of the matrix unit on the operands of each kernel; of FP32 the higher one, unless the recording
    says that it may not be shortened."""
    per_signature = np.array([chip.of(dtype) for dtype in work.table["dtype"]], dtype=np.float64)
    peak = per_signature[own.frame["signature"].to_numpy()]
    if "HF32" not in chip.flops:
        return np.asarray(peak, dtype=np.float64)
    single = (work.table["dtype"] == "FLOAT").to_numpy()[own.frame["signature"].to_numpy()]
    shortened = single & (own.frame["hf32"] != "NO").to_numpy()
    return np.asarray(np.where(shortened, chip.of("HF32"), peak), dtype=np.float64)


@dataclass(frozen=True)
class Part:
    """A part of a step, in ns per step. ``wall_ns``: what shares are of, the step or the kernel time of the part.
    ``known_ns``: its kernels with a bound; ``least_ns``: what these need at least. ``computing_ns``: its operations at
    the peak; ``useful_ns``: without those of a recomputation. ``by_computing_ns``, ``by_memory_ns``: kernels that
    operations and bytes bound. ``hbm_bytes``: from and to the memory; ``hbm``: its bandwidth in B/s."""

    wall_ns: float
    kernel_ns: float
    known_ns: float
    least_ns: float
    computing_ns: float
    useful_ns: float
    by_computing_ns: float
    by_memory_ns: float
    hbm_bytes: float
    hbm: float

    @property
    def mfu(self) -> float:
        """Operations, without those of a recomputation, over what the matrix unit could do in the time."""
        return self._of_wall(self.useful_ns)

    @property
    def hfu(self) -> float:
        """Operations with those of a recomputation, over what the matrix unit could do in the time."""
        return self._of_wall(self.computing_ns)

    @property
    def bandwidth(self) -> float:
        """Bytes from and to the memory, over what it could move in the time."""
        return self._of_wall(self.hbm_bytes / self.hbm * 1e9)

    def _of_wall(self, ns: float) -> float:
        """What is counted kernel by kernel, over the time; NaN where most of it is not counted."""
        return ns / self.wall_ns if self.wall_ns and not self.known < COUNTED else float("nan")

    @property
    def known(self) -> float:
        """Which part of the kernel time has a bound."""
        return self.known_ns / self.kernel_ns if self.kernel_ns else float("nan")

    @property
    def reached(self) -> float:
        """What the kernels with a bound need at least, over what they take."""
        return self.least_ns / self.known_ns if self.known_ns else float("nan")


def parts_of(
    found: Roofline, groups: npt.NDArray[np.int64], count: int, steps: int, again: Bools, walls: Sequence[float] | None
) -> list[Part]:
    """The parts 0 to ``count`` - 1 that ``groups`` numbers the kernels by; -1: in none. ``again``: kernels of a
    recomputation. ``walls``: ns per step of each part; ``None``: its kernel time."""
    inside = groups >= 0
    known = np.isfinite(found.least_ns)
    computing = np.nan_to_num(found.computing_ns)

    def sums(values: Floats, chosen: Bools) -> list[float]:
        mask = inside & chosen
        return [float(x) / steps for x in np.bincount(groups[mask], weights=values[mask], minlength=count)]

    every = np.ones(len(groups), dtype=np.bool_)
    kernel_ns = sums(found.duration_ns, every)
    columns = (
        kernel_ns if walls is None else list(walls),
        kernel_ns,
        sums(found.duration_ns, known),
        sums(np.nan_to_num(np.minimum(found.least_ns, found.duration_ns)), known),
        sums(computing, every),
        sums(computing, ~again),
        sums(found.duration_ns, found.computes),
        sums(found.duration_ns, found.moves),
        sums(np.nan_to_num(found.hbm_bytes), every),
        [found.peaks.hbm] * count,
    )
    return [Part(*values) for values in zip(*columns, strict=True)]


FACTS = (roofline,)
