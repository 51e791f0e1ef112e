"""NS070: operators that no part of a layer needs."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor_core.api.testing import Scene, judge_rule
from advisors.network_structure.new_faces import is_needed
from tests.advisors.real import real_rank
from tests.advisors.shape_affinity.scenes import CHIP, VECTOR, times

ROWS, WIDTH = 2048, 4096


class Model:
    """Layers with attention and a feed-forward network, one kernel behind the other."""

    def __init__(self) -> None:
        self.scene, self.at = Scene(), 0.0

    def kernel(self, type_: str, shape: str, us: float = 50, *reads: str) -> None:
        self.scene.tensors(self.at, us, type_, [*reads, f"{shape} BF16"], [f"{shape} BF16"], core=VECTOR)
        self.at += us

    def product(self, inner: int, columns: int) -> None:
        times(self.scene, self.at, 400, f"{ROWS},{inner}", f"{inner},{columns}", f"{ROWS},{columns}")
        self.at += 400

    def layer(self, *extra: tuple[str, str, float], routes: bool = False) -> None:
        """``extra``: part, type and us of a kernel besides those that a layer needs."""
        hidden = f"{ROWS},{WIDTH}"
        self.kernel("RmsNorm", hidden)
        self.product(WIDTH, 3 * WIDTH)
        self.others("attention", extra, f"{ROWS},{3 * WIDTH}")
        self.kernel("Slice", hidden)
        qkv = [f"1,32,{ROWS},128 BF16"] * 3
        self.scene.tensors(self.at, 300, "FlashAttentionScore", qkv, qkv[:1], core="MIX_AIC")
        self.at += 300
        self.product(WIDTH, WIDTH)
        self.kernel("RmsNorm", hidden)
        if routes:
            self.kernel("MoeGatingTopKSoftmax", f"{ROWS},64")
        self.product(WIDTH, 11008)
        self.others("ffn", extra, f"{ROWS},11008")
        self.kernel("Gelu", f"{ROWS},11008")
        self.product(11008, WIDTH)

    def others(self, part: str, extra: tuple[tuple[str, str, float], ...], shape: str) -> None:
        for where, type_, us in extra:
            if where == part:
                self.kernel(type_, shape, us)


def model(*extra: tuple[str, str, float], layers: int = 4, in_layers: int = 4, routes: bool = False) -> Scene:
    made = Model()
    made.kernel("GatherV2", f"{ROWS},{WIDTH}")
    for number in range(layers):
        made.layer(*(extra if number < in_layers else ()), routes=routes)
    made.kernel("Sort", f"{ROWS},{WIDTH}", 900)  # outside of layers: sampling
    return made.scene


def test_a_sort_in_the_layers_is_a_new_face() -> None:
    found = judge_rule("NS070", model(("ffn", "Sort", 100)).store(chip=CHIP))
    seen = found.first.observation
    assert (seen["operator"], seen["part"], seen["operator_class"]) == ("Sort", "ffn", "reduction")
    assert (seen["kernels"], seen["in_layers"], seen["of_layers"]) == (4, 4, 4)
    assert seen["total_ns"] == 400_000 and seen["mean_ns"] == 100_000
    assert found.first.severity == "low" and found.first.impact_ns == 0
    assert found.verdict is not None and len(found.verdict.rows) == 1
    assert [type(reference).__name__ for reference in found.evidence()] == ["Rows", "Metric"]


def test_tables_that_each_layer_computes_anew_are_new_faces() -> None:
    """Sines and cosines are elementwise, and the same in all layers."""
    found = judge_rule("NS070", model(("attention", "Cos", 60), ("attention", "Sin", 50)).store(chip=CHIP))
    assert found.verdict is not None
    seen = [one.observation for one in found.verdict.rows]
    assert [(one["operator"], one["part"]) for one in seen] == [("Cos", "attention"), ("Sin", "attention")]


@pytest.mark.parametrize(
    ("scene", "state"),
    [
        (model(), "pass"),
        (model(("attention", "MaskedFill", 100), ("attention", "Transpose", 100), ("ffn", "ReduceSum", 100)), "pass"),
        (model(("ffn", "Sort", 100), routes=True), "pass"),  # the layer chooses experts
        (model(("ffn", "TransData", 100)), "pass"),  # a finding of its own
        (model(("ffn", "Sort", 10), in_layers=4), "pass"),  # 40 us of 6.6 ms
    ],
    ids=["ordinary", "needed", "routing", "conversion", "short"],
)
def test_what_layers_need_is_silent(scene: Scene, state: str) -> None:
    assert judge_rule("NS070", scene.store(chip=CHIP)).state == state


@pytest.mark.parametrize(
    ("operator", "kind", "part", "needed"),
    [
        ("GatherV3", "slice", "attention", True),
        ("GatherV3", "slice", "ffn", False),
        ("NonZero", "slice", "attention", False),
        ("DropOutDoMask", "random", "ffn", True),
        ("DSARandomNormal", "random", "ffn", False),
        ("Equal", "elementwise", "attention", False),
        ("SomethingNew", "other", "attention", False),
        ("SomethingNew", "other", "cache", True),
    ],
)
def test_needs_of_parts(operator: str, kind: str, part: str, needed: bool) -> None:
    assert is_needed(operator, kind, part, routes=False) is needed


def test_recorded_layers_have_no_new_face(profiles: Path) -> None:
    """Two layers of GPT-3; a network without layers is not judged."""
    found = judge_rule("NS070", real_rank(profiles, "gpt3-kernel-details-only_ascend_pt", 0))
    assert found.state == "pass" and found.observed is not None and found.observed.frame["total_ns"].max() == 0
    assert judge_rule("NS070", real_rank(profiles, "alexnet-ddp-text-level1", 0)).state == "cannot_answer"
