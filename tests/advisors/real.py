"""Real profiles for tests: the facts of one rank, loaded once per session."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from advisor_core.facts.store import FactStore
from advisor_core.loaders.discover import discover
from advisor_core.run.rank import fact_store
from tests.advisors.build import host


@cache
def real_job(profiles: Path, name: str) -> dict[int, FactStore]:
    """The facts of every rank of a profile below the folder of real profiles."""
    loaders = host().loaders
    found = discover(list(loaders.values()), profiles / "ascend" / name)
    return {source.rank: fact_store(host(), loaders[source.loader].load(source)) for source in found}


def real_rank(profiles: Path, name: str, rank: int) -> FactStore:
    return real_job(profiles, name)[rank]
