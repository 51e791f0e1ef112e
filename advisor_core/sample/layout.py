"""The layout of the ranks of a job: tensor, pipeline and data parallel, and which of them communicate.

Ranks are numbered as in Megatron: neighbours share a tensor-parallel group, then come data parallelism and the stages
of the pipeline. Experts are spread over parts of the data-parallel groups.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Dimension = Literal["world", "data", "tensor", "pipeline", "expert", "expert_data"]
Transport = Literal["HCCS", "SIO"]
"""Links between the devices of a server, and between the two dies of a module."""

FIRST_COMMUNICATION_STREAM = 4

_NAMES: dict[Dimension, tuple[int, str]] = {
    "world": (0, "default_group"),
    "data": (5, "dp_cp"),
    "tensor": (16, "tp"),
    "pipeline": (19, "pp"),
    "expert": (22, "ep"),
    "expert_data": (24, "dp_modulo_ep"),
}
"""Number and name of the group of each dimension. Every process counts the groups that it is itself a member of, so
that groups side by side have the same number on their ranks (those of ``dp_cp`` and ``pp`` are as seen,
docs/sources.md#group-number)."""


@dataclass(frozen=True, slots=True)
class CommunicationGroup:
    """A group as one of its ranks knows it: its key and name, its members as global ranks, the stream it works on."""

    key: str
    name: str
    ranks: tuple[int, ...]
    stream: int = FIRST_COMMUNICATION_STREAM
    transport: Transport = "HCCS"

    def local(self, rank: int) -> int:
        """The place of a global rank in the group."""
        return self.ranks.index(rank)


@dataclass(frozen=True, slots=True)
class Layout:
    """Sizes of the parallel dimensions; ``expert`` divides ``data``.

    ``paired``: ranks of a tensor-parallel group of two are the dies of one module (docs/sources.md#links). ``batched``:
    sends and receives between stages are one operation, ``hcom_batchSendRecv``.
    """

    data: int = 1
    tensor: int = 1
    pipeline: int = 1
    expert: int = 1
    paired: bool = False
    batched: bool = True

    def __post_init__(self) -> None:
        if self.data % self.expert:
            raise ValueError(f"{self.expert} parts of the experts do not divide {self.data} data-parallel ranks")
        if self.paired and self.tensor != 2:
            raise ValueError("a module has two dies")

    @property
    def ranks(self) -> int:
        """Number of ranks."""
        return self.data * self.tensor * self.pipeline

    def place(self, rank: int) -> tuple[int, int, int]:
        """Place of a rank in its tensor-parallel group, its data-parallel group and the pipeline."""
        return rank % self.tensor, rank // self.tensor % self.data, rank // (self.tensor * self.data)

    def stage(self, rank: int) -> int:
        """The stage of the pipeline that a rank works on."""
        return self.place(rank)[2]

    def group(self, rank: int, dimension: Dimension) -> CommunicationGroup | None:
        """The group of a rank along a dimension, if it is not alone in it."""
        used = self._dimensions(rank)
        if dimension not in used:
            return None
        number, name = _NAMES[dimension]
        stream = FIRST_COMMUNICATION_STREAM + used.index(dimension)
        transport: Transport = "SIO" if self.paired and dimension == "tensor" else "HCCS"
        return CommunicationGroup(f"group_name_{number}", name, self._members(rank, dimension), stream, transport)

    def groups(self, rank: int) -> tuple[CommunicationGroup, ...]:
        """All groups of a rank, in the order of their streams."""
        found = (self.group(rank, dimension) for dimension in self._dimensions(rank))
        return tuple(group for group in found if group is not None)

    def _dimensions(self, rank: int) -> list[Dimension]:
        """Those in which a rank has company. Where all ranks are alike the group of all of them does the work."""
        if self.ranks == 1:
            return []
        if self.only_data:
            return ["world"]
        divided = [dimension for dimension in _NAMES if dimension != "world"]
        return [*(one for one in divided if len(self._members(rank, one)) > 1), "world"]

    @property
    def only_data(self) -> bool:
        """Whether all ranks do the same, each with its part of the data."""
        return self.tensor == self.pipeline == self.expert == 1

    def _members(self, rank: int, dimension: Dimension) -> tuple[int, ...]:
        tensor, data, stage = self.place(rank)
        part = data // self.expert

        def number(t: int, d: int, s: int) -> int:
            return t + self.tensor * (d + self.data * s)

        if dimension == "world":
            return tuple(range(self.ranks))
        if dimension == "tensor":
            return tuple(number(other, data, stage) for other in range(self.tensor))
        if dimension == "pipeline":
            return tuple(number(tensor, data, other) for other in range(self.pipeline))
        if dimension == "data":
            return tuple(number(tensor, other, stage) for other in range(self.data))
        if dimension == "expert":
            return tuple(number(tensor, part * self.expert + other, stage) for other in range(self.expert))
        return tuple(number(tensor, other, stage) for other in range(data % self.expert, self.data, self.expert))
