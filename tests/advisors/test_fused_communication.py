"""Kernels that communicate by themselves are known by their types, as they stand in operator definitions."""

from __future__ import annotations

import pytest

from advisors.fused_communication import FUSED_COMMUNICATION


@pytest.mark.parametrize(
    "operator",
    [
        "MoeDistributeDispatchV2", "MoeDistributeCombine", "DispatchFFNCombine", "AllGatherMatmul",
        "MatmulReduceScatter", "MatmulAllReduce", "MatmulAllreduceAddRmsnorm", "NotifyDispatch",
        "CamMoeDispatchNormal", "CamMoeCombineNormal", "GroupedMatMulAlltoAllv",
    ],
)  # fmt: skip
def test_communicates(operator: str) -> None:
    assert FUSED_COMMUNICATION.search(operator)


@pytest.mark.parametrize("operator", ["MatMulV3", "DispatchLayout", "MoeInitRoutingV2", "AddRmsNorm", "GroupedMatmul"])
def test_only_computes(operator: str) -> None:
    assert not FUSED_COMMUNICATION.search(operator)
