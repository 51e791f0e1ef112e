"""Capture quality of a job: whether the profiles belong together, which ranks are missing, and which stand twice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from advisor_core.api import Scalar
from advisor_core.api.advisors import Column, Metric, Observations, Params, Reference, job_advisor
from advisor_core.api.facts import PROFILE, Facts, JobFacts, NotApplicable, Unavailable, collective_calls, fact, steps
from advisors.columns import RANK
from advisors.measuring import row
from advisors.messages import message

_LISTED = 16


_PROFILES = Column("profiles", "int", "count", "profiles that were given as one job", zh="profile 数")
_WHEN = (
    RANK,
    Column("start", "int", "ns", "first task", zh="开始"),
    Column("end", "int", "ns", "end of the last task", zh="结束"),
)


@dataclass(frozen=True)
class Capture:
    """The recorded settings of the profile of one rank. ``chip``, ``versions``, ``parallel``: as text, '' if not
    recorded. ``group_ranks``: the ranks of all recorded groups. ``start_ns``, ``end_ns``: the profiled steps, -1 if
    there are none."""

    level: str
    chip: str
    versions: str
    parallel: str
    world_size: int | None
    group_ranks: tuple[int, ...]
    start_ns: int
    end_ns: int


@fact("capture", needs=(PROFILE,), wants=(steps,), shared=True)
def capture(facts: Facts) -> Capture:
    """The settings and origin of the profile of a rank, for the comparison with others."""
    profile = facts[PROFILE]
    windows = facts.get(steps)
    return Capture(
        level=profile.level or "",
        chip=str(profile.chip.get("name", "")),
        versions=", ".join(f"{name} {profile.versions[name]}" for name in sorted(profile.versions)),
        parallel=", ".join(f"{name}={profile.parallel[name]}" for name in sorted(profile.parallel)),
        world_size=profile.world_size,
        group_ranks=tuple(sorted({int(rank) for ranks in profile.groups.values() for rank in ranks})),
        start_ns=int(windows["start_ns"].min()) if windows is not None else -1,
        end_ns=int(windows["end_ns"].max()) if windows is not None else -1,
    )


@job_advisor(
    "capture_job.same_job",
    needs=(capture,),
    columns=(
        _PROFILES,
        Column(
            "differing",
            "int",
            "count",
            "aspects that ranks of one job have in common and these do not",
            zh="不一致项数",
        ),
        Column("aspects", "text", "", "which aspects these are, as columns of the evidence", zh="不一致项"),
        Column(
            "apart_ns",
            "int",
            "ns",
            "time between the end of the first and the start of the last, 0 if they overlap",
            zh="相差",
        ),
    ),
    evidence=(
        *_WHEN,
        Column("level", "text", "", "level of the profiler", zh="级别"),
        Column("chip", "text", "", "name of the chip", zh="芯片"),
        Column("versions", "text", "", "versions of the software", zh="版本"),
        Column("world_size", "int", "", "ranks of the job", zh="总 rank 数"),
        Column("parallel", "text", "", "how the job is divided", zh="并行"),
    ),
)
def same_job(facts: JobFacts, params: Params) -> Observations:
    """Whether the profiles belong to the same run."""
    captures = facts.ranks(capture)
    if len(captures) < 2:
        raise NotApplicable(message("capture_job.one_rank"))
    known = list(captures.values())
    aspects: dict[str, set[str] | set[int]] = {
        "versions": {found.versions for found in known if found.versions},
        "level": {found.level for found in known if found.level},
        "chip": {found.chip for found in known if found.chip},
        "world_size": {found.world_size for found in known if found.world_size},
        "parallel": {found.parallel for found in known if found.parallel},
    }
    differing = [name for name, values in aspects.items() if len(values) > 1]
    timed = [found for found in known if found.start_ns >= 0]
    apart = max((found.start_ns for found in timed), default=0) - min((found.end_ns for found in timed), default=0)
    if apart > 0:
        differing.append("start")
    frame = row(
        profiles=len(captures), differing=len(differing), aspects=", ".join(differing), apart_ns=max(0, int(apart))
    )

    def evidence(number: int) -> Sequence[Reference]:
        rows: list[dict[str, Scalar]] = [
            {
                "rank": rank,
                "level": found.level,
                "chip": found.chip,
                "versions": found.versions,
                "world_size": found.world_size,
                "parallel": found.parallel,
                "start": found.start_ns,
                "end": found.end_ns,
            }
            for rank, found in sorted(captures.items())[:_LISTED]
        ]
        return [Metric(message("capture_job.profiles"), rows)]

    return Observations(frame, evidence, lambda number: sorted(captures))


@job_advisor(
    "capture_job.ranks",
    needs=(capture, collective_calls),
    columns=(
        Column("profiled", "int", "count", "ranks that were given", zh="已采集"),
        Column(
            "expected",
            "int",
            "count",
            "ranks that the profiles name, by recorded sizes and groups or as peers",
            zh="应有数",
        ),
        Column("missing", "int", "count", "expected less profiled", zh="缺少数"),
    ),
    evidence=(
        Column("profiled_ranks", "text", "", "the first of the profiled ranks", zh="已采集的 rank"),
        Column("missing_ranks", "text", "", "the first of those that are not profiled", zh="缺少的 rank"),
        Column("largest_group", "int", "count", "ranks of the largest group that a collective names", zh="最大通信域"),
    ),
)
def ranks(facts: JobFacts, params: Params) -> Observations:
    """Number of ranks of the job that are not in the profile."""
    captures = facts.ranks(capture)
    calls = facts.ranks(collective_calls)
    recorded = {rank for found in captures.values() for rank in found.group_ranks}
    sizes = [found.world_size for found in captures.values() if found.world_size]
    numbered = recorded | set(range(max(sizes, default=0)))
    # without recorded groups, as many as one rank's collectives name; which they are is not known then
    peers = max((int(found["members"].max()) for found in calls.values() if len(found)), default=-1)
    named = max(len(numbered | set(captures)) if numbered else -1, peers)
    if named < 1:
        raise Unavailable(message("capture_job.no_size"), message("capture_job.no_size.collect"), ("all_ranks",))
    expected = max(named, len(captures))
    frame = row(profiled=len(captures), expected=expected, missing=expected - len(captures))

    def evidence(number: int) -> Sequence[Reference]:
        given = ", ".join(map(str, sorted(captures)[:_LISTED]))
        absent = ", ".join(map(str, sorted(numbered - set(captures))[:_LISTED]))
        shown: dict[str, Scalar] = {
            "profiled_ranks": given,
            "missing_ranks": absent or None,
            "largest_group": max(peers, 0) or None,
        }
        return [Metric(message("capture_job.ranks_listed"), [shown])]

    return Observations(frame, evidence, lambda number: sorted(captures))


@job_advisor(
    "capture_job.copies",
    needs=(capture,),
    columns=(
        _PROFILES,
        Column(
            "copied",
            "int",
            "count",
            "ranks whose steps begin and end, to the nanosecond, with those of another rank",
            zh="重复的 rank 数",
        ),
        Column("copied_ranks", "text", "", "which ranks these are, together with that other one", zh="重复的 rank"),
    ),
    evidence=_WHEN,
)
def copies(facts: JobFacts, params: Params) -> Observations:
    """Ranks that are one recording under several numbers: two devices never begin and end at the same nanosecond."""
    captures = facts.ranks(capture)
    if len(captures) < 2:
        raise NotApplicable(message("capture_job.one_rank"))
    same: dict[tuple[int, int], list[int]] = {}
    for rank, found in sorted(captures.items()):
        if found.start_ns >= 0:
            same.setdefault((found.start_ns, found.end_ns), []).append(rank)
    groups = [ranks for ranks in same.values() if len(ranks) > 1]
    frame = row(
        profiles=len(captures),
        copied=sum(len(ranks) - 1 for ranks in groups),
        copied_ranks="; ".join(", ".join(map(str, ranks[:_LISTED])) for ranks in groups[:_LISTED]),
    )

    def evidence(number: int) -> Sequence[Reference]:
        ranks = [rank for group in groups for rank in group][:_LISTED]
        rows = [{"rank": rank, "start": captures[rank].start_ns, "end": captures[rank].end_ns} for rank in ranks]
        return [Metric(message("capture_job.profiles"), rows)]

    return Observations(frame, evidence, lambda number: sorted(captures))


FACTS = (capture,)
ADVISORS = (same_job, ranks, copies)
