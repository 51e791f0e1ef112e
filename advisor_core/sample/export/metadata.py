"""profiler_info_*.json and profiler_metadata.json: how the profile was taken."""

from __future__ import annotations

from ..timeline import Timeline
from .generation import Names
from .recording import Recording

_VARIABLES = (
    "ASCEND_GLOBAL_LOG_LEVEL",
    "HCCL_RDMA_TC",
    "HCCL_RDMA_SL",
    "ACLNN_CACHE_LIMIT",
    "HOST_CACHE_CAPACITY",
    "ASCEND_ENHANCE_ENABLE",
    "PYTORCH_NPU_ALLOC_CONF",
    "ASCEND_LAUNCH_BLOCKING",
)
"""The variables that a profile records; an empty value means that the variable was not set."""


def profiler_info(timeline: Timeline, names: Names, recording: Recording, export: str) -> dict[str, object]:
    """The profiler's settings, versions where the generation records them, and the rank.

    ``export`` is the kind of export, ``text`` or ``db``.
    """
    info: dict[str, object] = {
        "config": {
            "common_config": {
                "activities": ["ProfilerActivity.CPU", "ProfilerActivity.NPU"],
                "schedule": {
                    "wait": 0,
                    "active": len(timeline.steps),
                    "warmup": 2,
                    "repeat": 1,
                    "skip_first": timeline.steps[0].number - 2,
                },
                "record_shapes": True,
                "profile_memory": True,
                "with_stack": True,
                "with_flops": False,
                "with_modules": True,
            },
            "experimental_config": {
                "_profiler_level": recording.setting,
                "_aic_metrics": recording.metrics,
                "_l2_cache": False,
                "_msprof_tx": bool(timeline.marks),
                "_data_simplification": True,
                "record_op_args": False,
                "_export_type": [export] if names.has_versions else export,
                "_op_attr": False,
                "_gc_detect_threshold": timeline.gc_threshold_ms,
            },
        },
        "start_info": {
            "syscnt_enable": True,
            "freq": 100,
            "start_cnt": timeline.start // 100,
            "start_monotonic": timeline.start // 10_000,
        },
        "end_info": {
            "collectionTimeEnd": timeline.end,
            "MonotonicTimeEnd": timeline.start // 10_000 + timeline.end - timeline.start,
        },
        "rank_id": timeline.rank if timeline.world_size > 1 else -1,
    }
    if names.has_versions:
        info |= {"torch_npu_version": "2.7.1", "cann_version": "8.3.RC1"}
    return info


def profiler_metadata(timeline: Timeline, names: Names) -> dict[str, object]:
    """The environment that was recorded and, in newer exports, the parallel layout."""
    variables = (*_VARIABLES, "HCCL_ALGO") if names.has_versions else _VARIABLES
    metadata: dict[str, object] = {"ENV_VARIABLES": {name: timeline.variables.get(name, "") for name in variables}}
    layout = timeline.layout
    if names.has_versions and timeline.world_size > 1:
        metadata["distributed_args"] = {
            "tensor_model_parallel_size": layout.tensor,
            "pipeline_model_parallel_size": layout.pipeline,
            "data_parallel_size": layout.data,
            "context_parallel_size": 1,
            "expert_model_parallel_size": layout.expert,
            "rank": timeline.rank,
            "world_size": timeline.world_size,
        }
        metadata["parallel_group_info"] = {
            group.key: {
                "group_name": group.name,
                "group_rank": group.local(timeline.rank),
                "global_ranks": list(group.ranks),
            }
            for group in sorted(layout.groups(timeline.rank), key=lambda group: group.key)
        }
    return metadata
