"""The plan: what to change first, what it wins by itself and on top of the rest, and what limits the step then."""

from __future__ import annotations

from collections.abc import Sequence

from advisor_core.api.renderers import Action, Advice, Limit, Owner, Plan, Varying
from reports.blocks import (
    Below,
    Block,
    Callout,
    Code,
    Column,
    Details,
    Link,
    Paragraph,
    Piece,
    Row,
    RuleText,
    Section,
    Table,
    Words,
    line,
)
from reports.labels import Labels
from reports.outline import Outline
from reports.problems import Item
from reports.prose import first_sentence, opening
from reports.sections.problem_words import brief_title, call_site, changes, conditions, linked, settings
from reports.sections.slack import slack

FIRST = 4
"""So many changes stand on the first screen, the others behind them."""

ADVISED = 96
"""Letters of an advice in a row: two changes fit the first screen; its finding has the whole of it."""

SHOWN_OWNERS = 8
"""Of the critical path, so many owners are told one by one."""


def plan(outline: Outline, t: Labels) -> Section | None:
    """The changes in the order that wins most; ``None`` where no change could be replayed."""
    told = outline.result.plan
    if told is None or not told.actions:
        return None
    heads = [t(f"plan.{name}") for name in ("gain", "after", "alone", "last")]
    columns = (Column(t("plan.change"), style="long"), *(Column(head, numeric=True) for head in heads))
    rows = tuple(_row(action, outline, t) for action in told.actions)
    first, rest = rows[:FIRST], rows[FIRST:]
    blocks: list[Block] = [
        *_first_pass(told, outline, t),
        Paragraph(line(summary(told, outline, t))),
        Table(columns, first, "plan"),
        *_caveats(told, outline, t),
    ]
    if rest:
        wins = sum(action.gain_ns for action in told.actions[FIRST:])
        more = line(t("plan.further" if doubtful(outline) else "plan.more", count=len(rest), time=t.time(wins)))
        blocks.append(Details(more, (Table(columns, rest, "plan"),)))
    blocks += [
        *([] if doubtful(outline) else [Paragraph(line(_parts(told, t)), "small")]),
        *_owners(outline, t),
        *slack(outline, t),
        Paragraph(line(t("plan.note"), " ", Link("replay", line(t("replay.title")))), "small"),
    ]
    return Section("plan", t("plan.title"), tuple(blocks))


TRUSTED_ERROR = 0.05
"""Above this error what a replay saves is doubtful: docs/sources.md#replay-and-its-error."""


def missed(outline: Outline) -> float:
    """Of the steps of a rank, the part that the replay misses, on the rank where it misses most."""
    model = outline.result.model
    return max(model.error_share_by_rank.values(), default=0.0) if model is not None else 0.0


def doubtful(outline: Outline) -> bool:
    """Whether what the replay promises is told as ranges alone."""
    return missed(outline) > TRUSTED_ERROR


def summary(told: Plan, outline: Outline, t: Labels) -> str:
    """The step with all causes of the plan gone, and what limits it then."""
    low, high = (t.time(ns) for ns in told.after_range_ns)
    if doubtful(outline):
        error, limit = (t.quantity(share, "ratio") for share in (missed(outline), TRUSTED_ERROR))
        wins = t("plan.wins_about", step=t.time(told.step_ns), low=low, high=high, count=len(told.actions))
        spread = t("plan.doubt", error=error, limit=limit)
    else:
        wins = t(
            "plan.wins",
            step=t.time(told.step_ns),
            after=t.time(told.after_ns),
            share=t.share(1 - told.after_ns / told.step_ns),
            count=len(told.actions),
        )
        several = any(mean.steps > 1 for mean in outline.result.mean_steps)
        spread = "" if low == high else t("plan.range" if several else "plan.range_of_one", low=low, high=high)
    absent = t("plan.absent", ranks=_absent(told, t)) if told.absent else ""
    limits = t("plan.limits", before=_limit(told.limit, outline, t), after=_limit(told.next_limit, outline, t))
    return f"{wins}{spread}{_more_steps(told, outline, t)}{absent}{limits}"


def _more_steps(told: Plan, outline: Outline, t: Labels) -> str:
    """How many steps to record, and what the recorded ones differ by; '' where they are enough."""
    if told.steps_wanted is None:
        return ""
    most = ""
    if (varies := told.varies) is not None:
        low, high = t.time(varies.least_ns), t.time(varies.most_ns)
        what, whose = _what(varies, t), _whose(varies, outline, t)
        most = t("plan.differ_by", what=what, whose=whose, low=low, high=high)
    return t("plan.more_steps", by=most, steps=told.steps_wanted)


def _absent(told: Plan, t: Labels) -> str:
    """The ranks that were not recorded and are waited for, longest first, with the time of a step."""
    ranks = sorted(told.absent.items(), key=lambda waits: -waits[1])
    return t.join([t("plan.absent_rank", rank=rank, time=t.time(ns)) for rank, ns in ranks])


def gains(outline: Outline, t: Labels) -> str:
    """The plan in one line: the numbers of the problems with what each wins."""
    told = outline.result.plan
    if told is None or not told.actions:
        return ""
    if doubtful(outline):
        won = t.join([f"{action.problem} {alone(action, t)}" for action in told.actions])
    else:
        won = t.join([f"{action.problem} −{t.time(action.gain_ns)}" for action in told.actions])
    return f"{record_first(told, outline, t)}{won}"


def alone(action: Action, t: Labels) -> str:
    """The range of what a change wins by itself."""
    low, high = (t.time(ns) for ns in action.range_ns)
    return low if low == high else t("plan.from_to", low=low, high=high)


def record_first(told: Plan, outline: Outline, t: Labels) -> str:
    """That later steps are to be recorded before any change, with the numbers of the changes whose cost may be of the
    first pass of the program alone; '' of a recording that is of no first pass."""
    once = [action.problem for action in told.actions if outline.item(action.problem).finding.first_pass is not None]
    return t("plan.record_first", numbers=t.join(once)) if once else ""


def _row(action: Action, outline: Outline, t: Labels) -> Row:
    item = outline.item(action.problem)
    look, *others = item.finding.advice
    first: list[Piece | str | None] = [
        Link(item.anchor, line(f"{item.number} {brief_title(t.of(item.finding.title))}")),
        Below(line(*_advised(look, t(f"advice.{look.kind}"), item, t))),
    ]
    if (then := next((advice for advice in others if changes(advice)), None)) is not None and not changes(look):
        first.append(Below(line(*_advised(then, t(f"plan.then.{then.kind}"), item, t))))
    if item.finding.first_pass is not None:
        first.append(Below(line(Words(t("plan.once"), "strong"))))
    about: list[Piece | str] = []
    if (frame := call_site(item.finding)) is not None:
        about += [t("plan.called"), " ", Code(frame), t("word.stop")]
    if action.needs:
        about += [_named("plan.needs", action.needs, outline, t), " "]
    if action.covers:
        about += [_named("plan.covers", action.covers, outline, t)]
    if action.excludes:
        about += [" ", _named("plan.excludes", action.excludes, outline, t)]
    if about:
        first.append(Below(line(*about)))
    if doubtful(outline):
        return Row((line(*first), line("–"), line("–"), line(alone(action, t)), line("–")))
    value, low, high = (t.time(ns) for ns in (action.alone_ns, *action.range_ns))
    span = None if low == high else Below(line(t("plan.from_to", low=low, high=high)))
    return Row(
        (
            line(*first),
            line(Words(t.time(action.gain_ns), "strong")),
            line(t.time(action.step_after_ns)),
            line(value, span),
            line(t.time(action.last_ns)),
        )
    )


def _first_pass(told: Plan, outline: Outline, t: Labels) -> list[Block]:
    """Above all changes: what to record before them, and the findings that say why."""
    said = record_first(told, outline, t)
    if not said:
        return []
    findings = (outline.item(action.problem).finding for action in told.actions)
    because = dict.fromkeys(finding.first_pass for finding in findings if finding.first_pass is not None)
    links = linked((outline.numbers[name] for name in because), outline, t("word.comma"))
    return [Callout((Paragraph(line(said, t("plan.see"), *links), "bare"),))]


def _caveats(told: Plan, outline: Outline, t: Labels) -> list[Block]:
    """What casts doubt on changes of the plan, with their numbers."""
    doubted: dict[str, list[str]] = {}
    for action in told.actions:
        item = outline.item(action.problem)
        for caveat in item.finding.caveats:
            doubted.setdefault(t.of(caveat), []).append(item.number)
    said = [t("plan.caveat", numbers=t.join(numbers), caveat=caveat) for caveat, numbers in doubted.items()]
    return [Callout(tuple(map(RuleText, said)))] if said else []


def _advised(advice: Advice, kind: str, item: Item, t: Labels) -> list[Piece | str | None]:
    """How an advice begins, behind its kind in words and what it sets; then whether it holds on conditions, and what
    can happen."""
    told: list[Piece | str | None] = [f"{kind}{t('word.colon')}"]
    for chip in settings(advice):
        told += [chip, " "]
    told.append(opening(first_sentence(t.of(advice.text)), ADVISED))
    if (on := conditions(advice, item, t)) is not None:
        told += [" ", on]
    if advice.hazards:
        hazards = t.join([t(f"plan.hazard.{hazard}") for hazard in advice.hazards])
        told.append(f" {t('plan.hazards', hazards=hazards)}")
    return told


def _named(key: str, fingerprints: Sequence[str], outline: Outline, t: Labels) -> str:
    return t(key, numbers=t.join([outline.numbers[name] for name in fingerprints]))


def _limit(limit: Limit, outline: Outline, t: Labels) -> str:
    return t("plan.share_of_path", what=_whose(limit, outline, t), share=t.share(limit.share))


def _owners(outline: Outline, t: Labels) -> list[Block]:
    """The critical path of the job, folded away."""
    owners = outline.result.critical_path
    if not owners:
        return []
    step = sum(owner.ns for owner in owners)
    columns = (
        Column(t("plan.owner"), style="long"),
        Column(t("plan.whose")),
        Column(t("phases.time"), numeric=True),
        Column(t("unexplained.share"), numeric=True),
    )
    shown, rest = owners[:SHOWN_OWNERS], owners[SHOWN_OWNERS:]
    rows = [(_what(owner, t), _whose(owner, outline, t), owner.ns) for owner in shown]
    if rest:
        rows.append((t("plan.rest", count=len(rest)), "", sum(owner.ns for owner in rest)))
    table = Table(
        columns,
        tuple(Row((line(what), line(whose), line(t.time(ns)), line(t.share(ns / step)))) for what, whose, ns in rows),
    )
    return [Details(line(t("plan.owners")), (table, Paragraph(line(t("plan.owners.note")), "small")))]


def _what(owner: Owner | Varying, t: Labels) -> str:
    """The entry of the ledger; of a collective also what is covered there."""
    return t("plan.communication") if owner.path == "communication" else t.path(owner.path)


def _whose(owned: Owner | Limit | Varying, outline: Outline, t: Labels) -> str:
    """The chain, and its rank where there are several."""
    chain = t(f"plan.chain.{owned.chain}")
    if owned.rank is None or len(outline.result.profile.ranks) < 2:
        return chain
    return t("plan.of_rank", what=chain, rank=owned.rank)


def _parts(told: Plan, t: Labels) -> str:
    parts = [
        t("plan.part", part=t.path(name), before=t.time(before), after=t.time(told.parts_after[name]))
        for name, before in told.parts_before.items()
        if before or told.parts_after[name]
    ]
    return t("plan.parts", parts=t.join(parts))
