"""Columns that many advisors measure, declared once."""

from __future__ import annotations

from advisor_core.api.advisors import Column

STEP_NS = Column("step_ns", "float", "ns", "mean wall time of a step", zh="step")
PROFILED_STEPS = Column("steps", "int", "count", "profiled steps", zh="step 数")
GROUP = Column("group", "text", "", "communication group", zh="通信域")
SAVEABLE_SHARE = Column("saveable_share", "float", "ratio", "saveable_ns over wall time", zh="可节省占比")
LONGEST_STEP_NS = Column("step_ns", "float", "ns", "wall time of a step of the rank with the longest", zh="step")
IDLE_SHARE = Column("idle_share", "float", "ratio", "idle_ns over wall time", zh="空闲占比")
OPERATOR_TYPE = Column("operator", "text", "", "operator type", zh="算子")
KERNELS_PER_STEP = Column("kernels", "float", "count", "kernels per step", zh="kernel 数")
TOTAL_NS = Column("total_ns", "float", "ns", "time per step", zh="合计")
MEAN_NS = Column("mean_ns", "float", "ns", "mean duration", zh="均值")


def shares(of_step: str, of_computing: str = "") -> tuple[Column, Column]:
    """What the time of the column ``of_step`` is of a step, and that of ``of_computing``, by default the same, of its
    kernels."""
    return (
        Column("share_of_step", "float", "ratio", f"{of_step} over the step", zh="占 step"),
        Column(
            "share_of_computing",
            "float",
            "ratio",
            f"{of_computing or of_step} over the kernel time of the step",
            zh="占计算",
        ),
    )
