"""Further counters of the cores, by the names that the groups of ``aic_metrics`` give them.

A recording has one group. Those of PipeUtilization are columns of `KERNELS`; the others are rows of `CORE_COUNTERS`,
which a recording without them does not pay for (docs/sources.md#groups-of-core-counters).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from advisor_core.contracts.tables import CORE_COUNTERS
from advisor_core.loaders.readers.csv_file import Column

if TYPE_CHECKING:
    import numpy.typing as npt

_KIB: Final = 2.0**10
_GIB: Final = 2.0**30

_RATIOS: Final = (
    *("mac_fp16_ratio", "mac_int8_ratio"),
    *("vec_fp32_ratio", "vec_fp16_ratio", "vec_int32_ratio", "vec_misc_ratio"),
    *("vec_bankgroup_cflt_ratio", "vec_bank_cflt_ratio", "vec_resc_cflt_ratio"),
)
"""ArithmeticUtilization, ResourceConflictRatio: cycles over all cycles of the core."""

HITS: Final = (
    *("write_cache_hit", "r0_read_cache_hit", "r1_read_cache_hit"),
    *("read_local_l2_hit", "write_local_l2_hit"),
)
MISSES: Final = (
    *("write_cache_miss_allocate", "r0_read_cache_miss_allocate", "r1_read_cache_miss_allocate"),
    *("read_local_l2_miss", "write_local_l2_miss"),
)
"""L2Cache: accesses of each way to the cache, those of the 950 last."""

_COUNTS: Final = ("cube_fops", "vector_fops", *HITS, *MISSES, "read_local_l2_victim", "write_local_l2_victim")

_BANDWIDTHS: Final = (
    *("ub_read_bw", "ub_write_bw", "l1_read_bw", "l1_write_bw", "l2_read_bw", "l2_write_bw"),
    *("main_mem_read_bw", "main_mem_write_bw"),
    *("l0a_read_bw", "l0a_write_bw", "l0b_read_bw", "l0b_write_bw"),
    *("l0c_read_bw", "l0c_write_bw", "l0c_read_bw_cube", "l0c_write_bw_cube"),
    *("ub_read_bw_vector", "ub_write_bw_vector", "ub_read_bw_scalar", "ub_write_bw_scalar"),
)
"""Memory, MemoryL0, MemoryUB."""

_AMOUNTS: Final = (
    *("read_main_memory_datas", "write_main_memory_datas", "gm_to_l1_datas", "l0c_to_l1_datas", "l0c_to_gm_datas"),
    *("gm_to_ub_datas", "ub_to_gm_datas"),
)
"""MemoryAccess: data moved."""

_CORES: Final = ("aic_", "aiv_", "")
"""Before the name: the cube core, the vector core; nothing on chips whose cores have both."""


def _columns() -> Iterator[Column]:
    for core in _CORES:
        for name in (*_RATIOS, *_COUNTS):
            yield Column(core + name, (core + name,), "float", least=0)
        for name in _BANDWIDTHS:
            yield Column(core + name, (f"{core}{name}(GB/s)", core + name), "float", factor=_GIB, least=0)
        for name in _AMOUNTS:
            yield Column(core + name, (f"{core}{name}(KB)",), "float", factor=_KIB, least=0)


COLUMNS: Final = tuple(_columns())
"""Of kernel_details.csv and op_summary. A GB is a GiB here, as the exporter computes it."""

IN_DATABASE: Final = tuple(core + name for core in _CORES for name in (*_RATIOS, *_COUNTS))
"""Names in TASK_PMU_INFO whose values have no unit. Bandwidths and amounts are left out: times stand there in ns and
not in us as in a CSV, and nothing tells the unit of the others."""


def long(kernels: pd.DataFrame, more: Mapping[str, npt.NDArray[Any]]) -> pd.DataFrame | None:
    """`CORE_COUNTERS` of the kernels, by kernel and counter; ``None`` where no kernel has a value. ``more``: a column
    for each counter."""
    recorded = {name: values for name, values in more.items() if np.isfinite(values).any()}
    if not recorded:
        return None
    values = np.stack(list(recorded.values()), axis=1)
    rows, places = np.nonzero(np.isfinite(values))
    frame = kernels[["start_ns", "stream", "task", "source_row"]].take(rows).reset_index(drop=True)
    frame["counter"] = pd.Categorical.from_codes(places, categories=pd.Index(list(recorded), dtype=object))
    frame["value"] = values[rows, places]
    return CORE_COUNTERS.conform(frame)
