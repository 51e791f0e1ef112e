"""The ranks of a job side by side: a map of them by each measure, the numbers behind it, and what differences cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from advisor_core.api.renderers import Balance, RankBalance
from reports.blocks import Block, Column, Details, Figure, Line, Paragraph, RankLine, RankMap, Row, Section, Table, line
from reports.labels import Labels
from reports.outline import Outline
from reports.sections.grid import cut

MEASURES = ("slowdown", "waiting_ns", "computing_ns", "communicating_ns", "idle_ns")

NOTED = 1.005
"""From this slowdown on a map of it says something: as `advisor_core.job.plan.WORTH`."""

STRAGGLING = 1.1
"""From this slowdown on a job is called straggling: docs/sources.md#slowdown-by-ranks. A map in which all are below, or
in which less of the step is spent, is not as dark as one in which some are above."""

NARROW, WIDE = 16, 64
"""Ranks in a line, and in one of more than `MANY`: what two and eight hosts of eight accelerators have."""

MANY = 256

ROWS = 24

LISTED = 3
"""So many ranks that do not follow one another are named beside their line."""

HOURS = 24


def ranks(outline: Outline, t: Labels) -> Section | None:
    """``None`` where fewer than two ranks were recorded, or they are not of one run."""
    found = outline.result.balance
    if found is None:
        return None
    drawn = {measure: data for measure in MEASURES if (data := rank_map(found, measure, t)) is not None}
    first = _chosen(found)
    blocks: list[Block] = [Figure(drawn[first], t(f"ranks.{first}")), Paragraph(line(_costs(found, outline, t)))]
    rest = tuple(Figure(data, t(f"ranks.{measure}")) for measure, data in drawn.items() if measure != first)
    behind = (*rest, *_table(found, first, t), Paragraph(line(t("ranks.note")), "small"))
    blocks.append(Details(line(t("ranks.more")), behind))
    return Section("ranks", "", tuple(blocks), label=t("ranks.title"))


def rank_map(found: Balance, measure: str, t: Labels) -> RankMap | None:
    """The map by one measure, ``None`` where it is known of no rank."""
    values: dict[int, float | None] = {rank.rank: getattr(rank, measure) for rank in found.ranks}
    known = [value for value in values.values() if value is not None]
    if not known:
        return None
    is_ratio = measure == "slowdown"
    darkest = STRAGGLING if is_ratio else (STRAGGLING - 1) * max(rank.step_ns for rank in found.ranks)
    return RankMap(
        lines=tuple(
            RankLine(_label(own, apart, t), tuple((rank.rank, values[rank.rank]) for rank in own), apart)
            for own, apart in _lines(found)
        ),
        unit="" if is_ratio else "ns",
        low=1.0 if is_ratio else 0.0,
        high=max([darkest, *known]),
        together=found.tensor_ranks,
    )


def _lines(found: Balance) -> Iterator[tuple[Sequence[RankBalance], bool]]:
    """The ranks that stand in one line, and whether a stage begins with it."""
    stages: dict[int | None, list[RankBalance]] = {}
    for rank in found.ranks:
        stages.setdefault(rank.stage, []).append(rank)
    longest = max(map(len, stages.values()))
    wide = min(longest, NARROW if len(found.ranks) <= MANY else WIDE)
    wide = max(wide - wide % found.tensor_ranks, min(wide, found.tensor_ranks))
    for _, own in sorted(stages.items(), key=lambda stage: stage[0] or 0):
        for begin in range(0, len(own), wide):
            yield own[begin : begin + wide], not begin


def _label(own: Sequence[RankBalance], first_of_stage: bool, t: Labels) -> str:
    first, last, stage = own[0].rank, own[-1].rank, own[0].stage
    if last - first < len(own):
        listed = f"{first}–{last}"
    else:  # some between them were not recorded
        listed = t.join([str(rank.rank) for rank in own]) if len(own) <= LISTED else f"{first} … {last}"
    named = t("word.rank", rank=first) if first == last else t("word.ranks", list=listed)
    if stage is None or not first_of_stage:
        return named
    return t("ranks.of_stage", stage=stage, ranks=named if first == last else listed)


def _chosen(found: Balance) -> str:
    """The measure that tells most on the first page: the slowdown where ranks differ by it, else what ranks wait, else
    what they compute."""
    if any((rank.slowdown or 1.0) >= NOTED for rank in found.ranks):
        return "slowdown"
    return "waiting_ns" if any(rank.waiting_ns for rank in found.ranks) else "computing_ns"


def _costs(found: Balance, outline: Outline, t: Labels) -> str:
    """What it costs that ranks, and stages, differ."""
    told = []
    if found.slowdown is None or found.ideal_ns is None or found.step_ns is None or found.waste_ns is None:
        told.append(t("ranks.unknown", reason=t.of(found.unknown)) if found.unknown is not None else "")
    elif found.slowdown < NOTED:
        told.append(t("ranks.even", share=t.share(max(0.0, 1 - 1 / found.slowdown))))
    else:
        told.append(
            t(
                "ranks.costs",
                step=t.time(found.step_ns),
                ideal=t.time(found.ideal_ns),
                slowdown=f"{found.slowdown:.2f}",
                waste=t.time(found.waste_ns),
                hours=f"{HOURS * found.waste_ns / found.step_ns:,.1f}",
            )
        )
    replayed = sum(rank.on_path_ns is not None for rank in found.ranks)
    everyone = max(len(found.ranks), outline.result.profile.world_size or 0)
    if found.slowdown is not None and replayed < everyone:
        told.append(t("ranks.of_few", count=replayed, all=everyone))
    elif found.slowdown is not None and outline.result.plan is not None and outline.result.plan.absent:
        told.append(t("ranks.of_recorded", count=replayed))
    slowdown, stage = max(((one.slowdown or 1.0, one.stage) for one in found.stages), default=(1.0, 0))
    if slowdown >= NOTED:
        told.append(t("ranks.stage", stage=stage, slowdown=f"{slowdown:.2f}"))
    return "".join(told).strip()


def _table(found: Balance, first: str, t: Labels) -> Iterator[Block]:
    """The numbers, most of the measure that is drawn first."""
    ordered = sorted(found.ranks, key=lambda rank: (-(getattr(rank, first) or 0), rank.rank))
    staged = any(rank.stage is not None for rank in found.ranks)
    heads = ["step", "computing", "communicating", "waiting", "idle", "on_path", "slack", "slowdown"]
    columns = (
        Column(t("inputs.rank"), numeric=True),
        *([Column(t("ranks.column.stage"), numeric=True)] if staged else []),
        *(Column(t(f"ranks.column.{head}"), numeric=True) for head in heads),
    )
    rows = []
    for rank in ordered[:ROWS]:
        times = (
            *(rank.step_ns, rank.computing_ns, rank.communicating_ns, rank.waiting_ns, rank.idle_ns),
            *(rank.on_path_ns, rank.slack_ns),
        )
        cells: list[Line] = [line(str(rank.rank))]
        if staged:
            cells.append(line("–" if rank.stage is None else str(rank.stage)))
        cells += [line("–" if ns is None else t.time(ns)) for ns in times]
        cells.append(line("–" if rank.slowdown is None else f"{rank.slowdown:.3f}"))
        rows.append(Row(tuple(cells)))
    yield Table(columns, tuple(rows))
    yield from cut(len(ordered), ROWS, t)
