"""One program as a recording of an NPU and as one of a GPU: the truth is that both compute the same.

The folders of both are named as for `python -m tests.programs`; without them there is nothing to test.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from advisor_core.compare.compare import compare
from advisor_core.result.comparison import ComputedDifference
from tests.once import ResultOf
from tests.programs.__main__ import FOLDER, FOLDER_OF_GPUS

FAMILIES = (
    "llama_eager_train_adamw_for", "llama_sdpa_train_adamw_foreach", "megatron_llama_tp2_recompute", "sd15_unet_train",
    "qwen3moe_train_grouped_mm_cpu", "resnet50_train_sgd_foreach", "qwen3_sdpa_prefill_decode_dynamic",
)  # fmt: skip
"""A program of each family: written out and fused attention, recomputation, a UNet, experts, convolutions, tokens."""

OF_SHAPES = ("product", "grouped", "convolution", "attention")


@pytest.mark.parametrize("name", FAMILIES)
def test_one_program_on_two_devices(name: str, result_of: ResultOf) -> None:
    npu, gpu = (Path(os.environ.get(folder, "/nonexistent")) / name for folder in (FOLDER, FOLDER_OF_GPUS))
    if not (npu.is_dir() and gpu.is_dir()):
        pytest.skip(f"{FOLDER} and {FOLDER_OF_GPUS} do not name both recordings")
    on_gpu, on_npu = result_of(gpu), result_of(npu)
    there, back = compare(on_gpu, on_npu), compare(on_npu, on_gpu)
    assert there.amounts is not None and there.amounts.same and there.amounts.shared == pytest.approx(1.0)
    assert sum(origin.difference_ns for origin in there.origins) == there.verdict.difference_ns
    assert [_calls(row) for row in there.computed if row.kind in OF_SHAPES if len({*_calls(row)}) > 1] == []
    formulas = {row.what: _calls(row) for row in there.computed if row.kind == "computation"}
    assert formulas and all(before == after for before, after in formulas.values()), formulas
    assert back.verdict.difference_ns == -there.verdict.difference_ns
    assert {origin.path: -origin.difference_ns for origin in back.origins} == {
        origin.path: origin.difference_ns for origin in there.origins
    }


def _calls(row: ComputedDifference) -> tuple[float, float]:
    return row.division.calls_before, row.division.calls_after
