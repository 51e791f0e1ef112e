"""The first page: obstacles, the parts of the difference, findings, promise and outcome."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from advisor_core.api.renderers import (
    Cause,
    Comparison,
    FindingDifference,
    Promise,
    Severity,
)
from reports.blocks import (
    Below,
    Block,
    Callout,
    Code,
    Column,
    Details,
    Figure,
    Items,
    LedgerBars,
    Line,
    Paragraph,
    Row,
    Section,
    Swatch,
    Table,
    Waterfall,
    WaterfallPart,
    Words,
    line,
)
from reports.comparison.sides import sides
from reports.comparison.words import calls, method, signed
from reports.labels import Labels, shorten
from reports.sections.problem_words import brief_title

NAME = 60
"""Longest name of an operator below an entry."""

EXPLAINED = 0.01
"""As `advisor_core.compare.causes.MATTERS`, for the sentence that says so."""


def obstacles(comparison: Comparison, t: Labels) -> Iterator[Block]:
    """The differences that spoil conclusions, on top of all else."""
    if not comparison.obstacles:
        return
    told: list[Line] = []
    for obstacle in comparison.obstacles:
        what = t.join([t(f"compare.conclusion.{one}") for one in obstacle.spoils])
        spoils = Words(f" ({t('compare.spoils', what=what)})") if what else None
        told.append(line(t.of(obstacle.text), spoils))
    heading = Paragraph(line(Words(t("compare.obstacles"), "strong")))
    yield Callout((heading, Items(tuple(told), "plain")))


def where(comparison: Comparison, t: Labels) -> Iterator[Block]:
    """The ledgers before and after, to one scale."""
    if comparison.ledger:
        bars = LedgerBars(sides(comparison), (t("compare.before"), t("compare.after")))
        yield Section("where", t("compare.where"), (Figure(bars, t("compare.where")),))


def waterfall(comparison: Comparison, t: Labels) -> Waterfall | None:
    """The difference in its parts; ``None`` where there is none."""
    if not any(row.difference_ns for row in comparison.ledger):
        return None
    parts = tuple(WaterfallPart(t.trail(cause.path), cause.path, cause.difference_ns) for cause in comparison.causes)
    if comparison.rest_ns:
        parts = (*parts, WaterfallPart(t("compare.rest"), "", comparison.rest_ns))
    ends = (t("compare.before"), t("compare.after"))
    return Waterfall(comparison.verdict.before_ns, comparison.verdict.after_ns, ends, parts)


def why(comparison: Comparison, t: Labels) -> Iterator[Block]:
    """The difference as a waterfall, and under each part what moved the same way."""
    verdict = comparison.verdict
    if comparison.origins or (drawn := waterfall(comparison, t)) is None:
        return  # of two devices the origins say it
    rows = [_cause(cause, comparison, t) for cause in comparison.causes]
    if comparison.rest_ns or not rows:
        rows.append(Row((line(t("compare.rest")), line(signed(comparison.rest_ns, t)))))
    rows.append(Row((line(t("compare.step")), line(signed(verdict.difference_ns, t))), total=True))
    columns = (Column(t("compare.entry"), style="long"), Column(t("compare.difference"), numeric=True))
    blocks: list[Block] = [Figure(drawn, t("compare.waterfall"))]
    if not comparison.causes:
        blocks.append(Paragraph(line(t("compare.why_none", share=t.share(EXPLAINED)))))
    blocks += [Table(columns, tuple(rows)), Paragraph(line(t("compare.why_note")), "small")]
    if told := method(verdict, t):
        blocks.append(Paragraph(line(told), "small"))
    yield Section("why", t("compare.why"), tuple(blocks))


def _cause(cause: Cause, comparison: Comparison, t: Labels) -> Row:
    below = [Below(content) for content in _reasons(cause, comparison, t)]
    trunk = cause.path.partition("/")[0]
    return Row(
        (line(Swatch(trunk), t.trail(cause.path), *below), line(Words(signed(cause.difference_ns, t), "strong")))
    )


def _reasons(cause: Cause, comparison: Comparison, t: Labels) -> Iterator[Line]:
    for finding in (comparison.findings[place] for place in cause.findings):
        numbers = " → ".join(number for number in (finding.before, finding.after) if number)
        state = t(f"compare.finding.{finding.state}")
        yield line(f"{state}{t('word.colon')}{numbers} {brief_title(t.of(finding.title))}")
    for operator in (comparison.operators[place] for place in cause.operators):
        name = Code(shorten(operator.type, NAME)) if operator.type is not None else t("compare.unlisted")
        ran = calls(operator.calls_before, operator.calls_after, t)
        yield line(name, f" {signed(operator.difference_ns, t)}", t("word.clause"), _times(ran, t))
    for call in (comparison.collectives[place] for place in cause.collectives):
        name = Code(call.operation) if call.operation is not None else t("compare.unlisted")
        size = f" {t.quantity(call.bytes, 'bytes')}" if call.bytes is not None else None
        yield line(name, size, f" {signed(call.at(cause.path), t)}")


def _times(ran: str, t: Labels) -> str:
    return ran if "→" in ran else f"{ran} ×"


def findings(comparison: Comparison, t: Labels) -> Iterator[Block]:
    """The findings that are new, worse, gone or better; those that are the same folded away."""
    if "findings" in comparison.withheld:
        return
    if not comparison.findings:
        yield Section("findings", t("compare.findings"), (Paragraph(line(t("compare.findings_none"))),))
        return
    differing = [finding for finding in comparison.findings if finding.state != "same"]
    same = [finding for finding in comparison.findings if finding.state == "same"]
    blocks: list[Block] = [_finding_table(differing, t)] if differing else []
    if same:
        blocks.append(Details(line(t("compare.findings_same", count=len(same))), (_finding_table(same, t),)))
    yield Section("findings", t("compare.findings"), tuple(blocks))


def _finding_table(rows: Sequence[FindingDifference], t: Labels) -> Table:
    group = t("compare.measured")
    columns = (
        Column(t("compare.state"), style="short"),
        Column(t("finding.title"), style="long"),
        Column(t("compare.before"), numeric=True, group=group),
        Column(t("compare.after"), numeric=True, group=group),
    )
    return Table(columns, tuple(_finding(row, t) for row in rows))


def _finding(row: FindingDifference, t: Labels) -> Row:
    numbers = " → ".join(number or "–" for number in (row.before, row.after))
    return Row(
        (
            line(Words(t(f"compare.finding.{row.state}"), "strong")),
            line(Code(numbers), f" {brief_title(t.of(row.title))}"),
            _side(row.before_ns, row.severity_before, t),
            _side(row.after_ns, row.severity_after, t),
        )
    )


def _side(ns: int | None, severity: Severity | None, t: Labels) -> Line:
    if ns is None or severity is None:
        return line("–")
    return line(t.time(ns) if ns else "–", Below(line(t(f"severity.{severity}"))))


def promises(comparison: Comparison, t: Labels) -> Iterator[Block]:
    """Promise and outcome of the changes that were made."""
    told = comparison.promises
    if told is None:
        return
    heads = (
        Column(t("compare.promise.finding"), style="long"),
        Column(t("compare.promise.promised"), numeric=True),
        Column(t("compare.promise.own"), numeric=True),
    )
    promised = "" if told.together_ns is None else t.time(told.together_ns)
    came = "compare.promises.shorter" if told.came_ns >= 0 else "compare.promises.longer"
    said = [t(f"compare.promises.{told.basis}", promised=promised), t(came, time=t.time(abs(told.came_ns)))]
    if told.came_range_ns is None:
        said.append(t("compare.promises.untold"))
    else:
        low, high = (_shorter(ns, t) for ns in told.came_range_ns)
        said.append(t("compare.promises.range", low=low, high=high))
    if told.came_in_plan_ns is not None:
        said.append(t("compare.promises.in_plan", time=_shorter(told.came_in_plan_ns, t)))
    blocks = (
        Paragraph(line((" " if t.lang == "en" else "").join(said))),
        Table(heads, tuple(_promise(item, comparison, t) for item in told.items)),
        Paragraph(line(t("compare.promises.note")), "small"),
    )
    yield Section("promises", t("compare.promises"), blocks)


def _shorter(ns: int, t: Labels) -> str:
    return t.time(ns) if ns >= 0 else signed(ns, t)


def _promise(item: Promise, comparison: Comparison, t: Labels) -> Row:
    finding = comparison.findings[item.finding]
    set_now = [piece for setting in item.settings for piece in (Code(setting), " ")]
    below = Below(line(t("compare.promise.settings"), t("word.colon"), *set_now)) if set_now else None
    title = f"{finding.before or ''} {brief_title(t.of(finding.title))}".strip()
    return Row(
        (
            line(title, below),
            line("–" if item.promised_ns is None else _range(item.promised_ns, item.range_ns, t)),
            line("–" if item.own_ns is None else _shorter(item.own_ns, t)),
        )
    )


def _range(ns: int, ends: tuple[int, int] | None, t: Labels) -> str:
    value, low, high = (t.time(end) for end in (ns, *(ends or (ns, ns))))
    return value if low == high else t("plan.value_from_to", value=value, low=low, high=high)
