"""What a terminal shows at the end of a run: at most twenty lines of plain text."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

from advisor_core.result.run import RunResult
from reports.headline import coverage, rank_name, verdict, what_ran
from reports.labels import Labels, one_line, shorten
from reports.outline import Outline
from reports.phases import phase_rows
from reports.problems import Item
from reports.prose import plain

BAR = 40
PHASES = 8
FILLS = {"compute": "█", "communication": "▒", "idle": "·"}


def summary(result: RunResult, lang: str, report_paths: Iterable[str]) -> str:
    """The verdict, where the step went, the findings that matter most, and where the report is."""
    labels = Labels(lang)
    colon = labels("word.colon")
    outline = Outline(result)
    facts = " · ".join(f"{labels(ran.key)}{colon}{one_line(ran.value)}" for ran in what_ran(outline, labels)[1:])
    lines = [facts, "", verdict(outline, labels)]
    lines += [f"  {line}" for line in text_bars(outline, labels)]
    if outline.by_rank:
        leaves = sorted(outline.mean.entries.items(), key=lambda entry: (-entry[1], entry[0]))[:3]
        said = [
            f"{labels.trail(path)} {labels.time(ns)} ({labels.share(outline.mean.share(ns))})" for path, ns in leaves
        ]
        lines.append(f"  {labels('term.leaves')}{colon}{labels.join(said)}")
    if not outline.has_roles and (rows := [row for row in phase_rows(result, labels) if row.name]):
        said = [f"{row.name} {labels.time(row.ns)} ({labels.share(row.share)})" for row in rows[:PHASES]]
        lines.append(f"  {labels('phases.title')}{colon}{labels.join(said)}")
    lines.append("")
    if outline.items:
        lines.append(labels("term.top", count=len(result.findings)))
        for item, _ in outline.top:
            lines += [f"  {line}" for line in _finding(item, outline, labels)]
    elif result.rules:
        lines.append(labels("first.nothing"))
    else:
        lines.append(labels("first.no_rules"))
    states = coverage(outline, labels)
    lines.append(f"{labels('term.rules')}{colon}{labels.join(states) or labels('word.none')}")
    if paths := [one_line(str(path)) for path in report_paths]:
        lines.append(f"{labels('term.report')}{colon}{labels.join(paths)}")
    return "\n".join(line.rstrip() for line in lines)


def text_bars(outline: Outline, labels: Labels) -> list[str]:
    """One bar of characters per shown rank, to a common scale, with its parts written out."""
    top = max((ledger.wall_ns for ledger in outline.shown), default=0)
    names = [rank_name(ledger, outline, labels) for ledger in outline.shown]
    widest = max((len(name) for name in names), default=0)
    lines = []
    for ledger, name in zip(outline.shown, names, strict=True):
        bar, filled, done = "", 0, 0
        for node in ledger.roots:
            done += node.ns
            end = round(BAR * done / top) if top else 0
            bar += FILLS.get(node.path, "?") * (end - filled)
            filled = end
        parts = [
            f"{FILLS.get(node.path, '?')} {labels.path(node.path)} {labels.time(node.ns)}" for node in ledger.roots
        ]
        lines.append(f"{name:<{widest}}  {bar:<{BAR}}  {'  '.join(parts)}")
    return lines


def _finding(item: Item, outline: Outline, labels: Labels) -> list[str]:
    finding, problem = item.finding, item.problem
    actor, advice = outline.actor(item), outline.advice(item)
    title = shorten(plain(labels.of(finding.title)), 100)
    where = f"{finding.role}{labels('word.colon')}" if finding.role else ""
    head = f"{item.number} [{labels(f'severity.{problem.severity}')}] {where}{title}"
    if advice.set:
        change = " ".join(f"{one_line(name)}={one_line(value)}" for name, value in advice.set.items())
        change = f"{labels(f'advice.{advice.kind}')} {change}"
    else:
        change = textwrap.shorten(plain(labels.of(advice.text)), 110, placeholder=" …")
        change = change if len(change) > 2 else shorten(plain(labels.of(advice.text)), 110)
    if advice.only_if or advice.unless:
        change += f" {labels('first.conditions', number=actor.number)}"
    share = labels(item.of_step, share=labels.share(problem.share_of_step))
    cost = labels(item.no_time) if item.no_time else f"{labels.time(problem.stake_ns)}, {share}"
    cost += "" if item.no_time else f", {labels(f'basis.{problem.basis}')}"
    if actor is not item:
        cause = shorten(plain(labels.of(actor.finding.title)), 80)
        cost += f" · {labels('first.because')}{labels('word.colon')}{cause}"
    return [head, f"   {cost}", f"   -> {change}"]
