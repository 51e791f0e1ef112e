"""The text export: one ``*_ascend_pt`` directory per rank, every file from the same timeline."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from ..timeline import Timeline
from .communication import communication, communication_matrix
from .device_tables import kernel_details, op_statistic, step_trace_time
from .fields import Names, write_json, write_table
from .host_tables import api_statistic, operator_details
from .memory import memory_record, npu_module_mem, operator_memory
from .metadata import profiler_info, profiler_metadata
from .trace_view import trace_events

HOST_NAME = "node-1"


def write_text(timeline: Timeline, directory: Path, names: Names) -> Path:
    """Write the export of one rank below ``directory``; returns the directory of the rank."""
    stamp = datetime.fromtimestamp(timeline.start // 1_000_000_000, UTC).strftime("%Y%m%d%H%M%S")
    root = directory / f"{HOST_NAME}_{timeline.pid}_{stamp}{timeline.start // 1_000_000 % 1000:03d}_ascend_pt"
    output = root / "ASCEND_PROFILER_OUTPUT"
    output.mkdir(parents=True, exist_ok=True)
    suffix = f"_{timeline.rank}" if timeline.world_size > 1 else ""
    write_json(root / f"profiler_info{suffix}.json", profiler_info(timeline, names), indent=4)
    write_json(root / "profiler_metadata.json", profiler_metadata(timeline, names), indent=4)
    write_json(output / "trace_view.json", trace_events(timeline, names))
    # The framework's own tables end their lines with CR LF, those copied from msprof with LF.
    write_table(output / "step_trace_time.csv", step_trace_time(timeline, names), "\r\n")
    write_table(output / "kernel_details.csv", kernel_details(timeline, names), "\r\n")
    write_table(output / "operator_memory.csv", operator_memory(timeline), "\r\n")
    write_table(output / "memory_record.csv", memory_record(timeline), "\r\n")
    write_table(output / "op_statistic.csv", op_statistic(timeline, names), "\n")
    write_table(output / "api_statistic.csv", api_statistic(timeline, names), "\n")
    write_table(output / "operator_details.csv", operator_details(timeline), "\n")
    write_table(output / "npu_module_mem.csv", npu_module_mem(timeline), "\n")
    if timeline.world_size > 1:
        write_json(output / "communication.json", communication(timeline))
        write_json(output / "communication_matrix.json", communication_matrix(timeline))
    return root
