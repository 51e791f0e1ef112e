"""The balance of a job, out of the ledgers of its ranks and the replay of all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from advisor_core.job.job_replay import JobReplay
from advisor_core.job.same_work import alike, stages_of
from advisor_core.job.slack import JobSlack
from advisor_core.job.slowdown import Slowdown, slowdown
from advisor_core.result.balance import Balance, RankBalance, StageBalance
from advisor_core.result.layout import Layout
from advisor_core.result.run import LedgerStep, MeanStep
from advisor_core.run.compose_mean_steps import rank_means
from advisor_core.text.messages import message

_WAIT = "communication/wait"
_NOT_TOLD = "communication/unknown"


def balance(ledger: Iterable[LedgerStep], slack: JobSlack | None, layout: Layout) -> Balance | None:
    """``None`` where fewer than two ranks have a ledger. ``slack``: of the job as recorded, ``None`` where it cannot be
    replayed."""
    means = list(rank_means(ledger).values())
    if len(means) < 2:
        return None
    booked = [_booked(mean, layout) for mean in means]
    if slack is None:
        return Balance(ranks=booked, tensor_ranks=layout.tensor, unknown=message("balance.no_replay"))
    replayed = slack.replayed
    stages = stages_of(replayed.job, layout)
    slower = None
    if stages is not None:
        groups = [alike(replayed.job, ranks) for ranks in stages]
        slower = slowdown(replayed.job, replayed.step_ns(), stages, groups)
    of_ranks = slower.ranks if slower is not None else {}
    free, on_path = slack.of_ranks(), _on_path(replayed)
    return Balance(
        ranks=[
            rank.model_copy(
                update={
                    "slowdown": _rounded(of_ranks.get(rank.rank)),
                    "slack_ns": free.get(rank.rank),
                    "on_path_ns": on_path.get(rank.rank),
                }
            )
            for rank in booked
        ],
        tensor_ranks=layout.tensor,
        **_costs(slower, stages or [], len(replayed.job.models)),
    )


def _booked(mean: MeanStep, layout: Layout) -> RankBalance:
    """What the ledger books for a rank."""
    sums: Counter[str] = Counter()
    for path, ns in mean.entries.items():
        trunk = path.partition("/")[0]
        sums[_WAIT if path.startswith(_WAIT) else trunk] += ns
    waits = None if mean.entries.get(_NOT_TOLD) and not sums[_WAIT] else sums[_WAIT]
    return RankBalance(
        rank=mean.rank or 0,
        stage=layout.stage(mean.rank or 0) if layout.stages != 1 else None,
        step_ns=mean.wall_ns,
        computing_ns=sums["compute"],
        communicating_ns=sums["communication"],
        waiting_ns=waits,
        idle_ns=sums["idle"],
    )


def _on_path(replayed: JobReplay) -> Mapping[int, int]:
    """By rank, the time of a step that its end waits for the rank."""
    sums = dict.fromkeys((model.rank for model in replayed.job.models), 0)
    for owner in replayed.critical_path():
        if owner.rank is not None:
            sums[owner.rank] += owner.ns
    return sums


def _costs(slower: Slowdown | None, stages: Sequence[Sequence[int]], ranks: int) -> dict[str, Any]:
    """What it costs that ranks that do the same work are not equally long busy with it."""
    if slower is None:
        return {"unknown": message("balance.no_stages")}
    found: dict[str, Any] = {
        "step_ns": slower.step_ns,
        "stages": [
            StageBalance(stage=number, ranks=list(own), slowdown=_rounded(slower.stages.get(number)))
            for number, own in enumerate(stages)
        ]
        if slower.stages
        else [],
    }
    if slower.ideal_ns is None:
        return {**found, "unknown": message("balance.no_peers")}
    return {
        **found,
        "ideal_ns": slower.ideal_ns,
        "slowdown": round(slower.step_ns / max(1, slower.ideal_ns), 4),
        "waste_ns": max(0, slower.step_ns - slower.ideal_ns) * ranks,
    }


def _rounded(ratio: float | None) -> float | None:
    return None if ratio is None else round(ratio, 4)
