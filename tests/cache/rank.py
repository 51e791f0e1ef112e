"""A rank of three kernels and two host events, as its profiler writes it."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

KERNELS = "Name,Type,Accelerator Core,Start Time(us),Duration(us),Input Shapes\n" + "".join(
    f'matmul{n},MatMul,AI_CORE,{1000 + 10 * n}.000,{5 + n}.125,"""{n},8;8,8"""\n' for n in range(3)
)
TRACE = json.dumps(
    [
        {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "Python"}},
        *(
            {"ph": "X", "name": f"aten::add{n}", "cat": "cpu_op", "pid": 1, "tid": 1, "ts": f"{1000 + n}.5", "dur": 2.5}
            for n in range(2)
        ),
    ]
)


def write_rank(directory: Path) -> Path:
    """Files that are old enough to be kept."""
    output = directory / "ASCEND_PROFILER_OUTPUT"
    output.mkdir(parents=True)
    write(output / "kernel_details.csv", KERNELS)
    write(output / "trace_view.json", TRACE)
    return directory


def write(path: Path, text: str, seconds: float = 10) -> None:
    """A file that was last changed ``seconds`` ago."""
    path.write_text(text, encoding="utf-8")
    then = time.time() - seconds
    os.utime(path, (then, then))
