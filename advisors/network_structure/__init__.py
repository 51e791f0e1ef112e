"""Inefficient use of operators by the network."""

from __future__ import annotations

from advisors.network_structure import (
    adapters,
    ai_cpu,
    batched_copies,
    classes,
    conversions,
    expert_loop,
    folded_norm,
    fusion,
    gradient_norms,
    hot_share,
    memory_bound_chains,
    new_faces,
    norm_cast_matmul,
    norm_quant,
    optimizer_step,
    outlier_layers,
    precision,
    regions,
    slices,
    written_out_attention,
)

ADVISORS = (
    hot_share.hot_share,
    slices.slices,
    conversions.conversions,
    norm_cast_matmul.norm_cast_matmul,
    norm_quant.norm_quant,
    batched_copies.batched_copies,
    ai_cpu.ai_cpu,
    precision.precision,
    fusion.fusion,
    classes.classes,
    memory_bound_chains.memory_bound_chains,
    written_out_attention.written_out_attention,
    optimizer_step.optimizer_step,
    regions.regions,
    expert_loop.expert_loop,
    gradient_norms.gradient_norms,
    adapters.adapters_of_low_rank,
    folded_norm.folded_norm,
    outlier_layers.outlier_layers,
    new_faces.new_faces,
)
