"""How values are written, and the names that changed between generations of the export."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..kernels import Tensor
from ..timeline import HostSpan

Cell = str | int | float
Row = Sequence[Cell]

SOURCE_ROOT = "/train/"
"""Where the simulated training code lives; call stacks show full paths, spans relative ones."""

CORE_TYPES = ("AI_CORE", "AI_VECTOR_CORE", "MIX_AIC", "MIX_AIV")


@dataclass(frozen=True, slots=True)
class Names:
    """The vocabulary of one generation of exports (facts A3, A4, B1)."""

    has_device_column: bool
    collective: str
    collective_core: str
    annotation: str
    has_versions: bool

    def device(self, device: int | str) -> list[Cell]:
        """The leading column of device tables, where the generation has one."""
        return [device] if self.has_device_column else []

    @property
    def device_header(self) -> list[Cell]:
        """The name of that column."""
        return self.device("Device_id")


NAMES = {
    "2024": Names(False, "HCCL", "HCCL", "cpu_op", False),
    "2025": Names(True, "Communication", "COMMUNICATION", "user_annotation", True),
}


def us_text(ns: int) -> str:
    """A time stamp in us with its nanoseconds, exact."""
    return f"{ns // 1000}.{ns % 1000:03d}"


def us_column(ns: int) -> str:
    """A time stamp of a table: exports end these values with a tab."""
    return us_text(ns) + "\t"


def us(ns: int) -> float:
    """A duration in us."""
    return ns / 1000


def ms(ns: int) -> float:
    """A duration in ms."""
    return ns / 1_000_000


def mean(values: Sequence[float]) -> float:
    """The arithmetic mean."""
    return sum(values) / len(values)


def quoted(parts: Iterable[str]) -> str:
    """Shapes of several tensors: joined by semicolons, in quotes that are part of the value."""
    return '"' + ";".join(parts) + '"'


def shape_text(tensor: Tensor) -> str:
    """One shape; empty for a scalar."""
    return ",".join(map(str, tensor.shape))


def argument_shapes(span: HostSpan, separator: str) -> str:
    """The ``Input Dims`` of an operator: tensors first, then nothing for each scalar argument."""
    return separator.join([*map(shape_text, span.inputs), *[""] * span.scalars])


def argument_types(span: HostSpan, separator: str) -> str:
    """The ``Input type`` of an operator."""
    return separator.join([*(tensor.dtype.host_name for tensor in span.inputs), *["Scalar"] * span.scalars])


def call_stack(span: HostSpan, separator: str) -> str:
    """The Python frames of an operator, innermost first."""
    return separator.join(SOURCE_ROOT + frame for frame in reversed(span.frames))


def has_device_work(span: HostSpan) -> bool:
    """Whether a span appears in operator tables at all: annotations of steps and Python frames do not."""
    return span.kind != "python" and not span.name.startswith("ProfilerStep#")


def write_table(path: Path, rows: Iterable[Row], line_end: str) -> None:
    """Write a CSV table."""
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator=line_end).writerows(rows)


def write_json(path: Path, data: object, indent: int | None = None) -> None:
    """Write a JSON document."""
    path.write_text(json.dumps(data, indent=indent), encoding="utf-8")
