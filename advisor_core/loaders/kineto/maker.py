"""The maker of the GPU of a trace: exports of NVIDIA's and AMD's devices have the same form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pandas as pd

from advisor_core.text.base import Scalar

AMD: Final = "AMD"
NVIDIA: Final = "NVIDIA"

_WAVEFRONT: Final = 64


def maker(chip: Mapping[str, Scalar], versions: Mapping[str, str], events: pd.DataFrame | None) -> str:
    """By the name of the GPU, the size of its wavefronts (64 work-items on AMD Instinct, 32 threads on every NVIDIA
    GPU), or the runtime that was called (``events``: the table ``host_events``). '' where nothing tells."""
    name = str(chip.get("name") or "")
    if AMD in name or chip.get("warp_size") == _WAVEFRONT or "hip_runtime" in versions:
        return AMD
    if name or "cuda_runtime" in versions:
        return NVIDIA
    if events is None:
        return ""
    calls = events["name"][events["category"] == "runtime"].astype(str)
    return AMD if calls.str.startswith("hip").any() else NVIDIA if calls.str.startswith("cuda").any() else ""
