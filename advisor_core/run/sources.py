"""The profiles that a run reads."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from advisor_core.contracts.profile import InputError, Loader, RankInput, StepError
from advisor_core.loaders.discover import discover
from advisor_core.plugins.guarded_loaders import loaders, problems_of
from advisor_core.plugins.host import Host


def sources(
    host: Host,
    paths: Sequence[Path],
    *,
    rank: int | None = None,
    roles: Sequence[str] = (),
    guarded: Sequence[Loader] | None = None,
) -> list[RankInput]:
    """The profiles below ``paths``, by role and rank, found by the loaders ``guarded`` or by all of the host. Raises
    `InputError`, `RoleError`, and `StepError` for a rank that is not there."""
    guarded = loaders(host) if guarded is None else guarded
    marks = host.phase_marks.third_parties_first()
    try:
        found = discover(guarded, *paths, roles=roles, marks=marks)
    except InputError as error:
        raise InputError("; ".join([str(error), *(problem.message.en for problem in problems_of(guarded))])) from None
    ranks = {source.rank for source in found}
    if rank is not None and rank not in ranks:
        raise StepError(f"rank {rank} is not in the profile; it has {', '.join(map(str, sorted(ranks)))}")
    return [source for source in found if rank in (None, source.rank)]
