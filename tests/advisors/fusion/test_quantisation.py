"""Rows and weights of INT8: the forms that programs have, and what looks like one."""

from __future__ import annotations

import pytest

from advisor_core.api.testing import judge_rule
from tests.advisors.fusion.chains import Kernel, X, found_in, scene_of

XI, SCALE, COLUMNS = "2000,500 INT8", "2000,1 BF16", "1,500 BF16"  # 1 MB, 4 kB, 1 kB
WEIGHT, RESTORED, RESULT = "500,700 INT8", "500,700 BF16", "2000,700 BF16"  # 0.35 MB, 0.7 MB

LARGEST: list[Kernel] = [
    ("Abs", 10, (X,), (X,)),
    ("ReduceMax", 10, (X,), (SCALE,)),
    ("ClipByValueV2", 5, (SCALE,), (SCALE,)),
    ("RealDiv", 5, (SCALE,), (SCALE,)),
]

INTO_INT8: list[Kernel] = [
    ("RealDiv", 10, (X, SCALE), (X,)),
    ("Round", 10, (X,), (X,)),
    ("ClipByValueV2", 10, (X,), (X,)),
    ("Cast", 10, (X,), (XI,)),
]

# As torchao has it: no magnitude, but the negated minimum beside the maximum.
BOTH_ENDS: list[Kernel] = [
    ("ReduceMin", 10, (X,), (SCALE,)),
    ("ReduceMax", 10, (X,), (SCALE,)),
    ("Neg", 5, (SCALE,), (SCALE,)),
    ("Maximum", 5, (SCALE, SCALE), (SCALE,)),
    ("RealDiv", 5, (SCALE,), (SCALE,)),
    ("Reciprocal", 5, (SCALE,), (SCALE,)),
    ("Mul", 10, (X, SCALE), (X,)),
    ("Round", 10, (X,), (X,)),
    ("Add", 10, (X, SCALE), (X,)),
    *INTO_INT8[2:],
]

# Its scale is the distance between the ends, and the rows have an offset.
WITH_OFFSET: list[Kernel] = [
    *BOTH_ENDS[:2],
    ("Sub", 5, (SCALE, SCALE), (SCALE,)),
    ("RealDiv", 5, (SCALE,), (SCALE,)),
    ("RealDiv", 5, (SCALE, SCALE), (SCALE,)),
    ("Sub", 5, (SCALE, SCALE), (SCALE,)),
    ("RealDiv", 10, (X, SCALE), (X,)),
    ("Add", 10, (X, SCALE), (X,)),
    *INTO_INT8[1:],
]

PRODUCT: Kernel = ("MatMulV3", 30, (X, RESTORED), (RESULT,))
CAST: Kernel = ("Cast", 10, (WEIGHT,), (RESTORED,))
SCALED: Kernel = ("Mul", 10, (RESTORED, "1,700 BF16"), (RESTORED,))
RESTORING: list[Kernel] = [CAST, SCALED, PRODUCT]


@pytest.mark.parametrize("chain", [[*LARGEST, *INTO_INT8], BOTH_ENDS], ids=["magnitude", "both ends"])
def test_rows_are_quantised(chain: list[Kernel]) -> None:
    assert found_in(scene_of(chain)) == [("dynamic_quant", False, len(chain))]


def test_quantised_rows_are_read_and_written_once() -> None:
    found = judge_rule("NS048", scene_of([*LARGEST, *INTO_INT8]).store()).first
    # 2 MB in BF16, 1 MB in INT8 and the scales, at 1 TB/s.
    assert found.observation["fused_ns"] == pytest.approx(3_000, rel=0.01)
    assert found.observation["saving_ns"] == pytest.approx(70_000 - 3_000, rel=0.01)


@pytest.mark.parametrize(
    "chain",
    [
        [*LARGEST, *INTO_INT8[:3], ("Mul", 10, (X, SCALE), (X,))],
        INTO_INT8,
        WITH_OFFSET,
        [LARGEST[0], ("ReduceMax", 10, (X,), (COLUMNS,)), ("RealDiv", 10, (X, COLUMNS), (X,)), *INTO_INT8[1:]],
    ],
    ids=["stays in BF16", "a given scale", "an offset", "a scale for each column"],
)
def test_other_roundings_are_not_quantised_rows(chain: list[Kernel]) -> None:
    assert found_in(scene_of(chain)) == []


@pytest.mark.parametrize(
    "chain",
    [
        RESTORING,
        [CAST, ("Sub", 10, (RESTORED, "1,700 BF16"), (RESTORED,)), SCALED, PRODUCT],
        [("Transpose", 10, ("700,500 INT8",), (WEIGHT,)), *RESTORING],
        [CAST, PRODUCT, ("Mul", 10, (RESULT, "700 BF16"), (RESULT,))],
    ],
    ids=["scale", "zero point", "another order of axes", "scale behind the product"],
)
def test_weights_are_restored(chain: list[Kernel]) -> None:
    assert found_in(scene_of(chain)) == [("weight_dequant", False, len(chain))]


def test_the_product_of_a_restored_weight_stays() -> None:
    found = judge_rule("NS049", scene_of(RESTORING).store()).first
    assert found.observation["kept_ns"] == found.observation["fused_ns"] == 30_000
    assert found.observation["saving_ns"] == 20_000 and found.observation["saved_launches"] == 2


@pytest.mark.parametrize(
    "chain",
    [
        # What was quantised a moment ago is no weight.
        [INTO_INT8[3], ("Cast", 10, (XI,), (X,)), PRODUCT, ("Mul", 10, (RESULT, "700 BF16"), (RESULT,))],
        # The INT8 is the zero point of a weight that is only rounded.
        [
            ("Cast", 10, ("1,700 INT8",), ("1,700 BF16",)),
            ("Sub", 10, (RESTORED, "1,700 BF16"), (RESTORED,)),
            SCALED,
            PRODUCT,
        ],
        # Without a scale it is a mask or a table of numbers.
        [CAST, PRODUCT],
        # Not of INT8.
        [("Cast", 10, ("500,700 FLOAT",), (RESTORED,)), SCALED, PRODUCT],
    ],
    ids=["rows", "zero point alone", "no scale", "another type"],
)
def test_other_products_have_no_restored_weight(chain: list[Kernel]) -> None:
    assert found_in(scene_of(chain)) == []
