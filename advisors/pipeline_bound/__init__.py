"""Utilisation by kernels of their bounding pipe, the memory, the cores and the clock."""

from __future__ import annotations

from advisors.pipeline_bound import (
    clock,
    kernels,
    products,
    roofline,
    roofline_by_phase,
    streams,
    waiting,
    weight_format,
)

ADVISORS = (
    kernels.kernels,
    products.product_efficiency,
    clock.clock,
    waiting.waiting,
    weight_format.weight_format,
    streams.streams,
    *roofline.ADVISORS,
    *roofline_by_phase.ADVISORS,
)
