"""CO020: transfers over RDMA that take as long as lost packets do."""

from __future__ import annotations

import pytest

from advisor_core.api.testing import Scene, judge_rule

S, GB = 1e6, 10**9


def transfer(seconds: float, size: int, transport: str = "RDMA") -> Scene:
    scene = Scene().kernel(0, 100)
    scene.collective(100, 1000, [(100, 1100, None)], size=GB // 100, transport=transport)
    return scene.collective(2000, seconds * S, [(2000, 2000 + seconds * S, None)], size=size, transport=transport)


def test_a_transfer_that_stands_for_the_timeout_is_found() -> None:
    found = judge_rule("CO020", transfer(4.4, GB).store())
    seen = found.first.observation
    assert found.state == "fail" and (seen["stalled_operations"], seen["operations"]) == (1, 2)
    assert seen["longest_ns"] == 4.4e9
    assert seen["lost_ns"] == pytest.approx(4.4e9 - 1e9 / 20)


def test_time_that_the_bytes_need_is_no_stall() -> None:
    assert judge_rule("CO020", transfer(4.4, 20 * GB).store()).state == "pass"


def test_inside_a_server_there_is_no_rdma() -> None:
    assert judge_rule("CO020", transfer(4.4, GB, "HCCS").store()).state == "not_applicable"
