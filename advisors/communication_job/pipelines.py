"""The pipeline of a job: which ranks are its stages, what each computes and how long its ranks wait."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from advisor_core.api.facts import (
    KERNELS,
    POINT_TO_POINT,
    PROFILE,
    Column,
    Facts,
    JobFacts,
    NotApplicable,
    Unavailable,
    aggregated,
    collective_calls,
    fact,
    ledger,
    steps,
    work,
)
from advisors.communication_job.computing import LONGEST_KERNELS, computing_in_steps, longest_kernels
from advisors.communication_job.groups import group_members, pipeline_by_order
from advisors.measuring import step_count
from advisors.messages import message

_OPTIMIZER = "compute/optimizer"
_P2P_WAIT = ("communication/wait/pipeline", "communication/unknown")

_CONTROL = 0.01
"""A message below this part of the largest carries shapes or flags, not activations."""


KINDS = (
    Column("type", "text", "", "operator type"),
    Column("input_shapes", "text", "", "shapes of its inputs"),
    Column("input_dtypes", "text", "", "dtypes of its inputs"),
    Column("count", "float", "count", "kernels per step"),
    Column("median_ns", "float", "ns", "median of what they take"),
)


@dataclass(frozen=True)
class PipelinePart:
    """The part of one rank in its pipeline. ``members``: the ranks of its pipeline in order of stages.
    ``operations``: send and receive operations per step, ``sends`` of which only send. ``by_type``: computing per step
    by operator type (class where types are not recorded), ns. ``kinds``: its kernels by what they compute, `KINDS`,
    where shapes were recorded. ``longest``: its longest kernels with where they stand in the profile."""

    members: tuple[int, ...]
    operations: float
    sends: float
    by_type: pd.Series
    kinds: pd.DataFrame
    longest: pd.DataFrame


@fact(
    "pipeline_part",
    needs=(PROFILE, steps, work, collective_calls),
    wants=(KERNELS,),
    shared=True,
    frames={"longest": LONGEST_KERNELS, "kinds": KINDS},
)
def pipeline_part(facts: Facts) -> PipelinePart:
    """The pipeline that a rank belongs to, and what the rank computes."""
    profile = facts[PROFILE]
    calls = facts[collective_calls]
    between = calls["operation"].str.contains(POINT_TO_POINT.pattern, case=False, regex=True)
    transfers = calls[between & (calls["step"] >= 0)]
    size = profile.parallel.get("pp")
    if transfers.empty or size == 1:  # context parallelism in a ring sends and receives as well
        raise NotApplicable(message("communication_job.no_pipeline"))
    transfers = transfers[~((transfers["bytes"] > 0) & (transfers["bytes"] < _CONTROL * transfers["bytes"].max()))]
    steps = step_count(facts)
    members = group_members(transfers["group"], profile, "pp")
    if size is not None and len(members) != size:
        members = pipeline_by_order(profile)
    if len(members) < 2 or profile.rank not in members:
        raise Unavailable(message("communication_job.no_groups"), message("communication_job.no_groups.collect"))
    sends = transfers["operation"].str.fullmatch("send", case=False).sum()
    device = computing_in_steps(facts)
    return PipelinePart(
        members,
        len(transfers) / steps,
        sends / steps,
        _by_type(device, steps),
        _kinds(facts, device, steps),
        longest_kernels(facts, device),
    )


def _by_type(device: pd.DataFrame, steps: int) -> pd.Series:
    kinds = device["type"].astype(str)
    kinds = kinds.where(kinds != "", device["operator_class"].astype(str))
    return (device["end_ns"] - device["start_ns"]).groupby(kinds).sum() / steps


def _kinds(facts: Facts, device: pd.DataFrame, steps: int) -> pd.DataFrame:
    kernels, kinds = facts.get(KERNELS), ["type", "input_shapes", "input_dtypes"]
    if kernels is None:
        return pd.DataFrame({column.name: [] for column in KINDS})
    own = kernels.iloc[device["row"].to_numpy()]
    own = own[own["input_shapes"].to_numpy() != ""]
    found: pd.DataFrame = aggregated(own, kinds, count=("duration_ns", "size"), median_ns=("duration_ns", np.median))
    return found.assign(count=found["count"] / steps, **{name: found[name].astype(str) for name in kinds})


@dataclass(frozen=True)
class Pipeline:
    """``stages``: ranks of each stage that were profiled. ``computing``: ns per step of each stage, on the fastest of
    its ranks: what the stage has to do, not what a slow rank makes of it. ``kinds``: the kernels of that rank, `KINDS`.
    ``slots``: micro-batches per step (times virtual stages), NaN unknown. ``waits``: ns per step and rank."""

    stages: list[list[int]]
    computing: np.ndarray
    kinds: list[pd.DataFrame]
    slots: float
    waits: dict[int, float]
    walls: dict[int, float]

    @property
    def wall_ns(self) -> float:
        return max(self.walls.values())

    def losers(self, ranks: Sequence[int]) -> list[int]:
        """Those of ``ranks`` that wait, longest first."""
        return sorted((rank for rank in ranks if self.waits[rank] > 0), key=lambda rank: (-self.waits[rank], rank))


def pipeline_of(facts: JobFacts) -> Pipeline:
    parts = facts.ranks(pipeline_part)
    length = max(len(part.members) for part in parts.values())
    stages = [
        sorted(rank for rank, part in parts.items() if len(part.members) == length and part.members.index(rank) == n)
        for n in range(length)
    ]
    if not all(stages):
        raise Unavailable(
            message("communication_job.stages"), message("communication_job.stages.collect"), ("all_ranks",)
        )
    ranks = [rank for stage in stages for rank in stage]
    booked, windows = facts.ranks(ledger), facts.ranks(steps)
    per_leaf = {rank: booked[rank].groupby("path")["ns"].sum() / len(windows[rank]) for rank in ranks}
    computes = {
        rank: float(leaf[leaf.index.str.startswith("compute/") & (leaf.index != _OPTIMIZER)].sum())
        for rank, leaf in per_leaf.items()
    }
    fastest = [min(stage, key=lambda rank: computes[rank]) for stage in stages]
    return Pipeline(
        stages,
        np.array([computes[rank] for rank in fastest]),
        [parts[rank].kinds for rank in fastest],
        _slots(parts, stages),
        {rank: float(leaf.reindex(_P2P_WAIT, fill_value=0).sum()) for rank, leaf in per_leaf.items()},
        {rank: float(leaf.sum()) for rank, leaf in per_leaf.items()},
    )


def _slots(parts: Mapping[int, PipelinePart], stages: list[list[int]]) -> float:
    """Micro-batches per step, from what the last stage exchanges with the one before it: it receives each and sends
    its gradient back. Batched, the gradient of one goes together with the next: one operation more than micro-batches.
    """
    last = parts[stages[-1][0]]
    slots = last.sends if last.sends else last.operations - 1
    return float(slots) if slots >= 1 else float("nan")
