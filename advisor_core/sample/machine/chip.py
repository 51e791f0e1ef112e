"""The chip: how long a kernel takes and what its pipes do meanwhile (a roofline with efficiencies).

Sources: core counts, clock and L2 of an Ascend 910B2 (docs/sources.md#chips), HBM bandwidth
(docs/sources.md#memory-bandwidth), achieved matrix throughput of 67-80 % of peak
(docs/sources.md#recorded-pipeline-job), the 2.5x penalty of an unaligned contraction
(docs/sources.md#unaligned-product), a quarter of the matrix throughput in FP32 (83 TFLOP/s of MatMulV3 scaled to a full
mac pipe, docs/sources.md#peak-of-the-cube), 2-3 us between a kernel's duration and its core time
(docs/sources.md#columns-of-kernel-details).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil

from ..described import FROM_FILES, Factor, Natural, Positive
from ..kernels import (
    WHOLE_HEAD,
    AiCpuWork,
    AttentionWork,
    ConvolutionWork,
    Kernel,
    MatMulWork,
    PoolingWork,
    VectorWork,
    Work,
)

CUBE_FLOPS_PER_CYCLE = 2 * 16 * 16 * 16
CUBE_PIPES = ("mac", "scalar", "mte1", "mte2", "fixpipe")
VECTOR_PIPES = ("vec", "scalar", "mte2", "mte3")

MATMUL_EFFICIENCY = 0.82
MATMUL_FIXED_NS = 4_000
UNALIGNED_SLOWDOWN = 2.5
RAGGED_OUTPUT_SLOWDOWN = 1.2
STRIDED_SLOWDOWN = 1.3
"""A tail axis of a multiple of 16 KiB. Assumed: it is known to be slow (docs/sources.md#tail-axis), nobody has
published how slow; unaligned addresses cost up to 30 % of the bandwidth (docs/sources.md#unaligned-addresses)."""
FP32_SLOWDOWN = 4.0
ATTENTION_EFFICIENCY = {False: 0.43, True: 0.42}
"""Share of the peak that fused attention reaches without a mask, forward and backward, with long sequences and heads of
128 channels; the gradient takes 2.56 times as long (docs/sources.md#fused-attention)."""
CAUSAL_EFFICIENCY = {False: 0.29, True: 0.28}
"""The same of the half of the scores that a causal mask leaves: 883 and 2,255 us for 16 heads of 4,096 positions on 20
cores (docs/sources.md#fused-attention). No other length was recorded, so that shorter ones reach as much here, which on
a GPU they do not. No rule has this number: the bounds of rooflines are those of the peak."""
VECTOR_EFFICIENCY = 0.91
STRIDED_EFFICIENCY = 0.72
CACHED_SPEEDUP = 1.15
CONVOLUTION_EFFICIENCY = {"forward": 0.80, "input": 0.50, "filter": 0.65}
"""Share of the peak of the cores in use; of the 14 convolutions and gradients of rank 0 of
docs/sources.md#recorded-alexnet-job."""
CONVOLUTION_MAC = {"forward": 1.05, "input": 1.32, "filter": 1.12}
"""Ratio of the busy time of the mac pipe of the same kernels to the time that their operations need."""
NARROW_EFFICIENCY = 0.4
"""Efficiency that remains where most input channels are padding: the first convolution of the same job."""
HF32_SLOWDOWN = 2.0
POOLING_FIXED_NS, POOLING_NS_PER_ELEMENT = 50_000, 0.0185
"""A straight line through the three MaxPoolWithArgmaxV1 of the same job."""
POOLING_GRADIENT_NS, POOLING_GRADIENT_BYTES_PER_S = 100_000, 0.55e12
"""Its three MaxPoolGradWithArgmaxV1 take 97 to 107 us, the largest moving 0.55 TB/s without its mask."""
CORE_BYTES_PER_CYCLE = 32
"""Memory bandwidth of one core (docs/sources.md#chips): a few cores do not use the whole bandwidth."""
SERIAL_NS = 900
"""Core time of a vector kernel with nothing to do (smallest kernels of real profiles: 1.3-2 us)."""
SPREAD_BYTES = 16 * 1024
"""A vector kernel uses one more core per this many bytes, up to all of them."""


@dataclass(frozen=True, slots=True)
class CoreUse:
    """Counters of one kind of core: its time, and the share of it in which each pipe was busy."""

    time_ns: int
    blocks: int
    ratios: dict[str, float]
    icache_miss: float


@dataclass(frozen=True, slots=True)
class KernelCost:
    """Duration of a kernel on an otherwise idle device, and its use of cube and vector cores."""

    duration_ns: int
    cube: CoreUse | None
    vector: CoreUse | None


@dataclass(frozen=True, slots=True)
class Chip:
    """An Ascend 910B-class chip."""

    __pydantic_config__ = FROM_FILES
    cube_cores: Positive = 24
    vector_cores: Positive = 48
    mhz: Positive = 1800
    hbm_bytes_per_s: Factor = 1.6e12
    l2_bytes: Natural = 192 * 1024 * 1024
    head_tail_ns: Natural = 2_300

    @property
    def peak_flops(self) -> float:
        """Peak 16-bit matrix throughput, FLOP/s: cores x MHz x 8192 (docs/sources.md#peak-of-the-cube)."""
        return self.cube_cores * self.mhz * 1e6 * CUBE_FLOPS_PER_CYCLE

    def cost(self, work: Work) -> KernelCost:
        """The cost of a kernel's work."""
        if isinstance(work, MatMulWork):
            return self._matmul(work)
        if isinstance(work, AttentionWork):
            return self._attention(work)
        if isinstance(work, ConvolutionWork):
            return self._convolution(work)
        if isinstance(work, PoolingWork):
            return self._pooling(work)
        if isinstance(work, AiCpuWork):
            return KernelCost(work.ns, None, None)
        return self._vector(work)

    def _matmul(self, work: MatMulWork) -> KernelCost:
        balance, blocks = max(self._tiling(work, base_n) for base_n in (256, 128))
        ideal_ns = 2e9 * work.m * work.n * work.k / self.peak_flops * (FP32_SLOWDOWN if work.single else 1.0)
        bandwidth = min(self.hbm_bytes_per_s * VECTOR_EFFICIENCY, blocks * CORE_BYTES_PER_CYCLE * self.mhz * 1e6)
        memory_ns = 1e9 * work.nbytes / bandwidth
        core_ns = max(ideal_ns / (MATMUL_EFFICIENCY * balance), memory_ns) + MATMUL_FIXED_NS
        if work.ragged_output:
            core_ns *= RAGGED_OUTPUT_SLOWDOWN
        if work.strided:
            core_ns *= STRIDED_SLOWDOWN
        vector = None
        if work.unaligned:
            core_ns *= UNALIGNED_SLOWDOWN
            # The vector cores rearrange the operand for the cube, which then waits for its loads.
            vector = self._use(core_ns * 0.97, 2 * blocks, VECTOR_PIPES, (0.02, 0.11, 0.46, 0.55), 0.004)
        mac = min(0.96, 1.09 * ideal_ns / core_ns)
        loading = 0.83 if work.unaligned or work.strided else max(0.64, 0.97 * memory_ns / core_ns)
        cube = self._use(core_ns, blocks, CUBE_PIPES, (mac, 0.21, 0.78 * mac, loading, 0.09), 0.002)
        return KernelCost(cube.time_ns + self.head_tail_ns, cube, vector)

    def _tiling(self, work: MatMulWork, base_n: int) -> tuple[float, int]:
        tiles = ceil(work.m / 128) * ceil(work.n / base_n)
        rounds = ceil(tiles / self.cube_cores)
        # Halving baseN halves the reuse of the left operand: a little slower for the same balance.
        return tiles / (rounds * self.cube_cores) * (1.0 if base_n == 256 else 0.985), min(tiles, self.cube_cores)

    def _attention(self, work: AttentionWork) -> KernelCost:
        ideal_ns = 1e9 * work.flops / self.peak_flops * (FP32_SLOWDOWN if work.single else 1.0)
        memory_ns = 1e9 * work.read / (self.hbm_bytes_per_s * VECTOR_EFFICIENCY)
        reached = (CAUSAL_EFFICIENCY if work.causal else ATTENTION_EFFICIENCY)[work.backward]
        efficiency = reached * min(1.0, work.channels / WHOLE_HEAD)
        core_ns = max(ideal_ns / efficiency, memory_ns) + 2 * MATMUL_FIXED_NS
        mac = ideal_ns / core_ns
        if memory_ns > 0.5 * core_ns:
            busy = 0.97 * memory_ns / core_ns
            cube = self._use(core_ns, self.cube_cores, CUBE_PIPES, (mac, 0.2, 0.5 * mac, busy, 0.1), 0.003)
            vector = self._use(core_ns * 0.99, self.vector_cores, VECTOR_PIPES, (0.3, 0.1, 0.2, 0.1), 0.004)
            return KernelCost(cube.time_ns + self.head_tail_ns, cube, vector)
        cube_ratios = (mac, 0.32, 0.5 * mac, 0.41, 0.82) if work.backward else (mac, 0.29, 0.5 * mac, 0.33, 0.38)
        vector_ratios = (0.62, 0.18, 0.34, 0.31) if work.backward else (0.881, 0.12, 0.21, 0.19)
        cube = self._use(core_ns, self.cube_cores, CUBE_PIPES, cube_ratios, 0.003)
        vector = self._use(core_ns * 0.99, self.vector_cores, VECTOR_PIPES, vector_ratios, 0.004)
        return KernelCost(cube.time_ns + self.head_tail_ns, cube, vector)

    def _convolution(self, work: ConvolutionWork) -> KernelCost:
        cores = self.cube_cores
        if work.pass_ == "forward":  # the pictures of a batch are dealt out evenly: 32 on 16 cores in the job above
            cores = max(count for count in range(1, cores + 1) if work.batch % count == 0)
        peak = self.peak_flops * cores / self.cube_cores / (HF32_SLOWDOWN if work.single else 1.0)
        ideal_ns = 1e9 * work.flops / peak
        efficiency = CONVOLUTION_EFFICIENCY[work.pass_] * (NARROW_EFFICIENCY if work.narrow else 1.0)
        memory_ns = 1e9 * work.nbytes / (self.hbm_bytes_per_s * VECTOR_EFFICIENCY)
        core_ns = max(ideal_ns / efficiency, memory_ns) + MATMUL_FIXED_NS
        mac = min(0.96, CONVOLUTION_MAC[work.pass_] * ideal_ns / core_ns)
        loading = {"forward": 0.8, "input": 0.26, "filter": 0.46}[work.pass_]
        loading = min(0.95, max(loading, memory_ns / core_ns))
        cube = self._use(core_ns, cores, CUBE_PIPES, (mac, 0.2, 0.8 * mac, loading, 0.1), 0.003)
        return KernelCost(cube.time_ns + self.head_tail_ns, cube, None)

    def _pooling(self, work: PoolingWork) -> KernelCost:
        if work.backward:
            core_ns = max(POOLING_GRADIENT_NS, 1e9 * work.nbytes / POOLING_GRADIENT_BYTES_PER_S)
            ratios = (0.29, 0.3, 0.3, 0.06)
        else:
            core_ns = POOLING_FIXED_NS + POOLING_NS_PER_ELEMENT * work.elements
            ratios = (0.5, 0.25, 0.24, 0.16)
        use = self._use(core_ns, self.vector_cores, VECTOR_PIPES, ratios, 0.01)
        return KernelCost(use.time_ns + self.head_tail_ns // 2, None, use)

    def _vector(self, work: VectorWork) -> KernelCost:
        moved = work.read + work.write
        efficiency = STRIDED_EFFICIENCY if work.strided else VECTOR_EFFICIENCY
        if moved < self.l2_bytes:
            efficiency *= CACHED_SPEEDUP
        blocks = max(1, min(self.vector_cores, moved // SPREAD_BYTES))
        memory_ns = 1e9 * moved / (self.hbm_bytes_per_s * efficiency)
        core_ns = SERIAL_NS + memory_ns
        busy = memory_ns / core_ns
        # At the HBM limit the loading pipe is busy nearly all the time, whatever the operation.
        loading, storing = (0.96, 0.44) if work.read >= work.write else (0.55, 0.95)
        if work.read == 0:
            loading, storing = 0.02, 0.96
        if work.write * 8 < work.read:
            storing = 0.03
        ratios = (
            work.vector_share * busy + 0.02,
            0.06 + 0.26 * (1 - busy),
            loading * busy + 0.1 * (1 - busy),
            storing * busy + 0.09 * (1 - busy),
        )
        use = self._use(core_ns, blocks, VECTOR_PIPES, ratios, 0.003 + 0.17 * (1 - busy))
        return KernelCost(use.time_ns + self.head_tail_ns // 2, None, use)

    @staticmethod
    def _use(time_ns: float, blocks: int, pipes: tuple[str, ...], ratios: tuple[float, ...], miss: float) -> CoreUse:
        return CoreUse(round(time_ns), blocks, dict(zip(pipes, ratios, strict=True)), miss)


ASCEND_910B = Chip()


class Costs:
    """The costs of kernels on the chips of a job, which differ in their clock alone; equal work costs the same."""

    def __init__(self, chip: Chip) -> None:
        self._chip = chip
        self._known: dict[tuple[int, Work], KernelCost] = {}

    def of(self, kernel: Kernel, mhz: int) -> KernelCost:
        """The cost of a kernel at a clock."""
        key = (mhz, kernel.work)
        if key not in self._known:
            self._known[key] = replace(self._chip, mhz=mhz).cost(kernel.work)
        return self._known[key]
