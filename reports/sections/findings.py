"""The findings, written out: why, what to do, how to verify it, the evidence, and how each was judged."""

from __future__ import annotations

from collections.abc import Iterator

from advisor_core.api.renderers import Advice, Finding
from reports import tables
from reports.blocks import (
    Block,
    Callout,
    Card,
    Code,
    CodeLines,
    Column,
    Definitions,
    Details,
    Exhibit,
    Items,
    Line,
    Link,
    Nearby,
    Pairs,
    Paragraph,
    Prose,
    Row,
    RuleText,
    Section,
    Step,
    Steps,
    Table,
    Web,
    Words,
    line,
)
from reports.labels import Labels
from reports.outline import Outline
from reports.problems import Item
from reports.prose import is_https
from reports.sections.grid import cut, grid
from reports.sections.limits import Limits
from reports.sections.problem_words import brief_title, linked, settings, shared, stake

LISTED_RANKS = 12


def findings(outline: Outline, t: Labels, limits: Limits) -> Section:
    """The first problems with all that is known of them, and a table of the others."""
    blocks: list[Block] = [Paragraph(line(t("finding.note")), "lead")]
    every = [item for root in outline.items for item in root.walk()]
    blocks += [card(root, outline, t, limits) for root in outline.items if _has_written(root, limits)]
    further = [item for item in every if not limits.writes(item.number)]
    if further:
        note = Paragraph(line(t("finding.further_note", count=len(further))), "lead")
        table = _further(further[: limits.further], t)
        cut_off = cut(len(further), limits.further, t)
        blocks.append(Section("further", t("finding.further"), (note, table, *cut_off), level=3))
    return Section("findings", t("finding.title"), tuple(blocks))


def _further(items: list[Item], t: Labels) -> Table:
    """What does not fit, with the same numbers that stand beside it elsewhere."""
    columns = (
        Column(""),
        Column(t("finding.title")),
        Column(t("rules.severity")),
        Column(t("first.at_stake"), numeric=True),
        Column(t("finding.rule")),
        Column(t("finding.fingerprint")),
    )
    rows = [
        Row(
            (
                line(item.number),
                line(brief_title(t.of(item.finding.title))),
                line(t(f"severity.{item.problem.severity}")),
                line(stake(item, t).time or "–"),
                line(Code(item.finding.rule)),
                line(Code(item.finding.fingerprint)),
            ),
            id=item.anchor,
        )
        for item in items
    ]
    return Table(columns, tuple(rows))


def _has_written(item: Item, limits: Limits) -> bool:
    return any(limits.writes(below.number) for below in item.walk())


def card(item: Item, outline: Outline, t: Labels, limits: Limits) -> Card:
    """A problem and, below it, its causes; of one that is not written out itself, what it is and costs."""
    written = limits.writes(item.number)
    finding, problem = item.finding, item.problem
    own_time = t("finding.own", time=t.time(problem.own_ns)) if problem.own_ns != problem.stake_ns else ""
    group = t("finding.group_note") + (t("word.semicolon") + own_time if own_time else "") if item.causes else ""
    return Card(
        id=item.anchor,
        number=item.number,
        title=t.of(finding.title),
        severity=problem.severity,
        stake=stake(item, t),
        own=t("word.semicolon").join(told for told in (group, shared(item, t)) if told),
        facts=tuple(_facts(item, outline, t)),
        body=Definitions(tuple(_body(item, outline, t)) if written else (), "finding-body"),
        judged=_judged(finding, t) if written else None,
        causes=tuple(card(cause, outline, t, limits) for cause in item.causes if _has_written(cause, limits)),
    )


def _facts(item: Item, outline: Outline, t: Labels) -> Iterator[Line]:
    finding = item.finding
    where: list[str] = []
    if finding.role:
        where.append(t("word.role", role=finding.role))
    if len(finding.ranks) > 1:
        listed = ", ".join(map(str, finding.ranks[:LISTED_RANKS])) + ("…" if len(finding.ranks) > LISTED_RANKS else "")
        where.append(t("word.ranks", list=listed))
        if finding.rank is not None and finding.impact.gross_ns_per_step:
            where.append(t("word.worst", rank=finding.rank))
    elif (rank := finding.rank if finding.rank is not None else next(iter(finding.ranks), None)) is not None:
        where.append(t("word.rank", rank=rank))
    where += _of_steps(finding, outline, t)
    if finding.parts:
        where.append(_of_parts(finding, t))
    yield line(t("word.clause").join(where))
    yield line(t(f"confidence.{finding.confidence}"))
    yield line(Code(finding.rule), f" {finding.name}")
    if finding.fingerprint in outline.located:
        yield line(Nearby(outline.timeline, item.number, line(t("timeline.see"))))


def _of_parts(finding: Finding, t: Labels) -> str:
    """The parts of a recording of several that its time lies in."""
    called = [
        t("finding.part", part=t(f"part.{at.part}"), share=t.share(at.share))
        if not at.phase
        else t("finding.part_of_phase", part=t(f"part.{at.part}"), phase=at.phase, share=t.share(at.share))
        for at in finding.parts
    ]
    return t("finding.parts", list=t.join(called))


def _of_steps(finding: Finding, outline: Outline, t: Labels) -> list[str]:
    """What the numbers of a finding are of: a step, all of one, or the mean of several."""
    steps = {step.step for step in outline.result.profile.steps if finding.role in (None, step.role)}
    if finding.step is not None:
        return [t("word.step", step=finding.step)]
    if len(steps) > 1:
        return [t("word.mean_steps")]
    only = next(iter(steps), None)
    if only is not None:
        return [t("word.step", step=only)]
    return [t("word.whole")] if steps else []


def _body(item: Item, outline: Outline, t: Labels) -> Iterator[tuple[str, tuple[Block, ...]]]:
    finding, problem = item.finding, item.problem
    if finding.caveats:
        yield t("finding.caveats"), (Callout(tuple(RuleText(t.of(caveat)) for caveat in finding.caveats)),)
    if problem.causes or problem.also_causes:
        causes = [
            line(
                Link(cause.anchor, line(Words(cause.number, "number"), f" {brief_title(t.of(cause.finding.title))}")),
                Words(f" {stake(cause, t).time or stake(cause, t).why_none}", "small"),
            )
            for cause in item.causes
        ]
        yield (
            t("finding.causes"),
            (Items((*causes, *(linked([number], outline) for number in problem.also_causes)), "links"),),
        )
    if problem.symptoms:
        yield t("finding.symptoms"), (Paragraph(linked(problem.symptoms, outline, t("word.comma")), "bare"),)
    yield t("finding.why"), (RuleText(t.of(finding.why)),)
    withheld = tuple(line(Prose(t.of(text))) for text in finding.withheld)
    steps = tuple(_step(advice, t) for advice in finding.advice)
    yield t("finding.do"), (Steps(steps, t("finding.withheld") if withheld else "", withheld),)
    yield t("finding.verify"), (RuleText(t.of(finding.verify)),)
    if finding.not_a_problem_if:
        yield t("finding.not_a_problem"), (RuleText(t.of(finding.not_a_problem_if)),)
    yield (
        t("finding.evidence"),
        tuple(_exhibit(table, t) for table in tables.evidence(finding.evidence, outline.result, t)),
    )


def _step(advice: Advice, t: Labels) -> Step:
    hazards = f" ({t.hazards(advice)})" if advice.hazards else ""
    notes = (
        (t("finding.only_if"), "", advice.only_if),
        (t("finding.unless"), f" ({t('finding.unless_text')})", advice.unless),
        (t("finding.risk"), hazards, advice.risk),
    )
    return Step(
        kind=t(f"advice.{advice.kind}"),
        settings=settings(advice),
        text=t.of(advice.text),
        notes=tuple((name, line(f"{more}{t('word.colon')}", Prose(t.of(text)))) for name, more, text in notes if text),
    )


def _exhibit(table: tables.Table, t: Labels) -> Exhibit:
    about = " · ".join(part for part in (t(f"evidence.{table.kind}"), table.place, table.note) if part)
    block: Table | CodeLines | None = None
    if table.kind == "stack":
        block = CodeLines(tuple("  ".join(row) for row in table.rows))
    elif table.columns:
        block = grid(table)
    return Exhibit(table.title, about, block)


def _judged(finding: Finding, t: Labels) -> Details:
    entries: list[tuple[str, tuple[Block, ...]]] = [
        (t("finding.condition"), (Paragraph(line(Code(finding.condition, "condition")), "bare"),))
    ]
    if finding.signs:
        entries.append((t("finding.signs"), tuple(Paragraph(line(Code(sign)), "bare") for sign in finding.signs)))
    if finding.subject:
        about = tuple((line(name), line(Code(value))) for name, value in tables.pairs(finding.subject, t))
        entries.append((t("finding.subject"), (Pairs(about, style="run"),)))
    observed = tuple((line(name), line(Code(value, "cell"))) for name, value in tables.observation(finding, t))
    entries.append((t("finding.observation"), (Pairs(observed),)))
    gross = t.time(finding.impact.gross_ns_per_step)
    entries.append((t("finding.gross"), (Paragraph(line(gross), "bare"),)))
    claims = [claim for claim in finding.impact.claims if claim.rank == finding.rank]
    if claims:
        claimed = tuple((line(Code(claim.path)), line(t.time(claim.ns))) for claim in claims)
        entries.append((t("finding.claims"), (Pairs(claimed, style="claims"),)))
    if finding.references:
        links = tuple(
            line(Web(reference.title, reference.url))
            if reference.url and is_https(reference.url)
            else line(reference.title)
            for reference in finding.references
        )
        entries.append((t("finding.references"), (Items(links, "links"),)))
    entries.append((t("finding.fingerprint"), (Paragraph(line(Code(finding.fingerprint)), "bare"),)))
    return Details(line(t("finding.judged")), (Definitions(tuple(entries), "finding-body"),))
