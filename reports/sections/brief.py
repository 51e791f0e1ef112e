"""A result in twenty lines: the verdict, where the step went, and what to do first."""

from __future__ import annotations

from collections.abc import Iterator

from reports.blocks import Block, Figure, Headline, Headlines, LedgerBars, Paragraph, Stake, line
from reports.headline import coverage, for_others, rank_name, verdict, what_ran
from reports.labels import Labels
from reports.outline import Outline
from reports.sections.first_page import headline
from reports.sections.ledger import time_column
from reports.sections.plan import alone, doubtful, gains

LEAVES = 3
PHASES = 8
PLANNED = 3


def _planned(outline: Outline, t: Labels) -> Iterator[Headline]:
    """The first changes of the plan."""
    if (plan := outline.result.plan) is None:
        return
    ranks = t.join(list(map(str, plan.absent)))
    basis = t("term.replayed_if", ranks=ranks) if plan.absent else t("term.replayed")
    for action in plan.actions[:PLANNED]:
        item = outline.item(action.problem)
        then = t("term.then", time=t.time(action.step_after_ns))
        won = Stake(time=t("term.wins", time=t.time(action.gain_ns)), share=then, basis=basis)
        if doubtful(outline):
            won = Stake(time=t("term.wins", time=alone(action, t)), share=t("plan.alone"), basis=basis)
        yield headline(item, 0, outline, t, won)


def brief(outline: Outline, t: Labels) -> Iterator[Block]:
    """What a terminal shows at the end of a run."""
    colon = t("word.colon")
    facts = " · ".join(f"{t(fact.key)}{colon}{fact.value}" for fact in what_ran(outline, t)[1:])
    yield Paragraph(line(facts), "ran")
    yield Paragraph(line(verdict(outline, t)))
    if not outline.one_run:
        numbers = t.join([outline.numbers[fingerprint] for fingerprint in outline.result.profile.apart])
        yield Paragraph(line(f"{t('first.apart')}{numbers}"), "indented")
    names = tuple(rank_name(ledger, outline, t) for ledger in outline.shown)
    yield Figure(LedgerBars(outline.shown, names))
    if outline.by_rank and outline.one_run:
        mean = outline.mean
        leaves = sorted(mean.entries.items(), key=lambda entry: (-entry[1], entry[0]))[:LEAVES]
        unit = time_column(outline, t)
        times = [f"{t.trail(path)} {unit(ns)} {unit.unit} ({100 * mean.share(ns):.1f} %)" for path, ns in leaves]
        yield Paragraph(line(f"{t('term.leaves')}{colon}{t.join(times)}"), "indented")
    if not outline.has_roles and (rows := [row for row in outline.result.phase_summaries if row.phase]):
        times = [f"{row.phase} {t.time(row.ns)} ({t.share(row.share)})" for row in rows[:PHASES]]
        yield Paragraph(line(f"{t('phases.title')}{colon}{t.join(times)}"), "indented")
    if won := gains(outline, t):
        yield Paragraph(line(f"{t('term.plan')}{t('word.colon')}{won}"), "indented")
    if outline.items:
        beside = (headline(item, more, outline, t) for item, more in outline.top)
        heading = "term.first" if outline.planned else "term.top"
        yield Paragraph(line(t(heading, count=len(outline.result.findings))), "heading")
        yield Headlines((*_planned(outline, t), *beside))
    else:
        yield Paragraph(line(t("first.nothing" if outline.result.rules else "first.no_rules")), "heading")
    yield Paragraph(line(f"{t('term.rules')}{colon}{t.join(coverage(outline, t)) or t('word.none')}"))
    for sentence in for_others(outline, t):
        yield Paragraph(line(sentence), "aside")
