"""The score of a program that is small enough to be counted by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.programs.score import programs, scored

HEAD = (
    "Step Id,Device_id,Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),Block Dim,"
    "Input Shapes,Input Data Types,Input Formats,Output Shapes,Output Data Types,Output Formats"
)
KERNELS = [
    ("MatMulV3", "64,16;16,32", "64,32"),
    ("Swish", "64,32", "64,32"),
    ("MatMulV3", "64,16;16,32", "64,32"),
    ("Mul", "64,32;64,32", "64,32"),
]


def test_a_program_is_scored_beside_its_truth(tmp_path: Path) -> None:
    folder = tmp_path / "small" / "small_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
    folder.mkdir(parents=True)
    lines = [HEAD]
    for step in (1, 2):
        for number, (type_, reads, writes) in enumerate(KERNELS):
            at = 1_700_000_000_000_000 + step * 100 + number * 10
            dtypes = ";".join(["DT_BF16"] * len(reads.split(";")))
            formats = ";".join(["ND"] * len(reads.split(";")))
            lines.append(
                f'{step},0,aclnn_{type_},{type_},AI_VECTOR_CORE,{at}.000,9.000,1.000,48,"""{reads}""",{dtypes},{formats},'
                f'"""{writes}""",DT_BF16,ND'
            )
    (folder / "kernel_details.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert programs(tmp_path) == []
    truth = {"program": "small", "kernels": 8, "occurrences": [gate([1, 3]), gate([4, 5, 6]), gate([0], "rotary")]}
    (tmp_path / "small" / "occurrences.json").write_text(json.dumps(truth), encoding="utf-8")
    assert programs(tmp_path) == [tmp_path / "small"]
    program = scored(tmp_path / "small")
    assert (program.name, program.kernels, program.layers) == ("small", 8, None)
    # Of the two gates found one is where it is, of 9 us each; the other has one kernel of the three only.
    found = program.scores["swiglu", False]
    assert (found.true, found.found, found.more) == (2, 1, 1)
    assert found.share == 5 * 9 / 72 and found.gain_ns == 15_000 and found.gain_found_ns > 0
    other = program.scores["rotary", False]
    assert (other.true, other.found, other.more) == (1, 0, 0)


def gate(kernels: list[int], name: str = "swiglu") -> dict[str, object]:
    return {"name": name, "backward": False, "kernels": kernels, "bytes": 12_288}


def test_a_program_with_other_kernels_is_no_program(tmp_path: Path) -> None:
    test_a_program_is_scored_beside_its_truth(tmp_path)
    truth = {"program": "small", "kernels": 9, "occurrences": []}
    (tmp_path / "small" / "occurrences.json").write_text(json.dumps(truth), encoding="utf-8")
    with pytest.raises(ValueError, match="8 kernels of 9"):
        scored(tmp_path / "small")
