"""The first page: the answer, where the step went, the phases, the plan, and what matters most."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from advisor_core.api.renderers import PhaseSummary, StripView, TableView, View
from reports.blocks import (
    Below,
    Block,
    Callout,
    Code,
    Column,
    Details,
    Figure,
    Headline,
    Headlines,
    Items,
    LedgerBars,
    Line,
    Link,
    Nearby,
    Pairs,
    Paragraph,
    Prose,
    Row,
    Section,
    Stake,
    Swatch,
    Table,
    Words,
    line,
)
from reports.headline import coverage, rank_name, what_ran
from reports.labels import Labels
from reports.outline import Outline
from reports.phases import phase_label, phase_ledgers
from reports.problems import Item
from reports.sections.ledger import accounted_for, ledger_table
from reports.sections.plan import plan
from reports.sections.problem_words import brief_title, conditions, linked, settings, shared, stake
from reports.sections.ranks import ranks
from reports.sections.slack import slack
from reports.view_tables import written

TREE_LIMIT = 0.01
"""Share of the step from which an entry of the ledger stands on the first page."""

UNCOUNTED = 0.01
"""Share of the mark of a step, or of a recording without marks, from which it is told what of it no figure counts: what
is less does not show in the times of the first page, which have three digits."""

CHECKED = 12
UNANSWERED = 6
"""Rules in order, and rules without an answer, that the first page names where nothing was found."""

_PARTS = ("compute", "communication", "communication/wait", "idle")


def ran(outline: Outline, t: Labels) -> Pairs:
    """The job that ran: enough to know whether this is the profile one thinks it is."""
    return Pairs(tuple((line(t(fact.key)), line(fact.value)) for fact in what_ran(outline, t)), style="ran")


def first_page(outline: Outline, t: Labels) -> tuple[Block, ...]:
    """All blocks below the verdict and what ran."""
    planned, side_by_side = plan(outline, t), ranks(outline, t)
    return (
        *_caution(outline, t),
        *_where(outline, t),
        *_phases(outline, t),
        *([planned] if planned is not None else []),
        *([side_by_side] if side_by_side is not None else []),
        _matters(outline, t),
        *_step(outline, t),
    )


def _caution(outline: Outline, t: Labels) -> Iterator[Block]:
    window = outline.result.profile.window
    if window != "step" and outline.by_rank:
        yield Callout((Paragraph(line(t(f"window.{window}")), "bare"),))
    if not outline.one_run:
        numbers = (outline.numbers[fingerprint] for fingerprint in outline.result.profile.apart)
        links = linked(numbers, outline, t("word.comma"))
        yield Callout((Paragraph(line(t("first.apart"), *links), "bare"),))
    serious = sum(diagnostic.severity != "info" for diagnostic in outline.result.diagnostics)
    if serious:
        yield Callout((Paragraph(line(Link("diagnostics", line(t("diag.first", count=serious)))), "bare"),))


def _where(outline: Outline, t: Labels) -> Iterator[Block]:
    if not outline.by_rank:
        return
    legend = tuple(
        line(
            Swatch(node.path),
            f"{t.path(node.path)} ",
            Words(t.time(node.ns), "strong"),
            f" {t.share(node.share)}",
        )
        for node in outline.mean.roots
    )
    names = tuple(rank_name(ledger, outline, t) for ledger in outline.shown)
    blocks: list[Block] = [
        *([Items(legend, "legend")] if legend else []),
        Figure(LedgerBars(outline.shown, names), t("first.where")),
    ]
    if not outline.has_roles:
        count = len(outline.by_rank)
        note = t("first.where_note") if len(outline.shown) == count else t("first.where_sample", count=count)
        blocks.append(Paragraph(line(note), "small"))
        if uncounted := _uncounted(outline, t) or _beyond(outline, t):
            blocks.append(Paragraph(line(uncounted), "small"))
    yield Section("where", t("first.where"), tuple(blocks))


def _uncounted(outline: Outline, t: Labels) -> str:
    """Of the slowest rank whose only recorded step is marked on the host, what of the mark no figure counts; '' where
    that is little."""
    walls = {ledger.lane: ledger.wall_ns for ledger in outline.by_rank}
    steps = [step for step in outline.result.profile.steps if step.mark_ns and (step.role, step.rank) in walls]
    step = max(steps, key=lambda one: walls[one.role, one.rank], default=None)
    if step is None or step.mark_ns is None:
        return ""
    before, after = step.mark_before_ns or 0, step.mark_after_ns or 0
    if before + after < UNCOUNTED * step.mark_ns:
        return ""
    times = {"mark": t.time(step.mark_ns), "before": t.time(before), "after": t.time(after)}
    return t("first.mark", step=step.step, rank=step.rank, **times)


def _beyond(outline: Outline, t: Labels) -> str:
    """Of the longest recording without step marks, what no figure counts; '' where that is little."""
    walls = {ledger.lane: ledger.wall_ns for ledger in outline.by_rank}
    steps = [step for step in outline.result.profile.steps if (step.role, step.rank) in walls]
    steps = [step for step in steps if step.recorded_before_ns is not None and step.recorded_after_ns is not None]
    step = max(steps, key=lambda one: walls[one.role, one.rank], default=None)
    if step is None:
        return ""
    wall = walls[step.role, step.rank]
    before, after = step.recorded_before_ns or 0, step.recorded_after_ns or 0
    if before + after < UNCOUNTED * (before + wall + after):
        return ""
    told = t("first.beyond", rank=step.rank, wall=t.time(wall), before=t.time(before), after=t.time(after))
    copied = step.copied_beside_ns
    return told + (t("first.beyond_copied", copied=t.time(copied)) if copied else "")


def _phases(outline: Outline, t: Labels) -> Iterator[Block]:
    rows = outline.result.phase_summaries
    if not rows:
        return
    names = [t("phases.waiting") if key == "communication/wait" else t.path(key) for key in _PARTS]
    ends = [t(f"phases.{name}") for name in ("longest", "shortest", "spread")]
    heads = [t("phases.time"), t("phases.share"), *names, *ends]
    columns = (Column(t("phases.phase")), *(Column(head, numeric=True) for head in heads))
    blocks: list[Block] = [
        Table(columns, tuple(Row(_phase(row, t)) for row in rows), "phases"),
        Paragraph(line(t("phases.note")), "small"),
    ]
    drawn = [view for view in outline.views if view.purpose == "phases" and not isinstance(view, TableView)]
    blocks += [Figure(view, t.of(view.title)) for view in drawn]
    marked = {} if outline.has_roles else phase_ledgers(outline.result)
    if marked:
        bars = Figure(LedgerBars(tuple(marked.values()), tuple(marked)), t("phases.bars"))
        blocks.append(Details(line(t("phases.bars")), (bars,), extra=True))
    yield Section("phases", t("phases.title"), tuple(blocks))


def _phase(row: PhaseSummary, t: Labels) -> tuple[Line, ...]:
    label = phase_label(row, t)
    name = line(Code(row.phase)) if row.phase else line(Words(label, "faint"))
    if row.phase and label and label != row.phase:
        name = (*name, Below(line(label)))
    ends = [
        line(t.time(end.ns), Below(line(t("word.rank", rank=end.rank)))) if end else line("–")
        for end in (row.longest, row.shortest)
    ]
    return (
        name,
        line(t.time(row.ns)),
        line(t.share(row.share)),
        *(line(t.share(row.parts[key]) if row.parts[key] else "–") for key in _PARTS),
        *ends,
        line(t.share(row.spread) if row.longest else "–"),
    )


def _matters(outline: Outline, t: Labels) -> Section:
    states = Link("rules", line(t.join(coverage(outline, t))))
    note = t("first.coverage_roles" if outline.has_roles else "first.coverage_note", total=outline.outcomes)
    if outline.items:
        findings = Link("findings", line(t("first.more", count=len(outline.result.findings))))
        judged = Paragraph(line(findings, " · ", f"{note} ", states), "small coverage")
        if not outline.top:
            return Section("matters", "", (judged,), label=t("first.beside"))
        top = Headlines(tuple(headline(item, more, outline, t) for item, more in outline.top))
        return Section("matters", t("first.beside" if outline.planned else "first.top"), (top, judged))
    if not outline.result.rules:
        return Section("matters", t("first.no_rules"), ())
    return Section("matters", t("first.nothing"), tuple(_nothing(outline, t)))


def headline(item: Item, more: int, outline: Outline, t: Labels, won: Stake | None = None) -> Headline:
    """A problem in brief; ``more``: how many further ones there are of its kind; ``won``: what the plan says of its own
    change, in place of the time at stake."""
    finding, actor = item.finding, outline.actor(item) if won is None else item
    advice = actor.finding.advice[0]
    because = Link(actor.anchor, line(brief_title(t.of(actor.finding.title))))
    return Headline(
        number=item.number,
        target=item.anchor,
        title=brief_title(t.of(finding.title)),
        severity=item.problem.severity,
        stake=won or stake(item, t),
        notes=(*((t("first.same", count=more),) if more else ()), *((told,) if (told := shared(item, t)) else ())),
        role=finding.role or "",
        cause=because if actor is not item else None,
        cause_number=actor.number,
        kind=t(f"advice.{advice.kind}"),
        settings=settings(advice),
        conditions=conditions(advice, actor, t),
        change=t.of(advice.text),
    )


def _nothing(outline: Outline, t: Labels) -> Iterator[Block]:
    rules = outline.rules
    passed = rules["pass"]
    yield Paragraph(
        line(
            t(
                "first.nothing_note",
                passed=len(passed),
                total=outline.outcomes,
                cannot=len(rules["cannot_answer"]),
                error=len(rules["error"]),
                na=len(rules["not_applicable"]),
            )
        )
    )
    if outline.unanswered:
        yield Callout((Paragraph(line(t("first.not_health", open=outline.unanswered)), "bare"),))
        unanswered = []
        for rule in (rules["error"] + rules["cannot_answer"])[:UNANSWERED]:
            hint = rule.collect or rule.reason
            more = (" — ", Prose(t.of(hint))) if hint else ()
            unanswered.append(line(Code(rule.rule), " ", Prose(t.of(rule.title)), *more))
        yield Items(tuple(unanswered), "plain")
    if passed:
        titles = [part for rule in passed[:CHECKED] for part in (t("word.semicolon"), Prose(t.of(rule.title)))][1:]
        end = "…" if len(passed) > CHECKED else None
        yield Paragraph(line(Words(t("first.checked"), "strong"), t("word.colon"), *titles, end))
    yield Paragraph(line(Link("rules", line(t("rules.title")))), "small")


def _step(outline: Outline, t: Labels) -> Iterator[Block]:
    """The slowest step over time, what to look at first in it, and the largest entries of the ledger."""
    if not outline.by_rank:
        return
    blocks: list[Block] = []
    if (strip := first_strip(outline)) is not None:
        blocks.append(Figure(strip, t.of(strip.title)))
    if (looks := _first_looks(outline)) is not None:
        table = written(looks, t)
        first, *others = table.columns
        blocks.append(Paragraph(line(Words(t.of(looks.title), "strong"))))
        blocks.append(Table((replace(first, style="short"), *others), table.rows))
    if outline.timeline:
        blocks.append(Paragraph(line(Nearby(outline.timeline, "", line(t("timeline.look")))), "small"))
    tree = [row for row in outline.rows if any(share >= TREE_LIMIT for _, share in row.cells)]
    summary = line(t("first.tree", limit=t.share(TREE_LIMIT)))
    further = Paragraph(line(Link("ledger", line(t("ledger.title")))), "small")
    blocks.append(Details(summary, (ledger_table(tree, outline, t), further), extra=True))
    if not outline.planned:
        blocks += slack(outline, t)
    if outline.one_run:
        blocks.append(Paragraph(line(accounted_for(outline, t)), "small"))
    yield Section("", "", tuple(blocks), label=t("first.step"))


def on_first_page(outline: Outline) -> tuple[View, ...]:
    """The views that the first page shows, of those that are no phases of the job."""
    return tuple(view for view in (first_strip(outline), _first_looks(outline)) if view is not None)


def first_strip(outline: Outline) -> StripView | None:
    """The slowest step of the slowest rank that is drawn."""
    view = _of_slowest(outline, "step")
    return view if isinstance(view, StripView) else None


def _first_looks(outline: Outline) -> TableView | None:
    """The table of first looks of the slowest rank that has one."""
    view = _of_slowest(outline, "first_looks")
    return view if isinstance(view, TableView) else None


def _of_slowest(outline: Outline, purpose: str) -> View | None:
    """The view for a purpose of the slowest rank that has one."""
    walls = {ledger.lane: ledger.wall_ns for ledger in outline.by_rank}
    views = [view for view in outline.views if view.purpose == purpose and (view.role, view.rank or 0) in walls]
    return max(views, key=lambda view: walls[view.role, view.rank or 0], default=None)
