"""The runs of a comparison as a table, and what each is."""

from __future__ import annotations

from advisor_core.api.renderers import SEVERITIES, ComparedRun, ComparisonResult
from reports.blocks import Below, Code, Column, Line, Pairs, Row, Section, Table, Words, line
from reports.comparison.words import signed_share
from reports.labels import Labels
from reports.ledgers import CLASSES


def facts(result: ComparisonResult, t: Labels) -> Pairs:
    """The runs and what they have in common."""
    first, last = result.runs[0], result.runs[-1]
    pairs = [(t("compare.before"), line(Code(first.name)))]
    if len(result.runs) == 2:
        pairs.append((t("compare.after"), line(Code(last.name))))
        pairs += [
            (t("ran.steps"), line(_beside(str(first.steps), str(last.steps)))),
            (t("ran.ranks"), line(_beside(str(len(first.ranks)), str(len(last.ranks))))),
            (t("ran.phase"), line(_beside(_kind(first, t), _kind(last, t)))),
        ]
        if first.vendor != last.vendor:
            pairs.append((t("compare.vendors"), line(f"{first.vendor} → {last.vendor}")))
        if first.chip or last.chip:
            unknown = t("word.unknown")
            pairs.append((t("ran.chip"), line(_beside(first.chip or unknown, last.chip or unknown))))
    else:
        pairs.append((t("compare.runs"), line(str(len(result.runs)))))
    return Pairs(tuple((line(name), value) for name, value in pairs), style="ran")


def _beside(before: str, after: str) -> str:
    return before if before == after else f"{before} → {after}"


def _kind(run: ComparedRun, t: Labels) -> str:
    return t(f"phase.{run.kind}") if f"phase.{run.kind}" in t else run.kind


def table(result: ComparisonResult, t: Labels) -> Section:
    """All runs, each compared with the first."""
    unit = t.column(max(run.step_ns for run in result.runs))
    heads = (
        Column(t("compare.run"), style="long"),
        Column(unit.unit, numeric=True, group=t("ran.step_time")),
        Column(t("compare.difference"), numeric=True),
        Column(t("compare.what"), style="short"),
        *(Column(t(f"compare.part.{part}"), numeric=True, group=unit.unit) for part in CLASSES),
        Column(t("ran.steps"), numeric=True),
        Column(t("finding.title"), numeric=True),
    )
    told: dict[int, tuple[Line, Line]] = {0: (line("–"), line("–"))}
    for one in result.comparisons:
        verdict = one.verdict
        is_comparable = verdict.outcome != "not_comparable" and not (
            verdict.outcome == "across_vendors" and verdict.reason is not None
        )
        difference = line(Words(signed_share(verdict.ratio, t), "strong")) if is_comparable else line("–")
        interval = None
        if verdict.interval is not None:
            low, high = (signed_share(end, t) for end in verdict.interval)
            interval = Below(line(t("plan.from_to", low=low, high=high)))
        told[one.after] = (line(*difference, interval), line(t(f"compare.outcome.{verdict.outcome}")))
    rows = tuple(
        Row(
            (
                line(Code(run.name)),
                line(unit(run.step_ns)),
                *told[place],
                *(line(unit(run.parts[part]) if run.parts.get(part) else "–") for part in CLASSES),
                line(str(run.steps)),
                _findings(run, t),
            )
        )
        for place, run in enumerate(result.runs)
    )
    return Section("runs", t("compare.runs"), (Table(heads, rows),))


def _findings(run: ComparedRun, t: Labels) -> Line:
    worst = next((level for level in SEVERITIES if run.findings.get(level)), None)
    below = Below(line(f"{t(f'severity.{worst}')} {run.findings[worst]}")) if worst is not None else None
    return line(str(sum(run.findings.values())), below)
