"""The place of a rank in the parallel layout of its job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

INNERMOST_FIRST = ("tp", "cp", "dp", "pp")
"""The order in which ranks are numbered: docs/sources.md#numbering-of-ranks."""


def coordinates(rank: int, sizes: Mapping[str, int]) -> tuple[int, ...]:
    """The place of a rank in each dimension, as of `INNERMOST_FIRST`.

    >>> coordinates(5, {"tp": 2, "dp": 2, "pp": 2})
    (1, 0, 0, 1)
    """
    places = []
    for dimension in INNERMOST_FIRST:
        rank, place = divmod(rank, sizes.get(dimension, 1)) if dimension != "pp" else (0, rank)
        places.append(place)
    return tuple(places)


@dataclass(frozen=True)
class Layout:
    """The sizes of the dimensions of a job. ``world_size``: its ranks, ``None`` unknown."""

    sizes: Mapping[str, int]
    world_size: int | None

    @property
    def stages(self) -> int | None:
        """The stages of the pipeline, 1 for none; ``None`` where it is not recorded, or does not fit the ranks."""
        stages = self.sizes.get("pp")
        if stages is None or stages == 1:
            return stages
        return stages if stages > 1 and self.world_size and self.world_size % stages == 0 else None

    def stage(self, rank: int) -> int | None:
        """The stage of a rank; ``None`` where it is not known. Stages are the outermost dimension."""
        if self.stages is None or self.stages == 1:
            return None if self.stages is None else 0
        return rank * self.stages // self.world_size if self.world_size and rank < self.world_size else None

    @property
    def tensor(self) -> int:
        """Ranks that share each tensor, 1 where it is not recorded: they have neighbouring numbers."""
        whole = prod(self.sizes.get(dimension, 1) for dimension in INNERMOST_FIRST)
        return self.sizes.get("tp", 1) if self.world_size and self.world_size == whole else 1
