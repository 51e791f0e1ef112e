"""The drawings behind those of the first page, within the room that a format has for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from advisor_core.api.renderers import TableView, View
from reports.blocks import Block, Details, Figure, Paragraph, Section, line
from reports.labels import Labels
from reports.outline import Outline
from reports.sections.limits import Limits, Room
from reports.view_tables import written

_Lane = tuple[str | None, int]


def charts(outline: Outline, t: Labels, limits: Limits, elsewhere: Sequence[View]) -> Section | None:
    """What is drawn of all ranks, then of each rank, but for the views that stand ``elsewhere``; with what was left out
    for want of room."""
    views = [
        view
        for view in outline.views
        if view.purpose not in ("phases", "settings") and not any(view is other for other in elsewhere)
    ]
    if not views:
        return None
    blocks = [(view, _figure(view, t)) for view in views[: limits.charts]]
    drawn = blocks if limits.room is None else _within(blocks, limits.room, outline)
    left: list[Block] = []
    if omitted := Counter(_lane(view) for view, block in blocks if all(block is not other for _, other in drawn)):
        names = t.join([_name(one, t) for one in omitted])
        left.append(Paragraph(line(t("views.no_room", count=sum(omitted.values()), ranks=names)), "small"))
    if more := len(views) - len(blocks):
        left.append(Paragraph(line(t("views.left", count=more)), "small"))
    return Section("charts", t("views.title"), (*(block for _, block in drawn), *left))


def _figure(view: View, t: Labels) -> Block:
    """A drawing; a table is folded away, and left out where room is short, since it is long."""
    if isinstance(view, TableView):
        return Details(line(t.of(view.title)), (written(view, t),), extra=True)
    return Figure(view, t.of(view.title))


def _lane(view: View) -> _Lane:
    """The role and the rank of a view of a rank."""
    return view.role, -1 if view.rank is None else view.rank


def _name(one: _Lane, t: Labels) -> str:
    role, rank = one
    return str(rank) if role is None else f"{role} {rank}"


def _within(blocks: Sequence[tuple[View, Block]], room: Room, outline: Outline) -> list[tuple[View, Block]]:
    """The drawings that fit: those of all ranks together, and of ranks as many as there is room for.

    Roles share the room evenly. Of each, the rank of its first problem comes first, of which as many drawings stay as
    fit; further ranks stay as a whole or not at all, until one does not fit.
    """
    lanes: dict[_Lane, list[Block]] = {}
    for view, block in blocks:
        if view.rank is not None:
            lanes.setdefault(_lane(view), []).append(block)
    named = [(item.finding.role, item.finding.rank) for root in outline.items for item in root.walk()]
    order = [one for one in dict.fromkeys((*named, *lanes)) if one in lanes]
    roles = dict.fromkeys(role for role, _ in order)
    kept: set[int] = set()
    for role in roles:
        left = room.size // len(roles)
        for number, one in enumerate(one for one in order if one[0] == role):
            fitting = _fitting(lanes[one], left, room)
            if number and len(fitting) < len(lanes[one]):
                break
            kept.update(map(id, fitting))
            left -= sum(map(room.weigh, fitting))
    return [(view, block) for view, block in blocks if view.rank is None or id(block) in kept]


def _fitting(blocks: Sequence[Block], left: int, room: Room) -> list[Block]:
    """The first of these blocks that together take no more than is left."""
    fitting: list[Block] = []
    for block in blocks:
        left -= room.weigh(block)
        if left < 0:
            break
        fitting.append(block)
    return fitting
