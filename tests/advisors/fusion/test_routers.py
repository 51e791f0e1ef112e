"""The choice of experts in the forms that programs have, and what looks like one."""

from __future__ import annotations

import pytest

from tests.advisors.fusion.chains import (
    CHOSEN,
    EXPERTS,
    GATED,
    HALF,
    PERMUTE,
    PERMUTE_BACK,
    ROUTER,
    ROUTER_BACK,
    Kernel,
    found_in,
    scene_of,
)

SUM = "1000,1 BF16"
SIGMOID: Kernel = ("Sigmoid", 10.0, (HALF,), (HALF,))
CHOICE = ROUTER[1]
GATHERED: Kernel = ("GatherElementsV2", 10, (HALF, EXPERTS), (CHOSEN,))
DIVIDED: list[Kernel] = [ROUTER[2], ("Add", 10, (SUM,), (SUM,)), ROUTER[3], ("Muls", 10, (CHOSEN,), (CHOSEN,))]
MASK = "1000,1000 BOOL"

# A bias per expert, the best groups by their two best experts, and the best experts of those.
GROUPS: list[Kernel] = [
    ("Add", 10, (HALF, "1000 BF16"), (HALF,)),
    ("TopKV2", 10, ("1000,20,50 BF16",), ("1000,20,2 BF16", "1000,20,2 INT64")),
    ("ReduceSum", 10, ("1000,20,2 BF16",), ("1000,20 BF16",)),
    ("TopKV2", 10, ("1000,20 BF16",), ("1000,4 BF16", "1000,4 INT64")),
    ("ScatterElementsV2", 10, ("1000,20 BF16", "1000,4 INT64"), ("1000,20 BF16",)),
    ("BroadcastTo", 10, ("1000,20,50 BF16",), ("1000,20,50 BF16",)),
    ("Cast", 10, (HALF,), (MASK,)),
    ("MaskedFill", 10, (HALF, MASK), (HALF,)),
]


@pytest.mark.parametrize(
    "chain",
    [
        [*ROUTER, ("Cast", 10, (CHOSEN,), ("1000,8 FLOAT",))],
        ROUTER[:2],
        [*ROUTER[:2], ("Muls", 10, (CHOSEN,), (CHOSEN,))],
        [SIGMOID, CHOICE, *DIVIDED[:3]],
        [SIGMOID, *GROUPS[:1], CHOICE, GATHERED, *DIVIDED],
        [SIGMOID, *GROUPS, CHOICE, GATHERED, *DIVIDED],
        [CHOICE, ("SoftmaxV2", 10, (CHOSEN,), (CHOSEN,))],
        [CHOICE, ("SoftmaxV2", 10, (CHOSEN,), (CHOSEN,)), ("ScatterElementsV2", 9, (HALF, EXPERTS, CHOSEN), (HALF,))],
    ],
    ids=["softmax", "not divided", "scaled", "sigmoid", "bias", "groups", "softmax of the chosen", "in all places"],
)
def test_routers(chain: list[Kernel]) -> None:
    assert found_in(scene_of(chain)) == [("moe_routing", False, len(chain))]


def test_a_router_reads_a_product() -> None:
    """Right before it: what balances the load of the experts comes back to the scores later, for the loss."""
    between: Kernel = ("Abs", 10, ("77,77 BF16",), ("77,77 BF16",))
    assert found_in(scene_of([between] * 6, ROUTER)) == [("moe_routing", False, 4)]
    assert found_in(scene_of([between] * 7, ROUTER)) == []
    assert found_in(scene_of([("Abs", 10, (HALF,), (HALF,)), *ROUTER])) == []


def test_a_vocabulary_has_no_router() -> None:
    """Nor a sampler that draws among the most likely words."""
    logits, best = "300,30000 BF16", "300,50 BF16"
    product: Kernel = ("MatMulV3", 1, ("300,4 BF16", "4,30000 BF16"), (logits,))
    choice: Kernel = ("TopKV2", 10, (logits,), (best, "300,50 INT64"))
    for drawn in ([("SoftmaxV2", 10, (logits,), (logits,)), choice], [choice, ("SoftmaxV2", 10, (best,), (best,))]):
        assert found_in(scene_of([product, *drawn])) == []


@pytest.mark.parametrize(
    "back",
    [
        ROUTER_BACK,
        ROUTER_BACK[-3:],
        [*ROUTER_BACK[:-1], ("SigmoidGrad", 10, (HALF, HALF), (HALF,))],
        [
            ("GatherElementsV2", 9, (HALF, EXPERTS), (CHOSEN,)),
            ("SoftmaxGrad", 9, (CHOSEN, CHOSEN), (CHOSEN,)),
            *ROUTER_BACK[-3:-1],
        ],
    ],
    ids=["softmax", "not divided", "sigmoid", "softmax of the chosen"],
)
def test_what_autograd_runs_for_a_router(back: list[Kernel]) -> None:
    assert found_in(scene_of(ROUTER, [GATED], back)) == [("moe_routing", False, 4), ("moe_routing", True, len(back))]


def test_rows_are_ordered_by_a_sort() -> None:
    assert found_in(scene_of(PERMUTE, PERMUTE_BACK)) == [
        ("moe_token_permute", False, 3),
        ("moe_token_permute", True, 2),
    ]
    assert found_in(scene_of(PERMUTE[1:])) == []
    # Without the division of its places a sort does not repeat rows.
    assert found_in(scene_of([PERMUTE[0], PERMUTE[2]])) == []
