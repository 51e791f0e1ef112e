"""Every rule and its state."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from advisor_core.api.renderers import RuleOutcome, State
from reports.blocks import (
    Below,
    Block,
    Code,
    Column,
    Details,
    Level,
    Line,
    Link,
    Paragraph,
    Prose,
    Row,
    Section,
    Table,
    Words,
    line,
)
from reports.headline import for_others
from reports.labels import Labels
from reports.outline import STATE_ORDER, Outline
from reports.rank_states import rank_states
from reports.sections.limits import Limits

_FOLDED: tuple[State, ...] = ("pass", "not_applicable", "left_out")

_UNTROUBLED: tuple[State, ...] = ("pass", "not_applicable")


def rules(outline: Outline, t: Labels, limits: Limits) -> Section:
    """The rules by their state; the states that want attention first."""
    if not outline.result.rules:
        return Section("rules", t("rules.title"), (Paragraph(line(t("rules.empty"))),))
    blocks: list[Block] = [Paragraph(line(t("rules.note")), "lead")]
    for state in STATE_ORDER:
        outcomes = outline.rules[state]
        if not outcomes:
            continue
        how = (Paragraph(line(Prose(t("rules.collect_command"))), "small"),) if state == "cannot_answer" else ()
        summary = line(t(f"state.{state}"), Words(f" {len(outcomes)}", "count"))
        if not limits.ids_only or state == "fail":
            told: Block = _table(state, outcomes, outline, t)
        else:
            told = _ids(outcomes, t) if state in _UNTROUBLED else _by_reason(outcomes, t)
        blocks.append(Details(summary, (*how, told), open=state not in _FOLDED, mark=state))
    blocks += [Paragraph(line(sentence), "small") for sentence in for_others(outline, t)]
    return Section("rules", t("rules.title"), tuple(blocks))


def _ids(outcomes: Sequence[RuleOutcome], t: Labels) -> Paragraph:
    """The rules by their ids, those of which there is more to say at the end."""
    groups: dict[str, list[RuleOutcome]] = defaultdict(list)
    for outcome in sorted(outcomes, key=lambda outcome: bool(_notes(outcome, t))):
        groups[_notes(outcome, t)].append(outcome)
    parts = [line(*_codes(rules), f" ({notes})" if notes else None) for notes, rules in groups.items()]
    return Paragraph(tuple(piece for part in parts for piece in (Words(t("word.semicolon")), *part))[1:])


def _by_reason(outcomes: Sequence[RuleOutcome], t: Labels) -> Table:
    """A row for each reason, with the rules that have it: what is missing is mostly missing for many."""
    groups = _alike(outcomes, t)
    columns = [Column(t("rules.rule")), Column(t("rules.reason"))]
    if any(collect for _, _, collect in groups):
        columns.append(Column(t("rules.collect")))
    rows = [
        Row(
            (
                line(*_codes(rules), Below(line(notes)) if notes else None),
                *(line(Prose(text)) if text else () for text in said[: len(columns) - 1]),
            )
        )
        for (notes, *said), rules in groups.items()
    ]
    return Table(tuple(columns), tuple(rows), "rules")


def _alike(outcomes: Sequence[RuleOutcome], t: Labels) -> dict[tuple[str, str, str], list[RuleOutcome]]:
    """The rules of which the same is said: of which stage and ranks, why, and what to collect."""
    groups: dict[tuple[str, str, str], list[RuleOutcome]] = defaultdict(list)
    for outcome in sorted(outcomes, key=lambda outcome: bool(_notes(outcome, t))):
        reason, collect = (t.of(text) if text else "" for text in (outcome.reason, outcome.collect))
        groups[_notes(outcome, t), reason, collect].append(outcome)
    return groups


def _codes(outcomes: Sequence[RuleOutcome]) -> Line:
    ids = dict.fromkeys(outcome.rule for outcome in outcomes)
    return tuple(piece for rule in ids for piece in (Words(" "), Code(rule)))[1:]


def _notes(outcome: RuleOutcome, t: Labels) -> str:
    """Of which stage and which ranks the state is."""
    return " · ".join(note for note in (outcome.role or "", rank_states(outcome, t)) if note)


def _table(state: State, outcomes: Sequence[RuleOutcome], outline: Outline, t: Labels) -> Table:
    optional = [name for name in ("reason", "collect") if any(getattr(rule, name) for rule in outcomes)]
    columns = [Column(t("rules.rule")), Column(t("rules.about")), *(Column(t(f"rules.{name}")) for name in optional)]
    if state == "fail":
        columns += [Column(t("rules.severity")), Column(t("rules.findings"), numeric=True)]
    rows = []
    for rule in outcomes:
        cells = [_name(rule, outline), _about(rule, t)]
        for text in (getattr(rule, name) for name in optional):
            cells.append(line(Prose(t.of(text))) if text else ())
        if state == "fail":
            cells += [line(Level(rule.severity)) if rule.severity else (), line(str(rule.findings))]
        rows.append(Row(tuple(cells)))
    return Table(tuple(columns), tuple(rows), "rules")


def _name(rule: RuleOutcome, outline: Outline) -> Line:
    code = line(Code(rule.rule))
    return line(Link(outline.anchors[rule.rule], code)) if rule.findings and rule.rule in outline.anchors else code


def _about(rule: RuleOutcome, t: Labels) -> Line:
    notes = _notes(rule, t)
    name = Words(rule.name + (" · " if notes else ""), "extra")
    return line(Prose(t.of(rule.title)), Below(line(name, notes)))
