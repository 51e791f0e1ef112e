"""Kineto traces into tables: the cases that differ between versions, devices and options of the profiler."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from advisor_core.contracts.missing import Missing
from advisor_core.contracts.profile import Profile
from advisor_core.contracts.tables import SCHEMAS
from advisor_core.loaders.readers.gzip_file import GzipFile
from advisor_core.loaders.readers.json_events import CHUNK_BYTES
from tests.loaders.kineto.build import A100, MAIN, Recording, two_steps

US = 1000


def column(profile: Profile, table: str, name: str) -> list[object]:
    return list(profile.tables[table].frame[name])


def test_kernels_have_the_step_in_which_they_were_launched(tmp_path: Path) -> None:
    made = two_steps().launch("late_add", 2890, 3500, 10, 99)  # launched in the last step, run after it
    profile = made.load(tmp_path)
    assert profile.vendor == "gpu" and profile.framework == "pytorch"
    assert set(profile.tables) | set(profile.missing) == set(SCHEMAS)
    assert column(profile, "kernels", "step") == [3, 3, 4, 4, 4]
    assert column(profile, "kernels", "type") == ["aten::mul", "aten::mm", "aten::mul", "aten::mm", "aten::mul"]
    assert column(profile, "kernels", "start_ns")[:2] == [1150 * US, 1350 * US]
    assert profile.chip == {
        "name": "NVIDIA A100",
        "multiprocessors": 108,
        "memory_bytes": 40 << 30,
        "compute_capability": 8.0,
    }


def test_times_count_from_the_base(tmp_path: Path) -> None:
    made = two_steps()
    made.members["baseTimeNanoseconds"] = 1_700_000_000_000_000_000
    assert column(made.load(tmp_path), "kernels", "start_ns")[0] == 1_700_000_000_000_000_000 + 1150 * US


def test_absolute_times_keep_their_nanoseconds(tmp_path: Path) -> None:
    made = Recording()
    made.members["displayTimeUnit"] = "ns"  # how a viewer shows times: they are in us all the same
    path = made.task("k", 0, 1, 1).write(tmp_path / "trace.json")
    path.write_bytes(path.read_bytes().replace(b'"ts": 0, "dur": 1', b'"ts": 1712195495505583.123, "dur": 4.928'))
    from tests.loaders.kineto.build import load

    kernels = load(path).tables["kernels"].frame
    assert kernels["start_ns"].tolist() == [1_712_195_495_505_583_123] and kernels["duration_ns"].tolist() == [4928]


def test_a_trace_of_2021(tmp_path: Path) -> None:
    """Other names of categories, whole microseconds, lanes as texts, marks among the operators, stacks as arguments."""
    made = Recording()
    args = {"external id": 5, "Call stack": "nn.py(3): forward;train.py(9): <module>", "Input Dims": [[8, 4], []]}
    made.event("Operator", "ProfilerStep#2", 1623142623460000, 500, tid=str(MAIN), **{"external id": 1})
    made.event("Operator", "aten::add", 1623142623460010, 30, tid=str(MAIN), **args)
    made.event("Runtime", "cudaLaunchKernel", 1623142623460020, 5, tid=str(MAIN), correlation=9)
    where = {"stream": 7, "device": 0, "correlation": 9, "external id": 5}
    made.event("Kernel", "vectorized_elementwise_kernel", 1623142623460100, 7, pid=0, tid="stream 7", **where)
    made.event("Memset", "Memset (Device)", 1623142623460110, 1, pid=0, tid="stream 7", device=0, stream=7)
    profile = made.load(tmp_path)
    kernels = profile.tables["kernels"].frame
    assert kernels["step"].tolist() == [2, 2] and kernels["stream"].tolist() == [7, 7]
    assert kernels["type"].tolist() == ["aten::add", "Memset"]
    assert kernels["input_shapes"].tolist() == ["8,4;", ""]
    host = profile.tables["host_events"].frame
    assert host["category"].tolist() == ["cpu_op", "cpu_op", "runtime"]
    assert host["call_stack"].tolist()[1] == "nn.py(3): forward\ntrain.py(9): <module>"


def test_graph_launches(tmp_path: Path) -> None:
    """Kernels of a graph have one call; the operator around it did not choose them."""
    made = Recording()
    made.operator("aten::mm", 10, 20, 1).call("cudaGraphLaunch", 12, 5, 1)
    for number, name in enumerate(["flash_fwd_kernel", "ampere_sgemm_64x64_nn"]):
        made.task(name, 50 + 20 * number, 10, 1, **{"External id": 1, "graph node id": number})
    kernels = made.load(tmp_path).tables["kernels"].frame
    assert kernels["type"].tolist() == ["flash_fwd_kernel", "ampere_sgemm_64x64_nn"]
    assert kernels["model"].tolist() == [0, 0]


def test_the_operator_is_found_around_the_call_where_the_id_names_none(tmp_path: Path) -> None:
    made = Recording()  # traces of 2022 give the correlation id as the id of the operator
    made.operator("aten::mul", 90, 5, 700).operator("aten::softmax", 100, 20, 1).call("cudaLaunchKernel", 105, 5, 700)
    made.task("some_kernel", 130, 5, 700, **{"External id": 700})
    assert column(made.load(tmp_path), "kernels", "type") == ["aten::softmax"]


def test_rocm(tmp_path: Path) -> None:
    made = Recording({"schemaVersion": 1, "roctracer_version": 4.1, "hip_runtime_version": 70051831})
    made.operator("aten::mm", 0, 20, 1).call("hipExtModuleLaunchKernel", 5, 4, 1)
    made.task("Cijk_Alik_Bljk_BBS_BH", 30, 100, 1, device=2, stream=0, **{"External id": 1, "kind": "Dispatch Kernel"})
    made.call("hipMemcpyWithStream", 40, 200, 2).task("CopyDeviceToHost", 150, 5, 2, cat="gpu_memcpy", device=2)
    profile = made.load(tmp_path)
    assert column(profile, "kernels", "type") == ["aten::mm"]
    assert profile.versions == {"hip_runtime": "70051831", "roctracer": "4.1"}
    assert column(profile, "device_tasks", "task_type") == ["Kernel", "Memcpy DtoH"] and profile.chip == {}


def test_copies_over_the_bus_are_no_work(tmp_path: Path) -> None:
    made = Recording()
    for number, name in enumerate(["Memcpy HtoD (Pageable -> Device)", "Memcpy DtoD (Device -> Device)"]):
        made.task(name, 10 * number, 5, number, cat="gpu_memcpy")
    made.task("Memset (Device)", 30, 5, 5, cat="gpu_memset")
    made.task("Stream Wait Event", 40, 5, 6, cat="cuda_sync")
    profile = made.load(tmp_path)
    assert column(profile, "kernels", "type") == ["Memcpy DtoD", "Memset"]
    kinds = ["Memcpy HtoD", "Memcpy DtoD", "Memset", "Stream Wait Event"]
    assert column(profile, "device_tasks", "task_type") == kinds


def test_collectives_with_metadata(tmp_path: Path) -> None:
    made = Recording()
    made.members["distributedInfo"] = {
        "rank": 1,
        "world_size": 4,
        "nccl_version": "2.17.1",
        "pg_config": [
            {"pg_name": "0", "pg_desc": "undefined", "ranks": [0, 1, 2, 3]},
            {"pg_name": "10", "pg_desc": "TENSOR_MODEL_PARALLEL_GROUP", "ranks": [1, 3]},
        ],
    }
    asked = {"Collective name": "allreduce", "In msg nelems": 1000, "Out msg nelems": 1000, "dtype": "Float"}
    group = {"Group size": 4, "Process Group Name": "0", "Process Group Ranks": "[0, 1, 2, 3]"}
    made.step(5, 0, 1000).operator("record_param_comms", 10, 50, 1, **asked, **group)
    made.call("cudaLaunchKernelExC", 20, 5, 1).task("ncclDevKernel_AllReduce_Sum_f32_RING_LL()", 60, 90, 1)
    at_kernel = {"Collective name": "_allgather_base", "In msg nelems": 10, "Out msg nelems": 20, "dtype": "BFloat16"}
    more = {"Group size": 2, "Process Group Name": "10", "Seq": 77}
    made.call("cudaLaunchKernelExC", 200, 5, 2)
    made.task("ncclDevKernel_AllGather_RING_LL()", 300, 40, 2, **at_kernel, **more)
    profile = made.load(tmp_path)
    assert (profile.rank, profile.world_size) == (1, 4) and profile.versions == {"nccl": "2.17.1"}
    assert profile.groups == {"0": (0, 1, 2, 3), "10": (1, 3)}
    assert profile.group_names == {"10": "TENSOR_MODEL_PARALLEL_GROUP"}
    assert column(profile, "kernels", "core") == ["COMMUNICATION"] * 2
    found = profile.tables["collectives"].frame
    assert found["operation"].tolist() == ["allReduce", "allGather"]
    assert found["group"].tolist() == ["0", "10"] and found["members"].tolist() == [4, 2]
    assert found["bytes"].tolist() == [1000 * 4 * 2 * 3 // 4, 20 * 2 // 2]  # 2 (n-1)/n and (n-1)/n of the message
    assert found["index"].tolist()[1] == 77


@pytest.mark.parametrize(("mark", "operation"), [("nccl:all_to_all", "alltoall"), ("", "batchSendRecv")])
def test_collectives_without_metadata(tmp_path: Path, mark: str, operation: str) -> None:
    made = Recording()
    if mark:
        made.event("user_annotation", mark, 0, 30)
    made.call("cudaLaunchKernel", 10, 5, 1).task("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclWorkElem)", 40, 9, 1)
    found = made.load(tmp_path).tables["collectives"].frame
    assert found["operation"].tolist() == [operation]
    assert found["members"].tolist() == [-1] and found["bytes"].tolist() == [-1]


def test_products_have_their_operands(tmp_path: Path) -> None:
    made = Recording()
    inputs = {
        "Input Dims": [[2048], [141, 512], [512, 2048], [], []],
        "Input type": ["c10::BFloat16"] * 3 + ["Scalar"] * 2,
    }
    made.operator("aten::addmm", 0, 50, 1, **inputs)
    for number, name in enumerate(["sm90_xmma_gemm_bf16bf16", "cublasLt::splitKreduce_kernel", "Memset (Device)"]):
        made.call("cudaLaunchKernel", 5 + number, 1, number).task(
            name, 60 + 10 * number, 9, number, **{"External id": 1}
        )
    kernels = made.load(tmp_path).tables["kernels"].frame
    assert kernels["input_shapes"].tolist() == ["141,512;512,2048", "", ""]
    assert kernels["output_shapes"].tolist() == ["141,2048", "", ""]
    assert kernels["input_dtypes"].tolist()[0] == "BF16;BF16"


def test_python_stacks(tmp_path: Path) -> None:
    made = two_steps()
    made.python("train.py(1): <module>", 900, 3000, 1, None).python("model.py(7): forward", 1090, 400, 2, 1)
    made.python("model.py(9): mul", 1095, 100, 3, 2)
    host = made.load(tmp_path).tables["host_events"].frame
    stacks = host.loc[host["category"] == "cpu_op", "call_stack"].tolist()
    assert stacks == [
        "model.py(9): mul\nmodel.py(7): forward\ntrain.py(1): <module>",
        "model.py(7): forward\ntrain.py(1): <module>",
        "train.py(1): <module>",
        "train.py(1): <module>",
    ]


def test_collections_of_garbage_are_no_functions(tmp_path: Path) -> None:
    """PyTorch records them among the Python functions, without the ids that those have."""
    made = two_steps().python("train.py(1): <module>", 900, 3000, 1, None)
    made.event("python_function", "Python GC", 1090, 300).python("gc.py(3): Python GC report", 1700, 9, 2, 1)
    host = made.load(tmp_path).tables["host_events"].frame
    assert host.loc[host["category"] == "gc", "name"].tolist() == ["Python GC"]
    functions = host.loc[host["category"] == "python_function", "name"].tolist()
    assert functions == ["train.py(1): <module>", "gc.py(3): Python GC report"]
    assert set(host.loc[host["category"] == "cpu_op", "call_stack"]) == {"train.py(1): <module>"}


def test_memory(tmp_path: Path) -> None:
    made = two_steps().memory(1101, 512, 64, 512).memory(1305, 256, 128, 768).memory(1350, -512, 64, 256)
    made.memory(1400, 1024, 64, 1280)
    profile = made.load(tmp_path)
    assert column(profile, "memory_record", "allocated_bytes") == [512.0, 768.0, 256.0, 1280.0]
    tensors = profile.tables["operator_memory"].frame
    assert tensors["name"].tolist() == ["aten::mul", "aten::mm", ""]
    assert tensors["bytes"].tolist() == [512.0, 256.0, 1024.0]
    assert tensors["release_ns"].tolist() == [1350 * US, -1, -1]


def test_calls_of_operators(tmp_path: Path) -> None:
    made = Recording()
    made.operator("aten::linear", 0, 100, 1).operator("aten::addmm", 10, 60, 2)
    made.call("cudaLaunchKernel", 20, 5, 1).task("ampere_sgemm_nn", 40, 30, 1, **{"External id": 2})
    calls = made.load(tmp_path).tables["operators"].frame.set_index("name")
    assert calls.loc["aten::linear", ["host_self_ns", "host_total_ns"]].tolist() == [40 * US, 100 * US]
    assert calls.loc["aten::linear", ["device_self_ns", "device_total_ns"]].tolist() == [0, 30 * US]
    assert calls.loc["aten::addmm", ["device_self_ns", "device_total_ns"]].tolist() == [30 * US, 30 * US]


def test_a_trace_without_a_device(tmp_path: Path) -> None:
    profile = Recording({"schemaVersion": 1}).operator("aten::mm", 0, 50, 1).load(tmp_path)
    assert set(profile.tables) == {"host_events", "operators"}
    assert all(isinstance(missing, Missing) and missing.reason.zh for missing in profile.missing.values())
    kernels = profile.missing["kernels"]
    assert kernels.collect is not None and "CUDA" in kernels.collect.en
    assert profile.missing["frequency"].kind == "not_applicable"


def test_a_trace_without_a_host(tmp_path: Path) -> None:
    profile = Recording().task("k", 0, 5, 1).load(tmp_path)
    assert "host_events" in profile.missing and "flows" in profile.missing
    assert column(profile, "kernels", "step") == [-1]


def test_the_busiest_device_is_the_profile(tmp_path: Path) -> None:
    made = Recording().task("a", 0, 5, 1, device=0).task("b", 0, 500, 2, device=1).task("c", 600, 5, 3, device=1)
    profile = made.load(tmp_path)
    assert column(profile, "kernels", "name") == ["b", "c"]
    assert any("several devices" in said.message.en for said in profile.diagnostics)


def test_chips_that_are_all_alike(tmp_path: Path) -> None:
    made = Recording({"schemaVersion": 1, "deviceProperties": [A100, {**A100, "id": 1}]}).task("k", 0, 5, 1, device=9)
    assert made.load(tmp_path).chip["name"] == "NVIDIA A100"


def test_impossible_events_are_said(tmp_path: Path) -> None:
    made = two_steps().task("never", 1500, -3, 50)
    made.event("cpu_op", "aten::nan", None, 5)
    profile = made.load(tmp_path)
    assert "never" not in column(profile, "kernels", "name")
    assert [said.severity for said in profile.diagnostics] == ["warning"]
    text = profile.diagnostics[0].message.en
    assert "2 events" in text and "never" in text and "aten::nan" in text


def test_positions_lead_to_the_events(tmp_path: Path) -> None:
    made = two_steps()
    text = made.text()
    for name in ("trace.json", "trace.json.gz"):
        table = made.load(tmp_path, name).tables["kernels"]
        for row, offset in zip(table.frame.itertuples(), table.positions(np.arange(len(table.frame))), strict=True):
            event = text[int(offset) :]
            assert event.startswith(b"{") and str(row.name).encode() in event[: event.index(b"}")]


def test_a_compressed_trace_is_read_as_a_stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No piece of the content is longer than a chunk, however well it is compressed, and the tables are the same."""
    made = Recording()
    for number in range(4_000):
        start = 1_000.0 + 100 * number
        made.launch("elementwise_kernel<MulFunctor>" + "x" * 2_000, start, start + 20, 50, number)
    plain = made.load(tmp_path, "plain.json")
    content = (tmp_path / "plain.json").stat().st_size
    asked: list[int] = []
    read = GzipFile.read

    def counted(self: GzipFile, size: int) -> bytes:
        asked.append(size)
        return read(self, size)

    monkeypatch.setattr(GzipFile, "read", counted)
    packed = made.load(tmp_path, "packed.json.gz")
    assert content > 2 * CHUNK_BYTES and (tmp_path / "packed.json.gz").stat().st_size < content / 50
    assert max(asked) <= CHUNK_BYTES and len(asked) > content // CHUNK_BYTES
    for name, table in plain.tables.items():
        assert table.frame.equals(packed.tables[name].frame)
