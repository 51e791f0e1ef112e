"""The names that changed between generations of the profiler, whatever the format of the export."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Headers = Literal["2024", "2025"]
"""Generation of the export: lanes and cores called HCCL, or Communication with a Device_id column
(docs/sources.md#two-generations-of-exports)."""

Cell = str | int | float


@dataclass(frozen=True, slots=True)
class Names:
    """The vocabulary of one generation of exports (docs/sources.md#two-generations-of-exports).

    ``vector_task`` is what the hardware lane calls a task of the vector cores: older text exports say ``AI_CORE``
    for every kernel that is not a MIX one.
    """

    has_device_column: bool
    collective: str
    collective_core: str
    annotation: str
    vector_task: str
    has_versions: bool

    def device(self, device: int | str) -> list[Cell]:
        """The leading column of device tables, where the generation has one."""
        return [device] if self.has_device_column else []

    @property
    def device_header(self) -> list[Cell]:
        """The name of that column."""
        return self.device("Device_id")


NAMES: dict[Headers, Names] = {
    "2024": Names(False, "HCCL", "HCCL", "cpu_op", "AI_CORE", False),
    "2025": Names(True, "Communication", "COMMUNICATION", "user_annotation", "AI_VECTOR_CORE", True),
}
