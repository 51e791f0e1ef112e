"""Columns that many advisors measure or show, declared once."""

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

# What several advisors show in their evidence only.
RANK = Column("rank", "int", "", "rank of the job", zh="rank")
TIME = Column("time", "float", "ns", "time in it; per step where it recurs", zh="时间")
SHARE = Column("share", "float", "ratio", "its part of the whole that the table divides", zh="占比")
LEAF = Column("leaf", "text", "", "entry of the ledger", zh="账目")
SHARE_OF_STEP = Column("share_of_step", "float", "ratio", "its time over the step", zh="占 step")
COMPUTING = Column("computing", "float", "ns", "computing per step", zh="计算")
IDLE = Column("idle", "float", "ns", "idle per step", zh="空闲")
WAITS = Column("waits", "float", "ns", "waiting for other ranks per step", zh="等待")
FILE = Column("file", "text", "", "file of the profile", zh="文件")
TYPE = Column("type", "text", "", "operator type", zh="类型")
OPERATION = Column("operation", "text", "", "the collective, as it is recorded", zh="通信算子")
LONGEST = Column("longest", "int", "ns", "the longest", zh="最长")
TASKS = Column("tasks", "int", "count", "tasks of the device", zh="任务数")
OPERATOR_CLASS = Column("operator_class", "text", "", "class of operator, as in the ledger", zh="算子类别")
PER_STEP_NS = Column("per_step_ns", "float", "ns", "time per step", zh="每步")
KERNEL = (
    FILE,
    Column("line", "int", "", "its line there, from 1", zh="行"),
    TYPE,
    Column("start", "int", "ns", "start", zh="开始"),
    Column("duration", "int", "ns", "duration", zh="时长"),
)
"""One kernel of a rank that the advisor of a job has no tables of."""


def savings(of_kernels: str, otherwise: str = "kernel_saving_ns") -> tuple[Column, Column, Column]:
    """Columns for what fewer kernels save: kernel time (``of_kernels``: how it is counted), the step by the replay
    (``otherwise``: what stands there without launches), and the part of it in which the device waited for launches."""
    return (
        Column("kernel_saving_ns", "float", "ns", of_kernels, zh="kernel 节省"),
        Column(
            "saving_ns",
            "float",
            "ns",
            f"how much shorter a step is, from a replay of launches and kernels; without launches, {otherwise}",
            zh="节省",
        ),
        Column(
            "launch_saving_ns",
            "float",
            "ns",
            "part of saving_ns beyond kernel_saving_ns: the device no longer waits for the launches that go away",
            zh="下发节省",
        ),
    )


def shares(of_step: str, of_computing: str = "") -> tuple[Column, Column]:
    """Columns for the share of the time ``of_step`` in a step, and of ``of_computing``, by default the same, in its
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
