"""One vocabulary for what exports of different versions name differently.

Every function takes one text and gives the canonical one; it is applied to the distinct values of a column, not to
its rows.
"""

from __future__ import annotations

import re
from typing import Final, Literal

Lane = Literal["python", "mindspore", "gc", "os", "mstx", "cann", "hardware", "communication", "overlap", "other"]

UINT32_NONE: Final = 4294967295
"""What exports write for 'none' in an unsigned 32-bit field: no graph, no peer rank."""

NULLS: Final = ("", "N/A", "NA", "n/a", "None", "null", "nan", "NaN")
"""How exports write an absent value."""

COMPUTE_TASKS: Final = ("AI_CORE", "AI_VECTOR_CORE", "MIX_AIC", "MIX_AIV", "AI_CPU", "DSA_SQE")
"""Task types that compute. Everything else in a stream moves, waits or records (facts of the trace format)."""

_LANES: Final[dict[str, Lane]] = {
    "python": "python",
    "mindspore": "mindspore",
    "python gc": "gc",
    "os runtime api": "os",
    "cann": "cann",
    "ascend hardware": "hardware",
    "hccl": "communication",
    "communication": "communication",
    "overlap analysis": "overlap",
}
_CORES: Final = {"HCCL": "COMMUNICATION", "DSA_SQE": "DSA", "AICPU": "AI_CPU"}
_TASK_TYPES: Final = {
    "KERNEL_AICORE": "AI_CORE",
    "KERNEL_AIVEC": "AI_VECTOR_CORE",
    "KERNEL_AICPU": "AI_CPU",
    "KERNEL_MIX_AIC": "MIX_AIC",
    "KERNEL_MIX_AIV": "MIX_AIV",
    "EVENT_WAIT": "EVENT_WAIT_SQE",
    "EVENT_RECORD": "EVENT_RECORD_SQE",
}
"""A DB names the host's type of a task where a trace names the scheduler's."""
_CALL_PREFIXES: Final = {
    "acl": "AscendCL",
    "model": "Model",
    "node": "Node",
    "runtime": "Runtime",
    "hccl": "Hccl",
    "communication": "Communication",
}
_OVERLAP: Final = {
    "compute": "Computing",
    "communication": "Communication",
    "comm_not_overlap_comp": "Communication(Not Overlapped)",
    "free": "Free",
}
_DTYPES: Final = {"FLOAT32": "FLOAT", "HALF": "FLOAT16", "BFLOAT16": "BF16"}
_API_LEVELS: Final = {"hccl": "communication", "ascendcl": "acl"}
_FLOWS: Final = {
    "async_npu": "torch_to_npu",
    "torch_to_npu": "torch_to_npu",
    "hosttodevice": "host_to_device",
    "async_task_queue": "task_queue",
    "enqueue_to_dequeue": "task_queue",
    "fwdbwd": "forward_backward",
}
_PARALLEL: Final = {
    "tensor_model_parallel_size": "tp",
    "pipeline_model_parallel_size": "pp",
    "data_parallel_size": "dp",
    "context_parallel_size": "cp",
    "expert_model_parallel_size": "ep",
    "expert_tensor_parallel_size": "etp",
    "sequence_parallel_size": "sp",
}


def lane(process: str) -> Lane:
    """Which lane a process of the trace is, by its name (never by its pid or its place)."""
    known = _LANES.get(process.strip().lower())
    if known is None:
        return "mstx" if "mstx" in process.lower() else "other"
    return known


def tidy(text: str) -> str:
    """Without the tabs and blanks that exports leave behind; '' for an absent value."""
    text = text.strip()
    return "" if text in NULLS else text


def core(text: str) -> str:
    text = tidy(text)
    return _CORES.get(text, text)


def task_type(text: str) -> str:
    """AI_CORE, EVENT_WAIT_SQE and so on: what kind of task a stream runs."""
    text = tidy(text)
    return _TASK_TYPES.get(text, text)


def cann_call(level: str, name: str) -> str:
    """``AscendCL@aclnnAdd``, ``Node@launch``: how a trace names a call of CANN, from its level and its name."""
    prefix = _CALL_PREFIXES.get(level.strip().lower(), level.strip())
    return f"{prefix}@{name}" if prefix else name


def overlap_kind(text: str) -> str:
    """Computing, Communication, Communication(Not Overlapped) or Free."""
    return _OVERLAP.get(text.strip().lower(), text)


def shapes(text: str) -> str:
    """``;`` between tensors and ``,`` between axes, without quotes, blanks and line breaks."""
    text = tidy(text.strip().strip('"'))
    return re.sub(r'[\s"]+', "", text)


def dtypes(text: str) -> str:
    """``;`` between tensors; FLOAT, FLOAT16, BF16, INT64 and so on."""
    items = (item.strip().removeprefix("DT_") for item in tidy(text).split(";"))
    return ";".join(_DTYPES.get(item, item) for item in items)


def formats(text: str) -> str:
    """``;`` between tensors; ND, NCHW, FRACTAL_NZ, NC1HWC0:1 and so on."""
    return ";".join(item.strip().removeprefix("FORMAT_") for item in tidy(text).split(";"))


def api_level(text: str) -> str:
    text = tidy(text).lower()
    return _API_LEVELS.get(text, text)


def stack(text: str) -> str:
    """One frame per line, innermost first, without the ``;`` that exports put between frames."""
    return re.sub(r"\s*;\s*\n\s*", "\n", tidy(text))


def link(text: str) -> str:
    text = tidy(text)
    return "" if text == "INVALID_TYPE" else text


def flow_kind(text: str) -> str:
    """From the category of a flow, or from its name where it has no category."""
    key = text.strip().lower()
    if key.startswith("hosttodevice"):
        return "host_to_device"
    if "mstx" in key:
        return "mstx"
    return _FLOWS.get(key, text)


def parallel_dimension(name: str) -> str | None:
    """tp, pp, dp ... of an entry of ``distributed_args``; None for an entry that is no such size."""
    return _PARALLEL.get(name)


def level(text: str) -> str | None:
    """``level_none``, ``level0``, ``level1`` or ``level2``; None for what is no level."""
    found = re.search(r"level_?(none|\d)\s*$", text.strip().lower())
    if found is None:
        return None
    return "level_none" if found[1] == "none" else f"level{found[1]}"
