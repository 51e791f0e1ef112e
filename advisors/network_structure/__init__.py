"""Inefficient use of operators by the network."""

from __future__ import annotations

from advisors.network_structure import ai_cpu, conversions, fusion, hot_share, norm_cast_matmul, precision, slices

ADVISORS = (
    hot_share.hot_share,
    slices.slices,
    conversions.conversions,
    norm_cast_matmul.norm_cast_matmul,
    ai_cpu.ai_cpu,
    precision.precision,
    fusion.fusion,
)
