"""The parts into which drawings of both results divide a whole: of the model, modules, holders of memory."""

from __future__ import annotations

import re
from collections.abc import Iterator

from advisor_core.compare.match import Match
from advisor_core.result.comparison import DrawnDifference, DrawnPart
from advisor_core.result.run import RunResult
from advisor_core.result.view import BarsView, HeatmapView, Purpose, View
from advisor_core.run.compose_mean_steps import Lane
from advisor_core.text.base import Text

_RANK = re.compile(r"-rank\d+(?=-|$)")

Trail = tuple[str, ...]
"""The names of a row and of those that it is part of, from the outermost on."""

Parts = dict[Trail, tuple[str | Text, float]]
"""Label and value of the rows."""


def drawn_differences(match: Match, purpose: Purpose) -> list[DrawnDifference]:
    """The drawings for one purpose that divide a whole by rows and that both sides have, per role; values are means
    over the ranks that have it on both sides. A row that one side does not draw is not known there."""
    before, after = (dict(_divided(side.result, purpose)) for side in (match.before, match.after))
    pairs: dict[tuple[str, str | None], list[tuple[View, View]]] = {}
    for own, other in match.pairs:
        for kind, lane in before:
            if lane == own and (kind, other) in after:
                pairs.setdefault((kind, own[0]), []).append((before[kind, own], after[kind, other]))
    return [_difference(kind, role, both) for (kind, role), both in pairs.items()]


def _divided(result: RunResult, purpose: Purpose) -> Iterator[tuple[tuple[str, Lane], View]]:
    for view in result.views:
        divides = view.kind == "bars" or (view.kind == "heatmap" and view.data.total is not None)
        if view.rank is not None and view.purpose == purpose and divides:
            yield (_RANK.sub("", view.id), (view.role, view.rank)), view


def _difference(kind: str, role: str | None, both: list[tuple[View, View]]) -> DrawnDifference:
    before, after = (_mean([_parts(views[side]) for views in both]) for side in (0, 1))
    labels = before | after
    place = {trail: number for number, trail in enumerate(labels)}
    # A row that only the later side has stands behind those it lies beside.
    order = sorted(labels, key=lambda trail: [place.get(trail[:depth], -1) for depth in range(1, len(trail) + 1)])
    return DrawnDifference(
        kind=kind,
        role=role,
        title=both[0][0].title,
        unit=both[0][0].unit,
        parts=[
            DrawnPart(
                label=labels[trail][0],
                depth=len(trail) - 1,
                before=before[trail][1] if trail in before else None,
                after=after[trail][1] if trail in after else None,
            )
            for trail in order
        ],
    )


def _mean(ranks: list[Parts]) -> Parts:
    """The rows that all ranks have."""
    shared = [trail for trail in ranks[0] if all(trail in parts for parts in ranks)]
    return {trail: (ranks[0][trail][0], sum(parts[trail][1] for parts in ranks) / len(ranks)) for trail in shared}


def _parts(view: View) -> Parts:
    rows: Parts = {}
    trail: Trail = ()
    for label, depth, value in _rows(view):
        trail = (*trail[:depth], label if isinstance(label, str) else label.en)
        if value is not None:
            rows[trail] = label, value + (rows[trail][1] if trail in rows else 0)
    return rows


def _rows(view: View) -> Iterator[tuple[str | Text, int, float | None]]:
    if isinstance(view, HeatmapView) and view.data.total is not None:
        depths = view.data.depths or [0] * len(view.data.rows)
        for label, depth, line in zip(view.data.rows, depths, view.data.values, strict=True):
            yield label, depth, line[view.data.total]
    elif isinstance(view, BarsView):
        for row in view.data.rows:
            yield row.label, 0, row.value
