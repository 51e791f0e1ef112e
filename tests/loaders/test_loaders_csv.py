"""CSV: quirks of the exports, damage in single rows, and the physical line of every row."""

from __future__ import annotations

import csv
import io
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor_core.contracts.missing import Unavailable
from advisor_core.contracts.tables import OPERATORS
from advisor_core.loaders.ascend_pytorch.files import DELIVERABLES
from advisor_core.loaders.readers.csv_file import Column, CsvTable, blocks, read_csv
from advisor_core.loaders.readers.files import HashedFile
from advisor_core.loaders.readers.problems import Problems
from advisor_core.result.run import Diagnostic

Read = Callable[[bytes, CsvTable], tuple[pd.DataFrame, list[Diagnostic]]]
TABLES = {deliverable.name: deliverable.csv for deliverable in DELIVERABLES if deliverable.csv is not None}
KERNELS = TABLES["kernel_details.csv"]
HEAD = b"Step Id,Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),Block Dim\r\n"


def row(name: str = "k", start: str = "1736408883704643.212\t", duration: str = "53.741", block: str = "32") -> bytes:
    return f"50,{name},MatMul,AI_CORE,{start},{duration},0,{block}\r\n".encode()


def test_quirks_of_kernel_details(csv_frame: Read) -> None:
    content = (
        b"\xef\xbb\xbfStep Id,Device_id,Model ID,Task ID,Stream ID,Op Name,OP Type,Task Type,Task Start Time(us),"
        b"Task Duration(us),Task Wait Time(us),Block Num,Input Shapes,Input Data Types,Input Formats,aic_mac_time(us)\n"
        b'50,0,4294967295,11,2,conv,Conv2D,AI_CORE,1736408883704643.212\t,53.741,0,32,"""32,3;64""",'
        b"FLOAT;DT_BF16,FORMAT_ND;NCHW,1.5\n"
        b"50,0,4294967295,N/A,N/A,hcom_allReduce_,N/A,HCCL,1736408883704700,0.60003125,0,0,N/A,N/A,N/A,N/A\n"
    )
    frame, said = csv_frame(content, KERNELS)
    assert said == []
    assert frame["start_ns"].tolist() == [1736408883704643212, 1736408883704700000]
    assert frame["duration_ns"].tolist() == [53741, 600]
    assert frame["model"].tolist() == [-1, -1] and frame["task"].tolist() == [11, -1]
    assert frame["core"].tolist() == ["AI_CORE", "COMMUNICATION"] and frame["type"].tolist() == ["Conv2D", ""]
    assert frame["input_shapes"].tolist() == ["32,3;64", ""] and frame["block_dim"].tolist() == [32, 0]
    assert frame["input_dtypes"].tolist() == ["FLOAT;BF16", ""] and frame["input_formats"].tolist() == ["ND;NCHW", ""]
    assert frame["aic_mac_ns"].tolist()[0] == 1500.0 and np.isnan(frame["aic_mac_ns"][1])
    assert frame["aiv_vec_ns"].isna().all() and frame["source_row"].tolist() == [2, 3]


def test_missing_step_id_is_no_step(csv_frame: Read) -> None:
    frame, _ = csv_frame(b"Name,Start Time(us),Duration(us)\nk,1.000\t,2\n", KERNELS)
    assert frame["step"].tolist() == [-1] and frame["wait_ns"].tolist() == [-1]


@pytest.mark.parametrize(
    ("bad", "column"),
    [
        (row(""), "Name"),
        (row("bad", duration="abc"), "Duration(us)"),
        (row("bad", duration="-3.5"), "Duration(us)"),
        (row("bad", duration="3600000001"), "Duration(us)"),
        (row("bad", duration=""), "Duration(us)"),
        (row("bad", start="soon"), "Start Time(us)"),
        (row("bad", start="-5"), "Start Time(us)"),
        (row("bad", start="9999999999999999.999"), "Start Time(us)"),
        (b"50,bad,MatMul\r\n", "8"),
        (row("bad").replace(b"\r\n", b",1,2\r\n"), "8"),
    ],
)
def test_a_bad_row_is_left_out_and_said(csv_frame: Read, bad: bytes, column: str) -> None:
    frame, said = csv_frame(HEAD + row("a") + bad + row("b"), KERNELS)
    assert frame["name"].tolist() == ["a", "b"] and frame["source_row"].tolist() == [2, 4]
    assert frame["start_ns"].tolist() == [1736408883704643212] * 2
    (diagnostic,) = said
    assert "file.csv:3" in diagnostic.message.en and column in diagnostic.message.en
    assert "file.csv:3" in diagnostic.message.zh


def test_a_bad_value_that_is_not_essential_is_absent(csv_frame: Read) -> None:
    frame, said = csv_frame(HEAD + row("a") + row("b", block="many") + row("c", block="7.0"), KERNELS)
    assert frame["block_dim"].tolist() == [32, -1, 7]
    assert "file.csv:3 'many'" in said[0].message.en and "Block Dim" in said[0].message.en


def test_many_bad_rows_are_counted(csv_frame: Read) -> None:
    frame, said = csv_frame(HEAD + row() + row(duration="x") * 50, KERNELS)
    assert len(frame) == 1 and len(said) == 1
    assert said[0].message.en.count("file.csv:") == 4 and "50 rows" in said[0].message.en  # the file and three rows


def test_bytes_that_are_not_utf8_do_not_lose_the_row(csv_frame: Read) -> None:
    frame, _ = csv_frame(HEAD + row("a") + row("b").replace(b"b", b"\xff", 1), KERNELS)
    assert frame["name"].tolist() == ["a", "�"]


def test_a_quote_that_is_never_closed(csv_frame: Read) -> None:
    frame, said = csv_frame(HEAD + row("a") + row('"oops') + row("b"), KERNELS)
    assert frame["name"].tolist() == ["a", "b"] and frame["source_row"].tolist() == [2, 4]
    assert "file.csv:3" in said[0].message.en


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b" \r\n", "is empty"),
        (HEAD, "no usable row"),
        (HEAD.rstrip(), "no usable row"),
        (HEAD + row(duration="x"), "no usable row"),
        (HEAD.replace(b"Duration(us)", b"Time") + row(), "no column Duration(us)"),
        (b"PK\x03\x04\x00\x00\xff", "not a CSV"),
        (b"\xff\xfe\x00" * 50, "not a CSV"),
    ],
)
def test_no_table(csv_frame: Read, content: bytes, message: str) -> None:
    with pytest.raises(Unavailable, match=r"file.csv") as raised:
        csv_frame(content, KERNELS)
    assert message in raised.value.reason.en and "file.csv" in raised.value.reason.zh


def test_release_before_allocation(csv_frame: Read) -> None:
    frame, said = csv_frame(
        b"Name,Size(KB),Allocation Time(us),Release Time(us)\na,1,10.000\t,12.000\t\nb,-2,,5.000\t\nc,1,10,9\n",
        TABLES["operator_memory.csv"],
    )
    assert frame["name"].tolist() == ["a", "b"] and frame["bytes"].tolist() == [1024.0, -2048.0]
    assert frame["allocation_ns"].tolist() == [10000, -1] and "file.csv:4" in said[0].message.en


def test_units_of_module_memory(csv_frame: Read) -> None:
    for unit, factor in (("KB", 1024), ("MB", 1 << 20)):
        head = f"Component,Timestamp(us),Total Reserved({unit}),Device\n".encode()
        frame, _ = csv_frame(head + b"APP,1.000\t,2.5,NPU:0\n", TABLES["npu_module_mem.csv"])
        assert frame["reserved_bytes"].tolist() == [2.5 * factor]


def test_equal_names_in_a_header_do_no_harm(csv_frame: Read) -> None:
    frame, _ = csv_frame(b"Name,Start Time(us),Duration(us),Name\nk,1,2,other\n", KERNELS)
    assert frame["name"].tolist() == ["k"]


TEXT = st.text(alphabet='ab",;\n é', max_size=12)
TABLE = CsvTable(
    OPERATORS,
    (
        Column("name", ("Name",), clean=str),
        Column("call_stack", ("Call Stack",), clean=str),
        Column("host_total_ns", ("Host",), "span", essential=True),
    ),
)


@given(
    rows=st.lists(st.tuples(TEXT, TEXT, st.integers(0, 999)), min_size=1, max_size=12),
    newline=st.sampled_from(["\n", "\r\n"]),
    blank=st.sets(st.integers(0, 12)),
    final=st.booleans(),
    broken=st.booleans(),
)
def test_lines_and_values_are_those_of_the_csv_module(
    rows: list[tuple[str, str, int]], newline: str, blank: set[int], final: bool, broken: bool
) -> None:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator=newline)
    writer.writerow(["Name", "Call Stack", "Host"])
    lines = []
    for number, (name, stack, host) in enumerate(rows):
        if number in blank:
            text.write(newline)
        lines.append(1 + text.getvalue().count("\n"))
        writer.writerow([name, stack, host])
    if broken:  # forces the tolerant way
        writer.writerow(["bad", "bad", "bad"])
    content = text.getvalue() if final else text.getvalue().removesuffix(newline)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "f.csv")
        path.write_text(content, encoding="utf-8", newline="")
        with HashedFile(path) as file:
            frame, _ = read_csv(file, TABLE, Problems("f.csv"))
    assert frame["source_row"].tolist() == lines
    assert frame["name"].astype(str).tolist() == [name for name, _, _ in rows]
    assert frame["call_stack"].astype(str).tolist() == [stack for _, stack, _ in rows]
    assert frame["host_total_ns"].tolist() == [host * 1000 for _, _, host in rows]


@given(
    rows=st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=12),
    newline=st.sampled_from(["\n", "\r\n"]),
    size=st.integers(1, 80),
)
def test_blocks_of_any_size_hold_the_same_records(rows: list[tuple[str, str]], newline: str, size: int) -> None:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator=newline)
    records, lines = [], []
    for name, stack in rows:
        start = len(text.getvalue())
        lines.append(1 + text.getvalue().count("\n"))
        writer.writerow([name, stack, "x"])
        records.append(text.getvalue()[start:].encode())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "f.csv")
        path.write_bytes(b"".join(records))
        problems = Problems("f.csv")
        with HashedFile(path) as file:
            cut = list(blocks(file, b"", 1, problems, size))
    assert problems.diagnostics() == []
    assert b"".join(block.data for block in cut) == b"".join(records)
    assert [line for block in cut for line in block.lines.tolist()] == lines
    starts = [
        block.data[a:b]
        for block in cut
        for a, b in zip(block.starts.tolist(), [*block.starts.tolist()[1:], len(block.data)], strict=True)
    ]
    assert starts == records
