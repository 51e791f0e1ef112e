"""Turns operator streams into Kineto traces, each beside what it is known to compute.

    python -m tests.programs.kineto STREAMS FOLDER

The same programs and the same truth as of `tests.programs.prepare`, as PyTorch records them on a GPU: operators with
the shapes, types, strides and values of their inputs, the operators that they call, launches, and kernels, of which
nothing is recorded but name and time. Kernels read views where they lie.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any

from tests.programs.prepare import write_truth
from tests.programs.streams import BYTES

TYPES = {"f64": "double", "f32": "float", "f16": "c10::Half", "bf16": "c10::BFloat16", "i64": "long int", "i32": "int",
    "i16": "short int", "i8": "signed char", "u8": "unsigned char", "bool": "bool",
    "c64": "c10::complex<float>"}  # fmt: skip
CODES = {"torch.float32": 6, "torch.bfloat16": 15, "torch.float16": 5, "torch.float64": 7, "torch.int64": 4}
"""c10/core/ScalarType.h"""

ARGUMENTS = {
    "sum.dim_IntList": ("self", "dim", "keepdim", "dtype"),
    "mean.dim": ("self", "dim", "keepdim", "dtype"),
    "amax.default": ("self", "dim", "keepdim"),
    "max.dim": ("self", "dim", "keepdim"),
    "min.dim": ("self", "dim", "keepdim"),
    "any.dim": ("self", "dim", "keepdim"),
    "all.dim": ("self", "dim", "keepdim"),
    "argmax.default": ("self", "dim", "keepdim"),
    "logsumexp.default": ("self", "dim", "keepdim"),
    "linalg_vector_norm.default": ("self", "ord", "dim", "keepdim", "dtype"),
    "sum.default": ("self", "dtype"),
    "mean.default": ("self", "dtype"),
    "var_mean.correction": ("self", "dim", "correction", "keepdim"),
    "_softmax.default": ("self", "dim", "half_to_float"),
    "_log_softmax.default": ("self", "dim", "half_to_float"),
    "_softmax_backward_data.default": ("self", "self", "dim", "input_dtype"),
    "_log_softmax_backward_data.default": ("self", "self", "dim", "input_dtype"),
    "gather.default": ("self", "dim", "self", "sparse_grad"),
    "index_select.default": ("self", "dim", "self"),
    "scatter.src": ("self", "dim", "self", "self"),
    "scatter_add.default": ("self", "dim", "self", "self"),
    "index_copy_.default": ("self", "dim", "self", "self"),
    "index_add_.default": ("self", "dim", "self", "self", "alpha"),
    "topk.default": ("self", "k", "dim", "largest", "sorted"),
    "cumsum.default": ("self", "dim", "dtype"),
}
"""Arguments in order (native_functions.yaml); ``self``: the next tensor. Of others the tensors stand first."""

DEFAULTS: dict[str, dict[str, Any]] = {"topk.default": {"dim": -1}}
"""Values of arguments that a call leaves out, which Kineto records and a stream does not."""

KERNELS_OF = {"native_layer_norm_backward": 2, "embedding_dense_backward": 3, "topk": 2, "_index_put_impl_": 3,
    "sort": 2, "_flash_attention_backward": 3, "convolution_backward": 2, "nonzero": 3, "cumsum": 2}  # fmt: skip
"""Operators that launch several kernels."""

LISTS = {"_foreach_addcmul": 3, "_foreach_addcdiv": 3, "_foreach_lerp": 2, "_foreach_copy": 2}
"""Lists of tensors that operators read; of others one, and one more where the overload says so."""

NO_KERNEL = frozenset(
    {"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "_local_scalar_dense", "resize_"}
)
FILLED = frozenset(
    {
        "zeros",
        "new_zeros",
        "zeros_like",
        "full",
        "full_like",
        "ones",
        "ones_like",
        "new_full",
        "new_ones",
        "scalar_tensor",
    }
)

Entry = Sequence[Any]
"""A tensor of a stream: storage, shape, type, writer, and what else there is to tell."""


@dataclass
class Trace:
    """The events; times in us. ``kernels_of``: of each operator of the stream, by their numbers."""

    events: list[dict[str, Any]] = field(default_factory=list)
    host_us: float = 1000.0
    device_us: float = 1010.0
    kernels: int = 0
    kernels_of: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    ids: int = 0

    def event(self, cat: str, name: str, ts: float, dur: float, tid: int, **args: Any) -> None:
        """A span of the host (tid 100) or the device (tid 7)."""
        self.events.append({"ph": "X", "cat": cat, "name": name, "pid": 100 if tid == 100 else 0, "tid": tid,
            "ts": round(ts, 3), "dur": round(dur, 3), "args": args})  # fmt: skip

    def operator(
        self, number: int, names: Sequence[str], given: Mapping[str, Any], moved: int, kernels: int = 1
    ) -> None:
        """An operator within others (``names``, the outermost first), of which the innermost has inputs and kernels."""
        for name in names[:-1]:
            self.ids += 1
            self.event("cpu_op", name, self.host_us, 2.0, 100, **{"External id": self.ids, **given})
        self.ids += 1
        external = self.ids
        self.event("cpu_op", names[-1], self.host_us + 0.1, 1.5, 100, **{"External id": external, **given})
        for part in range(kernels):
            self.ids += 1
            self.event(
                "cuda_runtime", "cudaLaunchKernel", self.host_us + 0.2 + 0.1 * part, 0.05, 100, correlation=self.ids
            )
            took = max(3.0, moved / 1.2e6) if part == kernels - 1 else 3.0
            where = {"device": 0, "stream": 7, "correlation": self.ids, "External id": external}
            self.event("kernel", _kernel(names[-1], part), self.device_us, took, 7, **where)
            self.device_us += took + 1.0
            self.kernels_of[number].append(self.kernels)
            self.kernels += 1
        self.host_us += 2.5

    def collective(self) -> None:
        """A collective, which what follows waits for."""
        self.ids += 1
        self.event("cuda_runtime", "cudaLaunchKernel", self.host_us, 0.05, 100, correlation=self.ids)
        where = {"device": 0, "stream": 20, "correlation": self.ids}
        self.event("kernel", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL()", self.device_us, 10.0, 20, **where)
        self.device_us, self.host_us = self.device_us + 11.0, self.host_us + 2.5


def _kernel(operator: str, part: int) -> str:
    name = operator.removeprefix("aten::").rstrip("_")
    if name in ("mm", "addmm", "bmm", "baddbmm", "_grouped_mm"):
        return "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_tn"
    return f"void at::native::{name}_kernel<{part}, float>(int)"


def _size(entry: Entry) -> int:
    return prod(entry[1]) * BYTES.get(entry[2], 4)


def _given(tensors: Sequence[Entry], after: Mapping[str, Any], arguments: Sequence[str] = ()) -> dict[str, Any]:
    """What Kineto records of the inputs."""
    dims: list[Any] = []
    types, strides, values = [], [], []
    left = list(tensors)
    order = arguments or ("self",) * len(left) + tuple(after)
    for name in order:
        if name == "self" and left:
            entry = left.pop(0)
            dims.append(list(entry[1]))
            types.append(TYPES.get(entry[2], entry[2]))
            about = next((item for item in entry[3:] if isinstance(item, dict)), {})
            strides.append(about.get("st") or [prod(entry[1][axis + 1 :]) for axis in range(len(entry[1]))])
            values.append("")
            continue
        value = after.get(name)
        dims.append([])
        strides.append([])
        number = name == "other" and value is not None  # becomes a tensor without axes
        kind = "long int" if isinstance(value, int) else "double"
        types.append("" if value is None else kind if number else "ScalarList" if isinstance(value, list) else "Scalar")
        values.append("" if value is None or number else str(CODES.get(str(value), value)))
    return {"Input Dims": dims, "Input type": types, "Input Strides": strides, "Concrete Inputs": values}


def _listed(tensors: Sequence[Entry], after: Mapping[str, Any]) -> dict[str, Any]:
    """Of an operator on a list of tensors, whose types are not recorded."""
    given = _given([], {"dim": 0, **after}, ("dim",))
    steps = [[prod(entry[1][axis + 1 :]) for axis in range(len(entry[1]))] for entry in tensors]
    return {
        "Input Dims": [[list(entry[1]) for entry in tensors], *given["Input Dims"]],
        "Input type": ["TensorList", *given["Input type"]],
        "Input Strides": [steps, *given["Input Strides"]],
        "Concrete Inputs": ["", *given["Concrete Inputs"]],
    }


def _lists(tensors: Sequence[Entry], name: str, overload: str) -> dict[str, Any]:
    """Of an operator on several lists of tensors, as many in each."""
    lists = LISTS.get(name, 1) + (overload == "List")
    length = len(tensors) // lists
    parts = [_listed(tensors[first : first + length], {}) for first in range(0, lists * length, length)]
    return {key: [part[key][0] for part in parts] for key in parts[0]}


def trace(records: Sequence[Mapping[str, Any]], *, on_cpu: bool) -> Trace:
    """The trace of the operators of a stream, in one step."""
    made = Trace()
    for record in records:
        space, name = record["op"].split("::")
        if space in ("c10d", "_c10d_functional"):
            made.collective()
        base, reads, writes = name.rstrip("_"), record["in"], record.get("out", ())
        elsewhere = [any(isinstance(item, dict) and item.get("dev") for item in entry) for entry in reads]
        if space not in ("aten", "npu_like") or record.get("view") or name in NO_KERNEL or (reads and all(elsewhere)):
            continue
        device = record.get("sc", {}).get("device")
        if (not reads and not writes) or (not reads and device not in (None, "cpu" if on_cpu else "meta")):
            continue
        for names, given, moved, kernels in _calls(record, name, base):
            made.operator(record["i"], names, given, moved, kernels)
    made.event("user_annotation", "ProfilerStep#3", 999.0, max(made.host_us, made.device_us) - 998.0, 100)
    return made


def _calls(record: Mapping[str, Any], name: str, base: str) -> Iterator[tuple[list[str], dict[str, Any], int, int]]:
    """The operators with kernels that an operator is, with those around them, their inputs, bytes and kernels."""
    reads, writes, after = record["in"], record.get("out") or record["in"][:1], dict(record.get("sc", {}))
    moved = sum(map(_size, [*reads, *writes]))
    whole = writes[0] if writes else None
    if name in ("_to_copy", "clone", "contiguous", "copy_"):
        outer = {
            "_to_copy": ["aten::to", "aten::_to_copy"],
            "clone": ["aten::clone"],
            "contiguous": ["aten::contiguous"],
        }
        target, source = (reads[0], reads[-1]) if name == "copy_" else (writes[0], reads[0])
        yield [*outer.get(name, []), "aten::copy_"], _given([target, source], {"non_blocking": False}), moved, 1
    elif base in ("slice_backward", "select_backward"):
        yield (
            [f"aten::{base}", "aten::zeros", "aten::zero_", "aten::fill_"],
            _given([whole], {"value": 0}),
            _size(whole),
            1,
        )
        part = [0, reads[0][1], whole[2]]
        yield [f"aten::{base}", "aten::copy_"], _given([part, reads[0]], {"non_blocking": False}), 2 * _size(part), 1
    elif name in FILLED:
        yield [f"aten::{name}", "aten::fill_"], _given([whole], {"value": 0}), _size(whole), 1
    elif name == "constant_pad_nd":
        yield ["aten::constant_pad_nd", "aten::fill_"], _given([whole], {"value": 0}), _size(whole), 1
        yield ["aten::constant_pad_nd", "aten::copy_"], _given([reads[0], reads[0]], {}), 2 * _size(reads[0]), 1
    elif name == "embedding":
        index = [0, [prod(reads[1][1])], reads[1][2]]
        given = _given([reads[0], index], {"dim": 0}, ("self", "dim", "self"))
        yield ["aten::embedding", "aten::index_select"], given, 2 * _size(whole), 1
    elif name == "masked_fill":
        yield ["aten::masked_fill", "aten::clone", "aten::copy_"], _given([whole, reads[0]], {}), 2 * _size(whole), 1
        yield ["aten::masked_fill", "aten::masked_fill_"], _given([whole, *reads[1:]], {"value": 0}), moved, 1
    elif name in ("cat", "stack"):
        parts = reads if name == "cat" else [[0, _stacked(entry[1], after), entry[2]] for entry in reads]
        yield [*(["aten::stack"] if name == "stack" else []), "aten::cat"], _listed(parts, after), moved, 1
    elif name in ("index", "index_put", "index_put_", "_index_put_impl_"):
        put = name != "index"
        names = ["aten::index_put_", "aten::_index_put_impl_"] if put else ["aten::index"]
        given = _given(
            [reads[0], reads[-1]] if put else reads[:1], {"indices": None}, ("self", "indices", "self")[: 2 + put]
        )
        yield names, given, moved, KERNELS_OF["_index_put_impl_"] if put else 1
    elif base.startswith(("_foreach", "_fused_adam")):
        given = _lists(reads, base, record["ov"])
        written = record.get("out") or reads[: len(given["Input Dims"][0])]
        yield [f"aten::{name}"], given, sum(map(_size, [*reads, *written])), 2
    elif name.startswith("fusion_attention"):
        backward = name.endswith("_grad")
        operator = "_flash_attention_backward" if backward else "_flash_attention_forward"
        given = _given([_heads_behind(entry) for entry in reads], {"scale": 1})
        yield [f"aten::{operator}"], given, moved, KERNELS_OF.get(operator, 1)
    elif name == "convolution":
        order = ("self", "self", "padding", "stride", "dilation", "groups")
        yield ["aten::cudnn_convolution"], _given(reads[:2], after, order), moved, 1
    elif name == "nll_loss_backward":
        yield ["aten::nll_loss_backward", "aten::zero_", "aten::fill_"], _given([whole], {"value": 0}), _size(whole), 1
        yield ["aten::nll_loss_backward"], _given(reads, after), moved, 1
    else:
        arguments = ARGUMENTS.get(f"{name}.{record['ov']}", ())
        after = DEFAULTS.get(f"{name}.{record['ov']}", {}) | after
        yield [f"aten::{name}"], _given(reads, after, arguments), moved, KERNELS_OF.get(name, 1)


def _heads_behind(entry: Entry) -> Entry:
    """A tensor [batch, heads, tokens, width] as the operator of Flash Attention takes it: heads behind tokens."""
    shape = entry[1]
    if len(shape) != 4:
        return entry
    turned = [shape[0], shape[2], shape[1], shape[3]]
    return [entry[0], turned, entry[2]]


def _stacked(shape: Sequence[int], after: Mapping[str, Any]) -> list[int]:
    place = after.get("dim", 0) % (len(shape) + 1)
    return [*shape[:place], 1, *shape[place:]]


def prepare(stream: Path, folder: Path) -> None:
    """The trace of one stream, and the kernels of each of its computations."""
    with gzip.open(stream, "rt") as lines:
        meta, *records = (json.loads(line) for line in lines)
    made = trace(records, on_cpu=bool(meta["meta"].get("real_cpu")))
    folder.mkdir(parents=True, exist_ok=True)
    gpu = {"id": 0, "name": "NVIDIA A100-SXM4-80GB", "totalGlobalMem": 80 << 30, "computeMajor": 8, "computeMinor": 0,
        "numSms": 108}  # fmt: skip
    document = {"schemaVersion": 1, "deviceProperties": [gpu], "traceEvents": made.events}
    (folder / "trace.pt.trace.json").write_text(json.dumps(document), encoding="utf-8")
    write_truth(folder, stream, made.kernels_of, made.kernels)


def main() -> None:
    """All streams of a folder."""
    streams, folder = map(Path, sys.argv[1:3])
    for stream in sorted(streams.glob("*.jsonl.gz")):
        prepare(stream, folder / stream.name.removesuffix(".jsonl.gz"))


if __name__ == "__main__":
    main()
