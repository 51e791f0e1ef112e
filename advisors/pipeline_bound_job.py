"""The clock of the AI cores, compared between the ranks of a job."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from advisor_core.api.advisors import Column, HigherClock, Metric, Observations, Params, Reference, job_advisor
from advisor_core.api.facts import FREQUENCY, Facts, JobFacts, NotApplicable, Unavailable, fact
from advisors.columns import RANK
from advisors.messages import message
from advisors.pipeline_bound.clock import CUBE_CORES, clock_at
from advisors.step_kernels import records, step_kernels

RANK_CLOCK = (
    Column("mhz", "float", "MHz", "recorded clock of the AI cores while kernels of the cube ran, mean over their time"),
    Column("cube_ns", "float", "ns", "time of these kernels per step"),
    Column("wall_ns", "float", "ns", "wall time of a step"),
)


@fact("rank_clock", needs=(step_kernels, FREQUENCY), shared=True, columns=RANK_CLOCK)
def rank_clock(facts: Facts) -> pd.DataFrame:
    """One row: the clock of the AI cores while the cube computes."""
    kernels = facts[step_kernels]
    cube_kernels = kernels.frame[kernels.frame["core"].isin(CUBE_CORES)]
    mhz = clock_at(facts[FREQUENCY], cube_kernels["start_ns"].to_numpy())
    has_clock = np.isfinite(mhz)
    duration_ns = cube_kernels["duration_ns"].to_numpy(dtype=np.float64)
    if not duration_ns[has_clock].sum():
        raise Unavailable(message("pipeline_bound.no_clock"))
    mean_mhz = float((mhz[has_clock] * duration_ns[has_clock]).sum() / duration_ns[has_clock].sum())
    return pd.DataFrame(
        {"mhz": [mean_mhz], "cube_ns": [float(duration_ns.sum()) / kernels.steps], "wall_ns": [kernels.wall_ns]}
    )


@job_advisor(
    "pipeline_bound_job.clock",
    needs=(rank_clock,),
    about=(Column("slow", "int", "", "the rank", zh="慢"),),
    columns=(
        Column("mhz", "float", "MHz", "its clock while the cube computes", zh="频率"),
        Column("others_mhz", "float", "MHz", "median of the other ranks", zh="其他 rank 频率"),
        Column("behind", "float", "ratio", "how far it is below them; 0 if it is not", zh="落后"),
        Column("cube_ns", "float", "ns", "its kernels on the cube, per step", zh="cube"),
        Column("lost_ns", "float", "ns", "what they would take less at the clock of the others, per step", zh="损失"),
        Column("share_of_step", "float", "ratio", "lost_ns over its step", zh="占 step"),
    ),
    evidence=(RANK,),
)
def clock(facts: JobFacts, params: Params) -> Observations:
    """Ranks whose AI cores run at a lower clock than those of the others."""
    clocks = facts.ranks(rank_clock)
    if len(clocks) < 2:
        raise NotApplicable(message("communication_job.one_rank"))
    table = pd.concat(clocks, names=["slow"]).reset_index(level=0).sort_values("slow", ignore_index=True)
    mhz = table["mhz"].to_numpy()
    others_mhz = np.where(np.eye(len(mhz), dtype=bool), np.nan, mhz[None, :])
    table["others_mhz"] = np.nanmedian(others_mhz, axis=1)
    table["behind"] = np.clip(1 - table["mhz"] / table["others_mhz"], 0.0, 1.0)
    table["lost_ns"] = table["cube_ns"] * table["behind"]
    table["share_of_step"] = table["lost_ns"] / table["wall_ns"]

    def evidence(_: int) -> Sequence[Reference]:
        shown_ranks = table.rename(columns={"slow": "rank"})[["rank", "mhz", "cube_ns"]]
        return [Metric(message("pipeline_bound.clock_of_ranks"), records(shown_ranks))]

    def losers(row: int) -> Sequence[int]:
        """The slow rank, and those that meet it in collectives: all of the job."""
        slow = int(table["slow"].iloc[row])
        return [slow, *(int(rank) for rank in table["slow"] if rank != slow)]

    def cure(row: int) -> HigherClock:
        return HigherClock({int(table["slow"].iloc[row]): float(1 - table["behind"].iloc[row])})

    return Observations(table, evidence, losers, cure)


ADVISORS = (clock,)
FACTS = (rank_clock,)
