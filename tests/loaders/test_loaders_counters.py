"""What is counted beside the times of kernels: sampled rates, network ports, the L2 cache, further core counters."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor_core.contracts.profile import Profile
from advisor_core.loaders.ascend_pytorch.loader import AscendPytorchLoader
from advisor_core.loaders.msprof.loader import MsprofLoader
from advisor_core.loaders.readers import ports
from advisor_core.loaders.readers.trace_json import Trace
from advisor_core.result.run import Diagnostic
from tests.loaders.databases import T0, Texts, write

MIB = 2**20
KERNELS = "Name,Type,Accelerator Core,Start Time(us),Duration(us),Stream ID,Task ID"
PORT = (
    "Device_id,Timestamp(us),Bandwidth(MB/s),Rx Bandwidth efficiency(%),rxPacket/s,rxError rate(%),rxDropped rate(%),"
    "Tx Bandwidth efficiency(%),txPacket/s,txError rate(%),txDropped rate(%),funcId\n"
)


def counter(name: Any, ts: Any, **args: Any) -> dict[str, Any]:
    return {"ph": "C", "name": name, "pid": 9, "tid": 0, "ts": ts, "args": args}


def rates(frame: pd.DataFrame) -> dict[str, list[float]]:
    keys = ["part", "channel", "counter", "unit"]
    return {" ".join(map(str, key)): own["value"].tolist() for key, own in frame.groupby(keys, observed=True)}


def test_counters_of_a_trace(trace: Callable[..., tuple[Trace, list[Diagnostic], Path]]) -> None:
    events = [
        counter("HBM 0/Read", "10.5", **{"Read(MB/s)": 2.5}),
        counter("HBM 1/Write", 11, **{"Write(MB/s)": 0}),
        counter("LLC 0 Read/Throughput", "10", **{"Throughput(MB/s)": 4}),
        counter("LLC 0 Read/Hit Rate", "10", **{"Hit Rate(%)": 0.8}),
        counter("LLC 1 Read/Hit Rate", "10", **{"Hit Rate(%)": 85.5}),
        counter("HCCS", "10", Rx=1, Tx=2),
        counter("PCIe_post", "10", Rx=3, Tx=4),
        counter("PCIe_nonpost_latency", "10", Rx=0, Tx=1.5),
        counter("QoS OTHERS", "10", value=7),
        counter("Aicore Voltage", "10", value=900),
        counter(["HBM"], "10", **{"Read(MB/s)": 1}),
        counter("HBM 0/Read", "12", **{"Read(MB/s)": -1}),
        counter("HBM 0/Read", "12", **{"Read(MB/s)": "much"}),
        counter("HBM 0/Read", None, **{"Read(MB/s)": 1}),
        counter("HBM 0/Read", "13"),
    ]
    read, said, _ = trace(json.dumps(events).encode())
    frame = read.frames["counters"]
    assert rates(frame) == {
        "HBM 0 read B/s": [2.5 * MIB],
        "HBM 1 write B/s": [0],
        "LLC 0 read B/s": [4 * MIB],
        "LLC 0 read hits ratio": [0.8],
        "LLC 1 read hits ratio": [0.855],
        "HCCS  receive B/s": [MIB],
        "HCCS  transmit B/s": [2 * MIB],
        "PCIe  receive posted B/s": [3 * MIB],
        "PCIe  transmit posted B/s": [4 * MIB],
        "PCIe  latency non-posted ns": [1500],
        "QoS OTHERS moved B/s": [7 * MIB],
    }
    assert frame["time_ns"].is_monotonic_increasing
    assert "4" in said[0].message.en and "HBM" in said[0].message.en


def test_a_trace_without_rates(trace: Callable[..., tuple[Trace, list[Diagnostic], Path]]) -> None:
    read, _, _ = trace(json.dumps([counter("AI Core Freq", "1", MHz=1800)]).encode())
    assert "HBM" in read.missing["counters"].reason.en


def ascend(directory: Path, **files: str) -> Profile:
    output = directory / "x_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
    output.mkdir(parents=True)
    for name, content in {"kernel_details": f"{KERNELS}\nk,MatMul,AI_CORE,1,2,3,4\n", **files}.items():
        (output / f"{name}.csv").write_text(content)
    (found,) = AscendPytorchLoader().discover(directory)
    return AscendPytorchLoader().load(found)


def test_ports_of_two_files(tmp_path: Path) -> None:
    nic = PORT + "0,1000.5\t,100,0.1,20,0,0,0.2,30,0,0,0\n0,2000.5,100,0.1,20,0,0.5,0.2,30,0,0,0\n"
    profile = ascend(tmp_path, nic=nic, roce=PORT + "0,1500,100,0.1,20,0,0,0.2,30,0,0,1\n")
    table = profile.tables["ports"]
    assert table.frame["port"].tolist() == ["NIC 0", "NIC 0", "RoCE 1"]
    assert table.frame["faulty"].tolist() == [False, True, False]
    assert table.frame["received"].isna().all() and table.frame["transmit_packets"].tolist() == [30, 30, 30]
    rows = table.frame["source_row"].to_numpy()
    assert table.source.positions(rows).tolist() == [2, 3, 2]
    assert [Path(name).name for name in table.source.tables(rows)] == ["nic.csv", "nic.csv", "roce.csv"]


@pytest.mark.parametrize("nic", ["", "Device_id,funcId\n0,1\n", PORT, PORT + "0,tomorrow,100\n", "\0\0"])
def test_a_broken_file_of_ports_costs_its_table(tmp_path: Path, nic: str) -> None:
    profile = ascend(tmp_path, nic=nic)
    assert "nic.csv" in profile.missing["ports"].reason.en and "sys_io" in str(profile.missing["ports"].collect)
    assert "kernels" in profile.tables and any("nic.csv" in said.message.en for said in profile.diagnostics)


def test_hits_of_the_l2_cache_by_task(tmp_path: Path) -> None:
    rows = "3,4,N/A,0.25,k\n3,5,0.5,1.5,k\n3,6,1.5,0,k\n"
    frame = (
        ascend(tmp_path, l2_cache=f"Stream Id,Task Id,Hit Rate,Victim Rate,Op Name\n{rows}").tables["l2_cache"].frame
    )
    assert frame["hit_rate"].fillna(-1).tolist() == [-1, 0.5, -1], "a rate above 1 is none"
    assert frame[["stream", "task", "victim_rate"]].to_numpy().tolist() == [[3, 4, 0.25], [3, 5, 1.5], [3, 6, 0]]


def test_a_file_of_ports_alone_is_no_profile(tmp_path: Path) -> None:
    (tmp_path / "nic.csv").write_text(PORT)
    assert not AscendPytorchLoader().discover(tmp_path)


@pytest.mark.parametrize("file", ["hccs.csv", "pcie.csv", "soc_pmu.csv"])
def test_what_is_not_read_is_said(tmp_path: Path, file: str) -> None:
    profile = ascend(tmp_path, **{file.removesuffix(".csv"): "Device_id,Mode,Max,Min,Average\n0,Tx,1,1,1\n"})
    assert [file in said.message.en for said in profile.diagnostics if "not read" in said.message.en] == [True]


def test_further_counters_of_kernels(tmp_path: Path) -> None:
    head = f"{KERNELS},aic_main_mem_read_bw(GB/s),aiv_vec_bank_cflt_ratio,write_cache_hit,read_main_memory_datas(KB)"
    rows = "a,MatMul,AI_CORE,1,2,3,4,2,N/A,7,3\nb,Add,AI_VECTOR_CORE,5,2,3,5,N/A,0.5,x,N/A\n"
    table = ascend(tmp_path, kernel_details=f"{head}\n{rows}").tables["core_counters"]
    assert table.frame[["start_ns", "task", "counter", "value"]].astype(object).to_numpy().tolist() == [
        [1000, 4, "aic_main_mem_read_bw", 2 * 2**30],
        [1000, 4, "write_cache_hit", 7],
        [1000, 4, "read_main_memory_datas", 3 * 1024],
        [5000, 5, "aiv_vec_bank_cflt_ratio", 0.5],
    ]
    assert table.source.positions(table.frame["source_row"].to_numpy()).tolist() == [2, 2, 2, 3]


def test_the_same_of_msprof(tmp_path: Path) -> None:
    folder = tmp_path / "PROF_000001_20240101000000000_ABC" / "mindstudio_profiler_output"
    folder.mkdir(parents=True)
    stamp = "20240101000000.csv"
    summary = (
        "Device_id,Op Name,OP Type,Task Type,Task Start Time(us),Task Duration(us),Stream ID,Task ID,mac_fp16_ratio"
    )
    (folder / f"op_summary_{stamp}").write_text(f"{summary}\n0,a,MatMul,AI_CORE,1,2,3,4,0.5\n")
    (folder / f"l2_cache_{stamp}").write_text(
        "Device_id,Stream Id,Task Id,Hit Rate,Victim Rate,Op Name\n0,3,4,0.9,0,a\n"
    )
    of_two_devices = "".join(f"{device},1000,100,0,20,0,0,0,30,0,0,0\n" for device in (0, 1))
    for kind in ("nic", "roce"):
        (folder / f"{kind}_{stamp}").write_text(PORT + of_two_devices)
    (found,) = MsprofLoader().discover(tmp_path)
    tables = MsprofLoader().load(found).tables
    assert tables["core_counters"].frame["value"].tolist() == [0.5]
    assert tables["l2_cache"].frame["hit_rate"].tolist() == [0.9]
    assert sorted(tables["ports"].frame["port"]) == ["NIC 0", "RoCE 0"]


def test_counters_of_slices_are_of_the_chosen_device(tmp_path: Path) -> None:
    """Two slices with the kernels of two devices; the second one has a value for the other device only."""
    folder = tmp_path / "PROF_000001_20240101000000000_ABC" / "mindstudio_profiler_output"
    folder.mkdir(parents=True)
    head = "Device_id,Op Name,OP Type,Task Type,Task Start Time(us),Task Duration(us),Stream ID,Task ID"
    rows = (
        f"{head},mac_fp16_ratio\n0,a,MatMul,AI_CORE,1,2,3,4,0.5\n1,a,MatMul,AI_CORE,1,2,3,4,0.75\n",
        f"{head},write_cache_hit\n0,b,MatMul,AI_CORE,5,2,3,5,N/A\n1,b,MatMul,AI_CORE,5,2,3,5,9\n",
        f"{head}\n0,c,MatMul,AI_CORE,9,2,3,6\n",
    )
    for number, content in enumerate(rows):
        (folder / f"op_summary_slice_{number}_20240101000000.csv").write_text(content)
    (found,) = MsprofLoader().discover(tmp_path)
    table = MsprofLoader().load(found).tables["core_counters"]
    assert table.frame[["start_ns", "counter", "value"]].astype(object).to_numpy().tolist() == [
        [1000, "mac_fp16_ratio", 0.5]
    ]
    source_rows = table.frame["source_row"].to_numpy()
    assert table.source.positions(source_rows).tolist() == [2] and "slice_0" in table.source.tables(source_rows)[0]


def database(path: Path, **tables: tuple[str, list[tuple[Any, ...]]]) -> Profile:
    text = Texts()
    read, wrote = text("read"), text("write")
    named = {
        "HBM": ("deviceId, timestampNs, bandwidth, hbmId, type", [(0, T0, 5, 0, read), (0, T0 + 9, 7, 1, wrote)]),
        "LLC": ("deviceId, llcId, timestampNs, hitRate, throughput, mode", [(0, 0, T0, 85.0, 3, read)]),
        "STRING_IDS": text.table(),
        **tables,
    }
    write(path / "x_ascend_pt" / "ASCEND_PROFILER_OUTPUT" / "ascend_pytorch_profiler_0.db", named)
    (found,) = AscendPytorchLoader().discover(path)
    return AscendPytorchLoader().load(found)


def test_rates_of_a_database(tmp_path: Path) -> None:
    profile = database(
        tmp_path,
        HCCS=("deviceId, timestampNs, txThroughput, rxThroughput", [(0, T0, 1, 2), (0, T0, -1, 2), (0, 0, 1, 2)]),
        PCIE=("timestampNs, txPostAvg, txNonpostLatencyAvg", [(T0, 4, None)]),
        DDR=("timestampNs, read", []),
    )
    table = profile.tables["counters"]
    assert rates(table.frame) == {
        "HBM 0 read B/s": [5],
        "HBM 1 write B/s": [7],
        "LLC 0 read B/s": [3],
        "LLC 0 read hits ratio": [0.85],
        "HCCS  transmit B/s": [1],
        "HCCS  receive B/s": [2],
        "PCIe  transmit posted B/s": [4],
    }
    assert "HCCS" in next(said.message.en for said in profile.diagnostics if "HCCS" in said.message.en)
    assert "database" in profile.missing["l2_cache"].reason.en
    assert set(table.source.tables(table.frame["source_row"].to_numpy())) == {"HBM", "LLC", "HCCS", "PCIE"}


def test_a_sample_without_a_value_is_none(tmp_path: Path) -> None:
    empty = ("deviceId, timestampNs, bandwidth, hbmId, type", [(0, T0, None, 0, 1), (0, T0 + 9, 7, 0, 1)])
    hits = ("deviceId, llcId, timestampNs, hitRate, throughput, mode", [(0, 0, T0, 0.5, None, 1)])
    frame = database(tmp_path, HBM=empty, LLC=hits).tables["counters"].frame
    assert frame[["part", "value"]].astype(object).to_numpy().tolist() == [["LLC", 0.5], ["HBM", 7]]


def test_ports_of_a_database(tmp_path: Path) -> None:
    columns = "timestampNs, bandwidth, rxByteRate, txByteRate, rxErrors, rxDropped, txErrors, txDropped, funcId"
    rows = [
        (T0, 1000, 10, 20, 3, 4, 0, 0, 0),
        (T0 + 9, 1000, 10, 20, 3, 6, 1, 0, 0),
        (T0 + 9, 1000, 1, 2, 0, 0, 0, 0, 1),
    ]
    adapter = "timestampNs, macRxByte, macRxBandwidth, roceTxErrPkt, roceNewPktRty, macRxPfcPkt"
    counts = [(T0, 10, 10.0, 0, 0, 5), (T0 + 10**9, 10, 10.0, 0, 2, 0)]
    frame = database(tmp_path, ROCE=(columns, rows), NETDEV_STATS=(adapter, counts)).tables["ports"].frame
    assert frame["port"].tolist() == ["RoCE 0", "RoCE 0", "RoCE 1", "MAC", "MAC"]
    assert frame["faulty"].tolist() == [False, True, False, False, False]
    assert frame["dropped_packets"].tolist()[:3] == [0, 2, 0] and frame["error_packets"].tolist()[:3] == [0, 1, 0]
    assert frame["sent_again"].tolist()[3:] == [0, 2] and frame["capacity"].tolist()[0] == 1000


COUNTS = st.lists(st.integers(0, 5), min_size=3, max_size=9)


@given(counts=COUNTS, rate=st.integers(10**3, 10**9))
def test_counts_that_go_on_and_counts_that_begin_anew_are_told_apart(counts: list[int], rate: int) -> None:
    """Ten seconds a sample, so that the bytes of an interval are ten times the rate."""
    moved, again = pd.Series([10 * rate] * len(counts)), pd.Series([0, *counts[1:]])

    def adapter(number: pd.Series, nbytes: pd.Series) -> pd.DataFrame:
        time = pd.Series(range(len(counts))) * 10**10 + T0
        none = dict.fromkeys(("rx_errors", "tx_errors", "pause_frames", "congestion_notices"), 0.0)
        moving = {"time_ns": time, "received": float(rate), "sent": float(rate), "bytes": nbytes}
        return ports.of_adapter(pd.DataFrame({**moving, **none, "sent_again": number, "source_row": 0}))

    anew, going_on = adapter(again, moved), adapter(again.cumsum() + 100, moved.cumsum() + 10**15)
    assert anew["sent_again"].sum() == going_on["sent_again"].sum() == sum(counts[1:])
