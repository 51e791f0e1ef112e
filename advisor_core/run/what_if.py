"""The time of the recorded step with changes that somebody asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from advisor_core.contracts.cure import AsPeers, OperatorsTake
from advisor_core.job.job_replay import Cures, JobReplay
from advisor_core.job.own_time import JobCure
from advisor_core.result.plan import WhatIf
from advisor_core.result.run import RunResult
from advisor_core.run.deep_ranks import BY_SIZE, DeepRanks
from advisor_core.run.pipeline import Progress, analysed
from advisor_core.run.prepared import RunOptions
from advisor_core.run.request import Request
from advisor_core.run.work import Work

_ASKED = "asked"


class WhatIfError(Exception):
    """The question names something that the profile does not have, or the profile has nothing to replay."""


def what_if(
    paths: Sequence[Path],
    options: RunOptions,
    *,
    without: Sequence[str] = (),
    scale: Mapping[str, float] | None = None,
    rank_as: Mapping[int, int] | None = None,
    deep: DeepRanks = BY_SIZE,
    jobs: int | None = None,
    progress: Progress = lambda line: None,
    work: Work | None = None,
) -> tuple[RunResult, WhatIf]:
    """The result of a run, and the step without the causes of the findings ``without`` (numbers of problems, ids and
    names of rules, fingerprints), with the kernels of operators scaled (``scale``: type or class to factor) and ranks
    as quick as others (``rank_as``).

    Raises `WhatIfError`, and what `advisor_core.run.pipeline.run` raises.
    """
    result, replayed = analysed(Request(tuple(paths), options, deep=deep), jobs=jobs, progress=progress, work=work)
    if result.profile.roles:
        raise WhatIfError("roles that were profiled by themselves are not replayed: choose the directory of one role")
    if result.profile.apart:
        numbers = ", ".join(result.numbers[name] for name in result.profile.apart)
        raise WhatIfError(
            f"the ranks do not seem to be of one run ({numbers} of the report): ask for one of them alone"
        )
    if replayed is None:
        raise WhatIfError(
            "nothing can be replayed: of no rank that was read in depth it is recorded when the host launched what the "
            "device ran"
        )
    asked = tuple(dict.fromkeys(name for what in without for name in _findings(result, what)))
    known = [name for name in asked if name in replayed.cures]
    for name in known:
        if rivals := replayed.cures[name].excludes & set(known):
            raise WhatIfError(f"the changes of {name} and {min(rivals)} exclude each other: ask for one of them")
    cures = replayed.cures | {_ASKED: Cures(of_job=_own(replayed, scale or {}, rank_as or {}))}
    changed = JobReplay(replayed.job, cures, replayed.error_share, replayed.absent)
    names = [*known, _ASKED]
    return result, WhatIf(
        step_ns=changed.step_ns(),
        after_ns=changed.step_ns(names),
        after_range_ns=changed.after_range_ns(names),
        saving_range_ns=changed.saving_range_ns(names),
        error_share=round(changed.error_share, 6),
        without=known,
        scale=dict(scale or {}),
        rank_as=dict(rank_as or {}),
        untold=[name for name in asked if name not in replayed.cures],
        parts_before=changed.parts(),
        parts_after=changed.parts(names),
        limit=changed.limit(),
        next_limit=changed.limit(names),
    )


def _findings(result: RunResult, what: str) -> list[str]:
    """The fingerprints of the findings that ``what`` names: of a problem its own, of a rule all."""
    numbers = {problem.number.lower(): problem.findings[0] for problem in result.problems}
    if what.lower() in numbers:
        return [numbers[what.lower()]]
    found = [one.fingerprint for one in result.findings if what in (one.rule, one.name, one.fingerprint)]
    if not found:
        raise WhatIfError(f"{what!r} is no problem, rule or fingerprint that this profile has a finding of")
    return found


def _own(replayed: JobReplay, scale: Mapping[str, float], rank_as: Mapping[int, int]) -> tuple[JobCure, ...]:
    models = replayed.job.models
    ranks = {model.rank for model in models}
    for rank in (*rank_as.keys(), *rank_as.values()):
        if rank not in ranks:
            raise WhatIfError(f"rank {rank} is not replayed; those that are: {', '.join(map(str, sorted(ranks)))}")
    operators = {
        str(name) for model in models for column in model.operators for name in model.operators[column].unique()
    }
    for name in scale:
        if name not in operators:
            raise WhatIfError(f"no kernel is of the type or class {name!r}")
    late: list[JobCure] = [AsPeers(rank, (other,)) for rank, other in rank_as.items()]
    return (*late, *([OperatorsTake(dict(scale))] if scale else []))
