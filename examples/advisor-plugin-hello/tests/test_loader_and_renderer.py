"""The loader reads a profile of its own format, the report is written in a format of its own."""

from __future__ import annotations

from importlib.metadata import entry_points
from pathlib import Path

import pytest
from advisor_plugin_hello.kernel_list import KernelList
from advisor_plugin_hello.titles import Titles

from advisor_core.api.loaders import InputError


def write(folder: Path, content: str) -> Path:
    (folder / "job.kernels.csv").write_text(content, encoding="utf-8")
    return folder


def test_reads_a_list_of_kernels(tmp_path: Path) -> None:
    (source,) = KernelList().discover(write(tmp_path, "type,start_us,duration_us\nMatMulV3,10,2.5\n"))
    profile = KernelList().load(source)
    kernels = profile.tables["kernels"]
    assert kernels.frame["duration_ns"].tolist() == [2_500]
    assert kernels.positions(kernels.frame.index.to_numpy()).tolist() == [2]


def test_names_a_file_that_cannot_be_used(tmp_path: Path) -> None:
    (source,) = KernelList().discover(write(tmp_path, "type\nMatMulV3\n"))
    with pytest.raises(InputError, match=r"job\.kernels\.csv"):
        KernelList().load(source)


def installed() -> bool:
    return any(point.value == "advisor_plugin_hello" for point in entry_points(group="npu_advisor.v1"))


@pytest.mark.skipif(not installed(), reason="a run finds installed plugins only")
def test_a_whole_run(tmp_path: Path, advisor_run) -> None:
    rows = "".join(f"HelloScale,{10 * n},2\n" for n in range(100))
    result = advisor_run(write(tmp_path, f"type,start_us,duration_us\n{rows}"))
    paths = {entry.path for step in result.ledger for entry in step.entries}
    assert "compute/elementwise" in paths
    assert Titles().render(result, "en").count("\n") == len(result.findings)
    assert result.labels["heading.short_share"].zh == "短 kernel 占比"
