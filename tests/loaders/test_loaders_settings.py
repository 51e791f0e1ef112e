from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from advisor_core.loaders.ascend_pytorch import settings


def test_group_hash_joins_metadata_and_communication_json() -> None:
    assert settings.group_hash("group_name_0") == 5862276093215481612  # checked on a real job


def test_everything_recorded() -> None:
    read = settings.read_settings(
        {
            "config": {
                "common_config": {"with_stack": True, "schedule": {"active": 1}, "activities": ["CPU", "NPU"]},
                "experimental_config": {
                    "_profiler_level": "Level1",
                    "_export_type": ["text", "db"],
                    "_gc_detect_threshold": None,
                },
            },
            "torch_npu_version": "2.7.1",
            "cann_version": "8.3.RC1",
        },
        {
            "ENV_VARIABLES": {"ASCEND_LAUNCH_BLOCKING": "", "HCCL_ALGO": None},
            "distributed_args": {
                "tensor_model_parallel_size": 1,
                "pipeline_model_parallel_size": "2",
                "world_size": 4,
                "rank": 2,
            },
            "parallel_group_info": {
                "group_name_0": {"group_name": "default_group", "global_ranks": [0, 1, 2, 3]},
                "x": 3,
            },
        },
    )
    assert read.level == "level1" and read.versions == {"torch_npu": "2.7.1", "cann": "8.3.RC1"}
    assert read.profiler["schedule.active"] == 1 and read.profiler["export_type"] == "text,db"
    assert read.profiler["with_stack"] is True and read.profiler["gc_detect_threshold"] is None
    assert read.variables == {"ASCEND_LAUNCH_BLOCKING": "", "HCCL_ALGO": ""}
    assert read.world_size == 4 and read.parallel == {"tp": 1, "pp": 2}
    assert read.groups == {"5862276093215481612": (0, 1, 2, 3)}
    assert read.group_names == {"5862276093215481612": "default_group"}


def test_nothing_recorded() -> None:
    odds: list[dict[str, Any]] = [{}, {"config": 3}, {"config": {"experimental_config": []}}]
    for odd in odds:
        assert settings.read_settings(odd, {"ENV_VARIABLES": [], "distributed_args": 4}) == settings.Settings()


@pytest.mark.parametrize(
    ("name", "info", "metadata", "rank"),
    [
        ("profiler_info_3.json", {"rank_id": 5}, {}, 3),
        ("profiler_info.json", {"rank_id": "5"}, {}, 5),
        ("profiler_info.json", {"rank_id": -1}, {"distributed_args": {"rank": 6}}, 6),
        ("other.json", {}, {"distributed_args": {"rank": 7}}, 7),
        ("other.json", {}, {}, None),
    ],
)
def test_rank(tmp_path: Path, name: str, info: object, metadata: object, rank: int | None) -> None:
    (tmp_path / name).write_text(json.dumps(info))
    (tmp_path / settings.METADATA).write_text(json.dumps(metadata))
    assert settings.recorded_rank(tmp_path) == rank
