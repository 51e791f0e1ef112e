"""The text export: one ``*_ascend_pt`` directory per rank, every file from the same timeline."""

from __future__ import annotations

from pathlib import Path

from ..export.communication import communication, communication_matrix
from ..export.directory import rank_directory, write_json
from ..export.generation import Names
from ..export.recording import Recording
from ..timeline import Timeline
from .device_tables import kernel_details, op_statistic, step_trace_time
from .fields import write_table
from .host_tables import api_statistic, operator_details
from .memory import memory_record, npu_module_mem, operator_memory
from .trace_view import trace_events


def write_text(timeline: Timeline, directory: Path, names: Names, recording: Recording) -> Path:
    """Write the export of one rank below ``directory``; returns the directory of the rank.

    The files are those of a profile with memory that was taken at the level of ``recording`` (docs/sources.md#levels).
    """
    root = rank_directory(timeline, directory, names, recording, "text")
    output = root / "ASCEND_PROFILER_OUTPUT"
    write_json(output / "trace_view.json", trace_events(timeline, names, recording))
    # The framework's own tables end their lines with CR LF, those copied from msprof with LF.
    write_table(output / "operator_memory.csv", operator_memory(timeline), "\r\n")
    write_table(output / "memory_record.csv", memory_record(timeline), "\r\n")
    write_table(output / "npu_module_mem.csv", npu_module_mem(timeline), "\n")
    write_table(output / "operator_details.csv", operator_details(timeline, recording), "\n")
    if recording.device:
        write_table(output / "step_trace_time.csv", step_trace_time(timeline, names), "\r\n")
        write_table(output / "kernel_details.csv", kernel_details(timeline, names, recording), "\r\n")
    if recording.details:
        write_table(output / "op_statistic.csv", op_statistic(timeline, names), "\n")
        write_table(output / "api_statistic.csv", api_statistic(timeline, names, recording), "\n")
        if timeline.collectives:
            write_json(output / "communication.json", communication(timeline))
            write_json(output / "communication_matrix.json", communication_matrix(timeline))
    return root
