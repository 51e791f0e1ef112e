"""Shapes of a recorded job of AlexNet, calculated from the csv file."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import pytest

from advisor_core.api.testing import judge_rule
from tests.advisors.real import real_rank


def products_in_file(profiles: Path, rank: int) -> list[tuple[str, str, float, float]]:
    """(left, right, TFLOP/s, us) of every product of the export, which are [32, k] x [n, k] and the like, in FP32."""
    folder = profiles / "ascend" / "alexnet-ddp-text-level1" / f"rank{rank}_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
    found = []
    with (folder / "kernel_details.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["Type"].startswith("MatMul"):
                left, right = row["Input Shapes"].strip('"').split(";")[:2]
                out = [int(axis) for axis in row["Output Shapes"].strip('"').split(",")]
                elements = math.prod(int(axis) for axis in left.split(","))
                us = float(row["Duration(us)"])
                found.append((left, right, 2 * out[0] * out[1] * (elements / out[0]) / us / 1e6, us))
    return found


def test_alexnet_axes_of_16_kib_agree_with_the_csv_file(profiles: Path) -> None:
    """An operand that ends in 4096 FP32 numbers is 16 KiB wide; small operands (under a tenth) do not count."""
    mine = []
    for left, right, tflops, us in products_in_file(profiles, 0):
        shapes = [[int(axis) for axis in text.split(",")] for text in (left, right)]
        sizes = [math.prod(shape) for shape in shapes]
        if any(shape[-1] == 4096 and size >= 0.1 * sum(sizes) for shape, size in zip(shapes, sizes, strict=True)):
            mine.append((tflops, us))
    assert len(mine) == 7
    found = judge_rule("SA002", real_rank(profiles, "alexnet-ddp-text-level1", 0)).observed
    assert found is not None
    row = found.frame.set_index("axis").loc[4096]
    assert row["tail_bytes"] == 16_384 and row["strided"] and not row["unaligned"] and row["kernels"] == 7
    total = sum(us for _, us in mine)
    assert row["total_ns"] == pytest.approx(total * 1e3) and total == pytest.approx(363.166)
    assert row["tflops"] == pytest.approx(sum(tflops * us for tflops, us in mine) / total)
    # The axes of 9216 and 1000 numbers are 36,864 = 72 x 512 and 4000 bytes.
    assert set(found.frame["axis"]) == {4096}


def test_alexnet_blocks_agree_with_the_csv_file(profiles: Path) -> None:
    """[32, 4096] x [1000, 4096]: 8 blocks of 128 x 128 for 24 cores. The kernel reports 21: it divides otherwise."""
    found = judge_rule("SA004", real_rank(profiles, "alexnet-ddp-text-level1", 0)).observed
    assert found is not None
    row = found.frame[(found.frame["n"] == 1000) & (found.frame["m"] == 32)].iloc[0]
    spent = [us for left, right, _, us in products_in_file(profiles, 0) if (left, right) == ("32,4096", "1000,4096")]
    assert row["total_ns"] == pytest.approx(1e3 * sum(spent)) and sum(spent) == pytest.approx(57.241)
    assert (row["blocks"], row["recorded_blocks"], row["efficiency"]) == (8, 21, pytest.approx(1 / 3))
    whole = [us for left, right, _, us in products_in_file(profiles, 0) if (left, right) == ("32,9216", "4096,9216")]
    widest = found.frame[found.frame["n"] == 4096].sort_values("gain_ns").iloc[-1]
    assert (widest["blocks"], widest["recorded_blocks"]) == (16, 16)  # here the kernel divides as the rule says
    assert widest["gain_ns"] == pytest.approx(1e3 * sum(whole) * 8 / 24)


def test_alexnet_says_nothing_of_relevance(profiles: Path) -> None:
    store = real_rank(profiles, "alexnet-ddp-text-level1", 0)
    assert {rule: judge_rule(rule, store).state for rule in ("SA001", "SA002", "SA003", "SA004")} == dict.fromkeys(
        ("SA001", "SA002", "SA003", "SA004"), "pass"
    )
    assert {judge_rule(rule, store).state for rule in ("SA005", "SA006", "SA007")} == {"not_applicable"}
    low = real_rank(profiles, "alexnet-ddp-text-level0", 0)
    assert {judge_rule(f"SA00{number}", low).state for number in range(1, 8)} == {"cannot_answer"}


def test_recorded_rows_suit_all_kernels_together(profiles: Path) -> None:
    """4096 rows of GPT-3 fill all rounds but for a thousandth. AlexNet's 32 samples are one block of rows; its softmax
    alone would like 48, which all of these kernels take as well."""
    found = judge_rule("SA009", real_rank(profiles, "gpt3-kernel-details-only_ascend_pt", 0))
    assert found.state == "pass" and found.observed is not None
    assert found.observed.frame[["rows", "good_rows"]].to_numpy().tolist() == [[4096, 4096]]
    found = judge_rule("SA009", real_rank(profiles, "alexnet-ddp-text-level1", 0))
    assert found.state == "pass" and found.observed is not None and not found.observed.frame["differ"].any()
