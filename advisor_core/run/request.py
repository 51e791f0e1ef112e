"""The question that a run answers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from advisor_core.run.deep_ranks import BY_SIZE, DeepRanks
from advisor_core.run.prepared import RunOptions


@dataclass(frozen=True)
class Request:
    """All that decides the result of a run, besides the files at ``paths`` and our code. ``rank``: only this one;
    ``roles``: only those in directories of these names, of a job that profiles each role by itself; all of its roles
    are the roles of one result. ``deep``: the ranks of which more than the sums of their steps is read."""

    paths: tuple[Path, ...]
    options: RunOptions
    rank: int | None = None
    roles: tuple[str, ...] = ()
    deep: DeepRanks = BY_SIZE
