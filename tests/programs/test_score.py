"""The score of a program that is small enough to be counted by hand."""

from __future__ import annotations

import json
from pathlib import Path

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
    truth = {"program": "small", "per_step": {"swiglu": 1, "rotary": 2}}
    (tmp_path / "small" / "truth.json").write_text(json.dumps(truth), encoding="utf-8")
    assert programs(tmp_path) == [tmp_path / "small"]
    program = scored(tmp_path / "small")
    assert (program.name, program.kernels, program.found) == ("small", 4, {"swiglu": 1})
    assert program.true == {"swiglu": 1, "rotary": 2}
