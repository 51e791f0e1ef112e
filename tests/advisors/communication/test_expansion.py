"""AIV expansion of collectives beside fused kernels that communicate themselves."""

from __future__ import annotations

import pytest

from advisor_core.api.testing import Scene, judge_rule


def decode(type_: str) -> Scene:
    return Scene().step(1, -10, 400).kernel(0, 100, "MatMulV2").kernel(110, 50, type_).kernel(170, 50, type_)


@pytest.mark.parametrize(
    "type_",
    ["MoeDistributeDispatchV2", "MoeDistributeCombine", "MatmulAllReduce", "AllGatherMatmul", "DispatchFFNCombine"],
)
def test_aiv_beside_kernels_that_communicate(type_: str) -> None:
    found = judge_rule("CO016", decode(type_).store(variables={"HCCL_OP_EXPANSION_MODE": "AIV"}))
    assert found.state == "fail" and found.first.observation["fused_calls"] == 2
    assert found.first.observation["operator"] == type_ and found.first.impact_ns == 0
    assert [one.hazards for one in found.first.advice] == [[]]


@pytest.mark.parametrize("variables", [{"HCCL_OP_EXPANSION_MODE": "AI_CPU"}, {"HCCL_ALGO": ""}])
def test_other_modes_are_in_order(variables: dict[str, str]) -> None:
    assert judge_rule("CO016", decode("MoeDistributeCombine").store(variables=variables)).state == "pass"


def test_without_such_kernels_or_without_recorded_variables_nothing_is_said() -> None:
    aiv = {"HCCL_OP_EXPANSION_MODE": "AIV"}
    assert judge_rule("CO016", decode("MatMulV2").store(variables=aiv)).state == "not_applicable"
    assert judge_rule("CO016", decode("MoeDistributeCombine").store(variables={})).state == "cannot_answer"
