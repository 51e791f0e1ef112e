"""The tables of analysis.db: the breakdown of every step, and collectives by time, packet size and link."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..export.communication import communication, communication_matrix
from ..export.generation import Names
from ..export.steps import step_times
from ..export.units import us
from ..timeline import Timeline
from .database import Database, Value

Row = tuple[Value, ...]
_TIMES = ("Start Timestamp(us)", "Elapse Time(ms)", "Transit Time(ms)", "Wait Time(ms)", "Synchronization Time(ms)")
_TRAFFIC = ("Transit Size(MB)", "Transit Time(ms)", "Bandwidth(GB/s)")


def step_trace_table(database: Database, timeline: Timeline, names: Names) -> None:
    """Times in us, although the documentation says ms (docs/sources.md#units-of-analysis-db)."""
    steps = step_times(timeline, closing_gap=False)
    rows = [(*names.device(timeline.device), str(step.number), *map(us, step.breakdown)) for step in steps]
    database.table("StepTraceTime", rows, newer=names.has_device_column)


def communication_tables(database: Database, timeline: Timeline) -> None:
    """Write the content of communication.json and communication_matrix.json as rows, without their totals over
    operators."""
    summary, matrix = communication(timeline), communication_matrix(timeline)
    database.table("CommAnalyzerBandwidth", _bandwidth_rows(summary))
    database.table("CommAnalyzerMatrix", _matrix_rows(matrix))
    database.table("CommAnalyzerTime", _time_rows(summary))


def _operators(summary: dict[str, Any]) -> Iterator[tuple[str, str, str, str, dict[str, Any]]]:
    """Step, type, name, group and content of every operator."""
    for step, types in summary.items():
        for type_, operators in types.items():
            for key, content in operators.items():
                name, _, group = key.partition("@")
                if group:
                    yield step, type_, name, group, content


def _bandwidth_rows(summary: dict[str, Any]) -> Iterator[Row]:
    for step, type_, name, group, content in _operators(summary):
        for transport, traffic in content["Communication Bandwidth Info"].items():
            if not traffic["Transit Size(MB)"]:
                continue
            packets = traffic["Size Distribution"] or {"0": (0, 0)}
            totals = (*(traffic[key] for key in _TRAFFIC), traffic["Large Packet Ratio"])
            for size, (number, time) in packets.items():
                yield name, group, transport, *totals, float(size), number, time, step, type_


def _time_rows(summary: dict[str, Any]) -> Iterator[Row]:
    for step, type_, name, group, content in _operators(summary):
        times = content["Communication Time Info"]
        yield name, group, *(times[key] for key in _TIMES), times["Idle Time(ms)"], step, type_


def _matrix_rows(matrix: dict[str, Any]) -> Iterator[Row]:
    for step, type_, name, group, links in _operators(matrix):
        for link, use in links.items():
            source, _, target = link.partition("-")
            traffic = [use[key] for key in _TRAFFIC]
            yield name, group, source, target, use["Transport Type"], *traffic, step, type_, use.get("Op Name", "")
