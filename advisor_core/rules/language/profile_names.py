"""The constants of a profile that every rule may use, as ``profile.NAME``."""

from __future__ import annotations

from advisor_core.contracts.columns import Column

PROFILE_NAMES: dict[str, Column] = {
    column.name: column
    for column in (
        Column("kind", "text", "", "training, inference or unknown"),
        Column("serves", "bool", "", "inference alone, and no rollout: a service may be what runs"),
        Column("parts", "text", "", "parts of the recording with a tenth of its time or more, joined by spaces"),
        Column("phase", "text", "", "training, prefill, decode, mixed (both of inference) or unknown"),
        Column("level", "text", "", "profiler level: level_none, level0, level1 or level2"),
        Column("framework", "text", "", "framework of the job, such as PyTorch"),
        Column("software", "text", "", "software whose code the recording shows, joined by spaces"),
        Column("chip", "text", "", "generations that the chip can be of, such as A2 A3"),
        Column("amd", "bool", "", "the GPU is one of AMD (ROCm)"),
        Column("compute_capability", "float", "", "of the GPU, as 9.0; only of NVIDIA"),
        Column("ranks", "int", "count", "ranks in the input"),
        Column("world_size", "int", "count", "ranks in the job"),
        Column("steps", "int", "count", "steps recorded"),
        Column("graph_mode", "bool", "", "kernels are launched as graphs"),
        Column("with_stack", "bool", "", "call stacks were recorded"),
        Column("l2_cache", "bool", "", "counters of the L2 cache were read after every task"),
    )
}
