"""The table of environment variables: each is held against the recorded steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from advisor_core.api.renderers import TableView, View
from advisor_core.api.testing import Scene
from advisor_core.facts.store import FactStore
from advisor_core.text.base import Text
from advisors.environment.drawings import variables
from advisors.environment.measured import Measured, measured
from advisors.environment.variables import JUDGES

KNOWN = Measured(
    signatures=12_000,
    varying_share=0.25,
    collectives=4,
    largest_bytes=float(300 << 20),
    rdma_bytes=2e9,
    uncovered_share=0.1,
    memory_calls=2.5,
    memory_ns=3e6,
    host_share=0.2,
    task_queue="on",
)
UNKNOWN = Measured(None, None, None, None, None, None, None, None, None, "unknown")


def said(name: str, value: str | None, found: Measured = KNOWN) -> str:
    text = JUDGES[name](value, found)
    assert any("\u4e00" <= letter <= "\u9fff" for letter in text.zh)
    return text.en


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("ACLNN_CACHE_LIMIT", "", "more than the limit of 10000."),
        ("ACLNN_CACHE_LIMIT", "12000", "within the limit of 12000."),
        ("ACLNN_CACHE_LIMIT", None, "10000 (if it is not set)"),
        ("ACLNN_CACHE_LIMIT", "many", "no whole number"),
        ("ASCEND_GLOBAL_LOG_LEVEL", "1", "slows"),
        ("ASCEND_GLOBAL_LOG_LEVEL", "", "no debug or info messages"),
        ("ASCEND_GLOBAL_LOG_LEVEL", "info", "no whole number"),
        ("ASCEND_LAUNCH_BLOCKING", "1", "waits for its task"),
        ("CPU_AFFINITY_CONF", None, "20.0 %"),
        ("HCCL_ALGO", "", "chooses the algorithm"),
        ("HCCL_ALGO", "level0:NA;level1:ring", "10.0 % of the step: compare with it unset"),
        ("HCCL_BUFFSIZE", None, "300.0 MiB, is larger"),
        ("HCCL_BUFFSIZE", "300", "300.0 MiB, fits"),
        ("HCCL_RDMA_TC", "132", "2.00 GB per step go over RDMA"),
        ("HCCL_RDMA_TC", "133", "no multiple of 4"),
        ("HCCL_RDMA_SL", "8", "no whole number from 0 to 7"),
        ("HOST_CACHE_CAPACITY", "", "Off. 25.0 % of the kernels have shapes that are not in every step. If"),
        ("HOST_CACHE_CAPACITY", "20", "On. 25.0 % of the kernels have shapes that are not in every step."),
        ("PYTORCH_NPU_ALLOC_CONF", "", "device memory: 2.5; the device ran dry"),
        ("TASK_QUEUE_ENABLE", None, "is on"),
    ],
)
def test_a_value_is_judged_against_the_steps(name: str, value: str | None, words: str) -> None:
    assert words in said(name, value)


@pytest.mark.parametrize("name", JUDGES)
def test_what_is_not_measured_is_told_as_unknown(name: str) -> None:
    told = said(name, None, UNKNOWN)
    assert not any(word in told for word in ("None", "nan"))


def test_what_cannot_matter_is_told() -> None:
    quiet = replace(KNOWN, collectives=0, rdma_bytes=0.0, varying_share=0.0, memory_calls=0.0)
    assert "no collectives" in said("HCCL_ALGO", "x", quiet)
    assert "nothing over RDMA" in said("HCCL_RDMA_TC", "132", quiet)
    assert "same in each" in said("HOST_CACHE_CAPACITY", "20", quiet)
    assert "no call" in said("PYTORCH_NPU_ALLOC_CONF", "", quiet)


def drawn(store: FactStore) -> Sequence[View]:
    """With what the drawing declares, and nothing else."""
    return variables.draw(store.view(variables.needs, variables.wants))


def test_measures_of_a_small_recording() -> None:
    scene = Scene().step(1, 0, 1000).step(2, 1000, 1000)
    for step in (1, 2):
        start = 1000.0 * (step - 1)
        scene.tensors(start + 50, 100, "MatMulV3", ["8,8 FLOAT", "8,8 FLOAT"], ["8,8 FLOAT"])
        scene.rows["kernels"][-1]["step"] = step
        scene.tensors(start + 200, 100, "Add", [f"{step},8 FLOAT"], [f"{step},8 FLOAT"])
        scene.rows["kernels"][-1]["step"] = step
    scene.event("runtime", "AscendCL@aclrtMalloc", 400, 10)
    found = measured(scene.store())
    assert found.signatures == 3 and found.varying_share == 0.5
    assert found.collectives == 0 and found.rdma_bytes == 0
    assert found.memory_calls == 0.5


def test_the_table_tells_not_set_from_not_recorded() -> None:
    scene = Scene().tensors(0, 100, "Add", ["8 FLOAT"], ["8 FLOAT"])
    (view,) = drawn(scene.store(variables={"HCCL_ALGO": "", "ACLNN_CACHE_LIMIT": "5"}))
    assert isinstance(view, TableView) and view.purpose == "settings"
    recorded = {row[0]: row[1] for row in view.data.rows}
    assert recorded["ACLNN_CACHE_LIMIT"] == "5"
    assert isinstance(recorded["HCCL_ALGO"], Text) and recorded["HCCL_ALGO"].en == "not set"
    assert isinstance(recorded["HCCL_BUFFSIZE"], Text) and recorded["HCCL_BUFFSIZE"].en == "not recorded"


def test_other_devices_have_no_such_variables() -> None:
    scene = Scene().tensors(0, 100, "Add", ["8 FLOAT"], ["8 FLOAT"])
    assert not drawn(scene.store(vendor="gpu"))
