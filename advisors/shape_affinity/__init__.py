"""Shapes that do not suit the chip: tails that load slowly, rows that do not divide among its cores."""

from __future__ import annotations

from advisors.shape_affinity import alignment, attention, attention_length, blocks, patches, rows, shared_input, tails

ADVISORS = (
    tails.tails,
    rows.rows_per_core,
    blocks.blocks,
    shared_input.shared_input,
    attention.attention,
    attention_length.attention_length,
    alignment.alignment,
    patches.patches,
)
