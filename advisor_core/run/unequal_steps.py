"""Diagnostics where the ranks of a job were not recorded for the same steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from advisor_core.result.run import Diagnostic
from advisor_core.text.base import Text
from advisor_core.text.listed import listed
from advisor_core.text.messages import message

NAMED = 3
"""Ranks of one kind, and kinds, that are named; our choice."""

_Steps = tuple[int, ...]


def unequal_steps(recorded: Mapping[int, Sequence[int | None]]) -> list[Diagnostic]:
    """``recorded``: rank to the ids of its steps. Ranks whose steps have no ids are not compared; nothing where all
    have the same, or only one has any."""
    groups: dict[_Steps, list[int]] = {}
    for rank, steps in sorted(recorded.items()):
        if steps and None not in steps:
            groups.setdefault(tuple(step for step in steps if step is not None), []).append(rank)
    if len(groups) < 2:
        return []
    usual = max(groups, key=lambda steps: (len(groups[steps]), len(steps)))
    others = sorted((ranks, steps) for steps, ranks in groups.items() if steps != usual)
    told = [_of(ranks, steps) for ranks, steps in others[:NAMED]]
    text = message(
        "steps.differ",
        usual=len(groups[usual]),
        steps=_span(usual),
        others=listed(told),
        count=sum(len(ranks) for ranks, _ in others),
    )
    found = [Diagnostic(severity="warning", source="job", message=text)]
    stopped = [rank for ranks, steps in others if steps == usual[: len(steps)] for rank in ranks]
    if stopped:
        said = message("steps.stopped", ranks=_named(sorted(stopped)), last=max(usual))
        found.append(Diagnostic(severity="warning", source="job", message=said))
    return found


def _of(ranks: Sequence[int], steps: _Steps) -> Text:
    return message("steps.of_ranks", ranks=_named(ranks), steps=_span(steps))


def _named(ranks: Sequence[int]) -> str:
    return ", ".join(map(str, ranks[:NAMED])) + (", ..." if len(ranks) > NAMED else "")


def _span(steps: _Steps) -> str:
    """
    >>> _span((10, 11, 12)), _span((10,)), _span((10, 12))
    ('10-12', '10', '10, 12')
    """
    first, last = steps[0], steps[-1]
    if len(steps) > 1 and last - first == len(steps) - 1:
        return f"{first}-{last}"
    return _named(steps)
