"""For which ranks each state of a rule holds, in words."""

from __future__ import annotations

from collections.abc import Sequence

from advisor_core.api.renderers import RuleOutcome
from reports.labels import Labels

_RUN = 3
"""From so many neighbouring ranks on only the first and the last are named."""


def rank_states(outcome: RuleOutcome, labels: Labels) -> str:
    """``in order on ranks 0 and 2, cannot be answered on ranks 1 and 3``; nothing where all ranks agree."""
    if len(outcome.ranks) < 2:
        return ""
    return labels("word.clause").join(
        labels(f"on_ranks.{state}", ranks=rank_list(ranks, labels)) for state, ranks in outcome.ranks.items()
    )


def rank_list(ranks: Sequence[int], labels: Labels) -> str:
    """``rank 1``, ``ranks 0 and 2``, ``ranks 0–6 and 8``."""
    names = [str(rank) for rank in ranks] if len(ranks) < _RUN else _runs(sorted(ranks))
    if len(ranks) == 1:
        return labels("word.rank", rank=names[0])
    listed = labels("word.and", list=labels.join(names[:-1]), last=names[-1]) if len(names) > 1 else names[0]
    return labels("word.ranks", list=listed)


def _runs(ranks: Sequence[int]) -> list[str]:
    runs: list[list[int]] = []
    for rank in ranks:
        if runs and rank == runs[-1][-1] + 1:
            runs[-1].append(rank)
        else:
            runs.append([rank])
    named = [[f"{run[0]}–{run[-1]}"] if len(run) >= _RUN else [str(rank) for rank in run] for run in runs]
    return [name for run in named for name in run]
