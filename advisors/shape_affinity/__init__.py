"""Shapes that do not suit the chip: tails that load slowly, rows that do not divide among its cores."""

from __future__ import annotations

from advisors.shape_affinity import (
    alignment,
    attention,
    attention_length,
    blocks,
    joint_rows,
    patches,
    rows,
    shared_input,
    tails,
    tensor_parallel,
)

ADVISORS = (
    tails.tails,
    rows.rows_per_core,
    blocks.blocks,
    shared_input.shared_input,
    attention.attention,
    attention_length.attention_length,
    alignment.alignment,
    patches.patches,
    joint_rows.joint_rows,
    tensor_parallel.tensor_parallel,
)
