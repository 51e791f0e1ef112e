"""``report.md``: the same content for a ticket on GitHub or GitLab. Tables, no HTML, every name inert."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from advisor_core.result.finding import Advice
from advisor_core.result.run import RuleOutcome, RunResult, State
from advisor_core.result.view import BarsView, CurveView, HeatmapView, StackedBarsView, StripView, View
from advisor_core.text.base import Scalar
from reports import tables
from reports.charts import Keys
from reports.headline import coverage, rank_name, verdict, what_ran
from reports.labels import Labels, one_line, shorten
from reports.ledgers import LedgerRow
from reports.outline import STATE_ORDER, Outline
from reports.phases import phase_rows
from reports.problems import Item
from reports.prose import code_span, escape_markdown, first_sentence, is_https, markdown, markdown_inline, plain
from reports.rank_states import rank_states
from reports.terminal import summary, text_bars

ROWS = 24
BUDGET = 36_000
"""Characters spent on findings that are written out: GitHub takes 65,536 in all. Further ones are listed."""

TITLE = 140
INDENT = "\u2003"


class MarkdownRenderer:
    """Writes the report that is pasted into a ticket."""

    name = "md"
    filename = "report.md"

    def render(self, result: RunResult, lang: str) -> str:
        writer = _Writer(result, Labels(lang))
        return "\n".join(writer.lines()).rstrip("\n") + "\n"

    def summary(self, result: RunResult, lang: str, written: Iterable[Path]) -> str:
        """The few lines that ``advisor run`` prints when it is done."""
        return summary(result, lang, map(str, written))


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], numeric: Sequence[bool] = ()) -> list[str]:
    """A table of cells that are Markdown already; an empty line follows."""
    rules = ["--:" if number < len(numeric) and numeric[number] else "---" for number in range(len(columns))]
    lines = [_row(columns), _row(rules), *(_row(row) for row in rows)]
    return [*lines, ""]


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell or " " for cell in cells) + " |"


def _cell(value: str) -> str:
    """A value from the profile in a table."""
    return code_span(value, in_table=True)


class _Writer:
    """One result in one language."""

    def __init__(self, result: RunResult, labels: Labels) -> None:
        self.result = result
        self.t = labels
        self.outline = Outline(result)
        self._linked: set[str] = set()
        self._detailed = self._measure()
        self._linked = {item.number for root in self.outline.items[: self._detailed] for item in root.walk()}

    def lines(self) -> Iterator[str]:
        yield from self._summary()
        yield from self._findings()
        if self.outline.by_rank:
            yield from self._ledger()
            yield from self._unexplained()
        yield from self._views()
        yield from self._rules()
        yield from self._environment()
        yield from self._inputs()
        yield from self._diagnostics()
        yield from self._tool()

    def _text(self, text: str) -> str:
        """A label or a short value in running text."""
        return escape_markdown(text)

    # --- the first screen

    def _summary(self) -> Iterator[str]:
        t, outline = self.t, self.outline
        yield f"# {t('doc.kind')}"
        yield ""
        yield f"**{self._text(verdict(outline, t))}**"
        yield ""
        facts = what_ran(outline, t)
        yield from table([t(fact.key) for fact in facts], [[self._text(fact.value) for fact in facts]])
        serious = sum(diagnostic.severity != "info" for diagnostic in self.result.diagnostics)
        if serious:
            yield f"> [{t('diag.first', count=serious)}](#{_slug(t('diag.title'))})"
            yield ""
        if outline.by_rank:
            yield f"## {t('first.where')}"
            yield ""
            yield "```text"
            yield from (line.replace("`", "'") for line in text_bars(outline, t))  # none may end the block
            yield "```"
            yield ""
        yield from self._phases()
        if outline.top:
            yield f"## {t('first.top')}"
            yield ""
            yield from table(
                [
                    "",
                    t("finding.title"),
                    t("rules.severity"),
                    t("first.at_stake"),
                    t("unexplained.share"),
                    t("first.do"),
                ],
                [self._top(item, more) for item, more in outline.top],
                (False, False, False, True, True, False),
            )
        else:
            yield from self._nothing()
        if self.result.rules:
            note = "first.coverage_roles" if outline.has_roles else "first.coverage_note"
            yield f"{t(note, total=outline.outcomes)} {t.join(coverage(outline, t))}."
            yield ""

    def _phases(self) -> Iterator[str]:
        t, rows = self.t, phase_rows(self.result, self.t)
        if not rows:
            return
        yield f"## {t('phases.title')}"
        yield ""
        keys = ("compute", "communication", "communication/wait", "idle")
        names = [t("phases.waiting") if key == "communication/wait" else t.path(key) for key in keys]
        ends = [t(f"phases.{name}") for name in ("longest", "shortest", "spread")]
        body = [
            [
                _cell(row.name) if row.name else self._text(row.label),
                t.time(row.ns),
                t.share(row.share),
                *(t.share(row.parts[key]) if row.parts[key] else "–" for key in keys),
                *(t("phases.at_rank", rank=e[0], time=t.time(e[1])) if e else "–" for e in (row.longest, row.shortest)),
                t.share(row.spread) if row.longest else "–",
            ]
            for row in rows
        ]
        header = [t("phases.phase"), t("phases.time"), t("phases.share"), *names, *ends]
        yield from table(header, body, (False, *(True for _ in header[1:])))
        yield t("phases.note")
        yield ""

    def _top(self, item: Item, more: int) -> list[str]:
        t, problem = self.t, item.problem
        actor, advice = self.outline.actor(item), self.outline.advice(item)
        title = markdown_inline(t.of(item.finding.title), in_table=True)
        if item.finding.role:
            title = f"{_cell(item.finding.role)} {title}"
        if actor is not item:
            cause = markdown_inline(t.of(actor.finding.title), in_table=True)
            title += f" — {t('first.because')}{t('word.colon')}{self._link(actor.number)} {cause}"
        if more:
            title += f" ({t('first.same', count=more)})"
        text = markdown_inline(first_sentence(t.of(advice.text)), in_table=True)
        if advice.only_if or advice.unless:
            text = f"{t('first.conditions', number=actor.number)} {text}"
        return [
            self._link(item.number),
            title,
            t(f"severity.{problem.severity}"),
            t(item.no_time) if item.no_time else f"{t.time(problem.stake_ns)} ({t(f'basis.{problem.basis}')})",
            "" if item.no_time else t.share(problem.share_of_step),
            " ".join([*self._chips(advice), text]),
        ]

    def _chips(self, advice: Advice) -> list[str]:
        return [_cell(f"{name}={value}") for name, value in advice.set.items()]

    def _nothing(self) -> Iterator[str]:
        t, rules = self.t, self.outline.rules
        if not self.result.rules:
            yield f"## {t('first.no_rules')}"
            yield ""
            return
        yield f"## {t('first.nothing')}"
        yield ""
        yield t(
            "first.nothing_note",
            passed=len(rules["pass"]),
            total=self.outline.outcomes,
            cannot=len(rules["cannot_answer"]),
            error=len(rules["error"]),
            na=len(rules["not_applicable"]),
        )
        yield ""
        if self.outline.unanswered:
            yield f"**{t('first.not_health', open=self.outline.unanswered)}**"
            yield ""
            for rule in (rules["error"] + rules["cannot_answer"])[:6]:
                hint = rule.collect or rule.reason
                yield f"- {code_span(rule.rule)} {markdown_inline(t.of(rule.title))}" + (
                    f" — {markdown_inline(t.of(hint))}" if hint else ""
                )
            yield ""

    # --- findings

    def _findings(self) -> Iterator[str]:
        if not self.outline.items:
            return
        yield f"## {self.t('finding.title')}"
        yield ""
        yield self.t("finding.note")
        yield ""
        for root in self.outline.items[: self._detailed]:
            yield from self._tree(root)
        further = [item for root in self.outline.items[self._detailed :] for item in root.walk()]
        if further:
            t = self.t
            yield f"### {t('finding.further')}"
            yield ""
            yield t("finding.further_note", count=len(further))
            yield ""
            rows = [
                [
                    item.number,
                    escape_markdown(shorten(plain(t.of(item.finding.title)), TITLE)),
                    t(f"severity.{item.problem.severity}"),
                    t.time(item.problem.stake_ns),
                    _cell(item.finding.fingerprint),
                ]
                for item in further[:ROWS]
            ]
            keys = ("finding.title", "rules.severity", "first.at_stake", "finding.fingerprint")
            yield from table(["", *(t(key) for key in keys)], rows, (False, False, False, True, False))
            yield from self._cut(len(further))

    def _tree(self, root: Item) -> Iterator[str]:
        for item in root.walk():
            yield from self._finding(item, root is item)

    def _measure(self) -> int:
        """How many trees are written out within `BUDGET`; the first always is."""
        size = 0
        for number, root in enumerate(self.outline.items):
            size += sum(len(line) + 1 for line in self._tree(root))
            if size > BUDGET and number:
                return number
        return len(self.outline.items)

    def _link(self, number: str) -> str:
        """A link to a finding that is written out. Its heading is its number alone: no name decides the anchor."""
        return f"[{number}](#{number.lower()})" if number in self._linked else number

    def _finding(self, item: Item, is_root: bool) -> Iterator[str]:
        t, f, problem = self.t, item.finding, item.problem
        yield f"{'###' if is_root else '####'} {item.number}"
        yield ""
        yield f"**{_unbold(markdown_inline(t.of(f.title)))}**"
        yield ""
        where = t("word.ranks", list=", ".join(str(rank) for rank in f.ranks[:12])) if len(f.ranks) > 1 else ""
        if not where and (rank := f.rank if f.rank is not None else next(iter(f.ranks), None)) is not None:
            where = t("word.rank", rank=rank)
        own = (
            t("finding.own", time=t.time(f.impact.ns_per_step))
            if item.causes and f.impact.ns_per_step != problem.stake_ns
            else ""
        )
        facts = [
            t(f"severity.{problem.severity}"),
            *(
                [t(item.no_time)]
                if item.no_time
                else [
                    f"**{t.time(problem.stake_ns)}** {t('finding.per_step')}",
                    t(item.of_step, share=t.share(problem.share_of_step)),
                    t(f"basis.{problem.basis}"),
                ]
            ),
            own,
            t("word.role", role=code_span(f.role)) if f.role else "",
            where,
            t("word.step", step=f.step) if f.step is not None else t("word.mean_steps"),
            t(f"confidence.{f.confidence}"),
            f"{code_span(f.rule)} {self._text(f.name)}",
        ]
        yield " · ".join(fact for fact in facts if fact)
        yield ""
        for caveat in f.caveats:
            yield f"> **{t('finding.caveats')}**{t('word.colon')}{markdown_inline(t.of(caveat))}"
            yield ""
        causes = [self._link(cause.number) for cause in item.causes] + [
            self._link(number) for number in problem.also_causes
        ]
        if causes:
            yield f"**{t('finding.causes')}**{t('word.colon')}{t.join(causes)}"
            yield ""
        if problem.symptoms:
            symptoms = [self._link(number) for number in problem.symptoms]
            yield f"**{t('finding.symptoms')}**{t('word.colon')}{t.join(symptoms)}"
            yield ""
        yield from self._section("finding.why", markdown(t.of(f.why)))
        yield f"**{t('finding.do')}**"
        yield ""
        for number, advice in enumerate(f.advice, 1):
            yield from self._advice(number, advice)
        if f.withheld:
            yield f"**{t('finding.withheld')}**"
            yield ""
            yield from (f"- {markdown_inline(t.of(text))}" for text in f.withheld)
            yield ""
        yield from self._section("finding.verify", markdown(t.of(f.verify)))
        if f.not_a_problem_if:
            yield from self._section("finding.not_a_problem", markdown(t.of(f.not_a_problem_if)))
        yield f"**{t('finding.evidence')}**"
        yield ""
        for found in tables.evidence(f.evidence, self.result, t):
            about = " · ".join(
                self._text(part) for part in (t(f"evidence.{found.kind}"), found.place, found.note) if part
            )
            yield f"{self._text(found.title)} ({about})"
            yield ""
            if found.kind == "stack":
                yield from (f"{number}. {code_span('  '.join(row))}" for number, row in enumerate(found.rows, 1))
                yield ""
            elif found.columns:
                cells = [
                    [value if right else _cell(value) for value, right in zip(row, found.numeric, strict=True)]
                    for row in found.rows
                ]
                yield from table([self._text(name) for name in found.columns], cells, found.numeric)
        yield from self._judged(item)

    def _section(self, key: str, body: str) -> Iterator[str]:
        yield f"**{self.t(key)}**"
        yield ""
        yield body
        yield ""

    def _advice(self, number: int, advice: Advice) -> Iterator[str]:
        t = self.t
        chips = " ".join(code_span(f"{name}={value}") for name, value in advice.set.items())
        head = f"{number}. **{t(f'advice.{advice.kind}')}**"
        yield f"{head} {chips}".rstrip() if chips else head
        indent = " " * (len(str(number)) + 2)
        yield ""
        yield from (f"{indent}{line}".rstrip() for line in markdown(t.of(advice.text)).split("\n"))
        notes = {"finding.unless": t("finding.unless_text"), "finding.risk": t.hazards(advice)}
        for key, text in (
            ("finding.only_if", advice.only_if),
            ("finding.unless", advice.unless),
            ("finding.risk", advice.risk),
        ):
            if text:
                note = f" ({notes[key]})" if notes.get(key) else ""
                yield ""
                yield f"{indent}*{t(key)}*{note}{t('word.colon')}{markdown_inline(t.of(text))}"
        yield ""

    def _judged(self, item: Item) -> Iterator[str]:
        t, f = self.t, item.finding
        rows = [[t("finding.condition"), _cell(f.condition)]]
        rows += [
            [f"{t('finding.subject')}{t('word.colon')}{self._text(name)}", _cell(value)]
            for name, value in tables.pairs(f.subject, t)
        ]
        rows += [[self._text(name), _cell(value)] for name, value in tables.observation(f, t)]
        rows.append([t("finding.gross"), t.time(f.impact.gross_ns_per_step)])
        rows += [
            [f"{t('finding.claims')}{t('word.colon')}{_cell(claim.path)}", t.time(claim.ns)]
            for claim in f.impact.claims
            if claim.rank == f.rank
        ]
        rows.append([t("finding.fingerprint"), _cell(f.fingerprint)])
        yield from table([t("finding.judged"), ""], rows)
        if f.references:
            links = [
                f"[{self._text(r.title)}](<{one_line(r.url).replace('<', '%3C').replace('>', '%3E')}>)"
                if r.url and is_https(r.url)
                else self._text(r.title)
                for r in f.references
            ]
            yield f"{t('finding.references')}{t('word.colon')}{t.join(links)}"
            yield ""

    # --- the ledger

    def _ledger(self) -> Iterator[str]:
        t, outline = self.t, self.outline
        yield f"## {t('ledger.title')}"
        yield ""
        known, claimed = t.share(self.result.coverage.known_share), t.share(self.result.coverage.claimed_share)
        yield f"{t('ledger.note')} {t('ledger.known', known=known, claimed=claimed)}"
        yield ""
        names = [self._text(rank_name(ledger, outline, t)) for ledger in outline.columns]
        notes = any(row.detail or row.reasons for row in outline.rows)
        rows = []
        for row in outline.rows:
            label = t("word.others", count=row.others) if row.others else t.path(row.path)
            label = f"**{self._text(label)}**" if row.depth == 0 else INDENT * row.depth + self._text(label)
            cells = [f"{t.time(ns)} ({t.share(share)})" if ns else "–" for ns, share in row.cells]
            rows.append([label, *cells, *([self._note(row)] if notes else [])])
        rows.append(
            [
                f"**{t('ledger.total')}**",
                *(t.wall(ledger.wall_ns) for ledger in outline.columns),
                *([""] if notes else []),
            ]
        )
        header = [t("ledger.entry"), *names, *([t("ledger.detail")] if notes else [])]
        yield from table(header, rows, (False, *(True for _ in names)))

    def _note(self, row: LedgerRow) -> str:
        t = self.t
        parts = [self._details(row.detail.items()), *(self._text(t.of(text)) for text in row.reasons)]
        return t("word.semicolon").join(part for part in parts if part)

    def _details(self, details: Iterable[tuple[str, Scalar]]) -> str:
        t = self.t
        found = tables.pairs(dict(details), t)
        return t("word.clause").join(f"{self._text(name)}{t('word.colon')}{self._text(value)}" for name, value in found)

    def _unexplained(self) -> Iterator[str]:
        t, entries = self.t, self.outline.unexplained
        yield f"## {t('unexplained.title')}"
        yield ""
        limit = t.share(self.result.coverage.unexplained_from)
        yield t("unexplained.note" if entries else "unexplained.none", limit=limit)
        yield ""
        if entries:
            yield from table(
                [
                    *([t("phases.phase")] if self.outline.has_roles else []),
                    t("inputs.rank"),
                    t("ledger.entry"),
                    t("unexplained.unclaimed"),
                    t("unexplained.share"),
                ],
                [
                    [
                        *([_cell(e.role or "")] if self.outline.has_roles else []),
                        t("unexplained.worst", rank=e.rank, count=ranks) if ranks > 1 else str(e.rank),
                        f"{self._text(t.trail(e.path))} {_cell(e.path)}",
                        t.time(e.ns),
                        t.share(e.share_of_step),
                    ]
                    for e, ranks in entries[:ROWS]
                ],
                (*([False] if self.outline.has_roles else []), True, False, True, True),
            )
            if len(entries) > ROWS:
                yield t("chart.largest", shown=ROWS, total=len(entries))
                yield ""

    # --- views, as tables

    def _views(self) -> Iterator[str]:
        if not self.outline.views:
            return
        yield f"## {self.t('views.title')}"
        yield ""
        for view in self.outline.views:
            rank = f" ({self.t('word.rank', rank=view.rank)})" if view.rank is not None else ""
            rank += f" {code_span(view.role)}" if view.role else ""
            yield f"**{_unbold(self._text(self.t.of(view.title)))}**{rank}"
            yield ""
            yield from self._view(view)

    def _view(self, view: View) -> Iterator[str]:
        t = self.t

        def value(amount: Scalar) -> str:
            return self._text(t.quantity(amount, view.unit))

        match view:
            case BarsView(data=data):
                rows = data.rows
                yield from table(
                    [t("chart.label"), t("chart.value"), t("chart.note")],
                    [[_cell(t.either(r.label)), value(r.value), self._text(r.note)] for r in rows[:ROWS]],
                    (False, True, False),
                )
                yield from self._cut(len(rows))
            case StackedBarsView(data=stacked):
                labels = Keys(t)
                keys = list(dict.fromkeys(part.key for row in stacked.rows for part in row.parts))[:12]
                body = []
                for row in stacked.rows[:ROWS]:
                    parts = {part.key: part.value for part in row.parts}
                    body.append([_cell(row.label), *(value(parts[k]) if k in parts else "–" for k in keys)])
                header = [t("chart.label"), *(self._text(labels.label(key)) for key in keys)]
                yield from table(header, body, (False, *(True for _ in keys)))
                yield from self._cut(len(stacked.rows))
            case StripView(data=strip):
                labels = Keys(t)
                body = []
                for lane in strip.lanes:
                    sums: dict[str, int] = {}
                    for start, end, key in lane.intervals:
                        sums[key] = sums.get(key, 0) + end - start
                    largest = sorted(sums.items(), key=lambda pair: (-pair[1], pair[0]))[:6]
                    said = [f"{labels.label(key)} {t.time(ns)}" for key, ns in largest]
                    body.append([_cell(lane.label), self._text(t.join(said))])
                yield from table([t("evidence.lane"), t("chart.lane_total")], body)
                if strip.marks:
                    body = [
                        [t.time(mark.start), t.time(mark.end - mark.start), self._text(t.of(mark.label))]
                        for mark in strip.marks[:ROWS]
                    ]
                    yield from table(
                        [t("evidence.start"), t("evidence.duration"), t("chart.mark")], body, (True, True, False)
                    )
            case CurveView(data=curve):
                body = []
                for one in curve.series:
                    most = max(one.values)
                    when = t.time(curve.times[one.values.index(most)])
                    ends = (value(one.values[0]), value(one.values[-1]))
                    body.append([_cell(t.of(one.label)), ends[0], value(most), when, ends[1]])
                heads = [t(f"chart.{name}") for name in ("label", "first", "most", "when", "last")]
                yield from table(heads, body, (False, True, True, True, True))
            case HeatmapView(data=heat):
                columns = heat.columns[:12]
                body = [
                    [_cell(row), *(value(cell) for cell in line[:12])]
                    for row, line in list(zip(heat.rows, heat.values, strict=True))[:ROWS]
                ]
                header = [t("chart.label"), *(self._text(column) for column in columns)]
                yield from table(header, body, (False, *(True for _ in columns)))
                yield from self._cut(len(heat.rows))

    def _cut(self, total: int) -> Iterator[str]:
        if total > ROWS:
            yield self.t("chart.largest", shown=ROWS, total=total)
            yield ""

    # --- rules and the rest

    def _rules(self) -> Iterator[str]:
        t = self.t
        yield f"## {t('rules.title')}"
        yield ""
        yield t("rules.note" if self.result.rules else "rules.empty")
        yield ""
        for state in STATE_ORDER:
            if outcomes := self.outline.rules[state]:
                yield f"### {t(f'state.{state}')} ({len(outcomes)})"
                yield ""
                if state == "cannot_answer":
                    yield t("rules.collect_command")
                    yield ""
                yield from self._outcomes(state, outcomes)

    def _outcomes(self, state: State, outcomes: Sequence[RuleOutcome]) -> Iterator[str]:
        t = self.t
        optional = [name for name in ("reason", "collect") if any(getattr(rule, name) for rule in outcomes)]
        header = [t("rules.rule"), t("rules.about"), *(t(f"rules.{name}") for name in optional)]
        if state == "fail":
            header += [t("rules.severity"), t("rules.findings")]
        rows = []
        for rule in outcomes:
            about = markdown_inline(t.of(rule.title), in_table=True)
            notes = [self._text(note) for note in (rule.role, rank_states(rule, t)) if note]
            row = [_cell(rule.rule), f"{about} ({t('word.semicolon').join(notes)})" if notes else about]
            for name in optional:
                text = getattr(rule, name)
                row.append(markdown_inline(t.of(text), in_table=True) if text else "")
            if state == "fail":
                row += [t(f"severity.{rule.severity}") if rule.severity else "", str(rule.findings)]
            rows.append(row)
        yield from table(header, rows)

    def _environment(self) -> Iterator[str]:
        t, environment = self.t, self.result.environment
        yield f"## {t('env.title')}"
        yield ""
        yield t("env.note")
        yield ""
        for key, found in (("env.chip", environment.chip), ("env.profiler", environment.profiler)):
            if found:
                rows = [[self._text(name), _cell(value)] for name, value in tables.pairs(found, t)]
                yield from table([t(key), t("env.value")], rows)
        rows = [
            [_cell(name), _cell(value) if value else t("env.unset")]
            for name, value in sorted(environment.variables.items())
        ]
        rows += [[_cell(name), t("env.not_recorded")] for name in self.outline.unrecorded]
        if rows:
            yield from table([t("env.variables"), t("env.value")], rows)

    def _inputs(self) -> Iterator[str]:
        t = self.t
        yield f"## {t('inputs.title')}"
        yield ""
        inputs = sorted(self.result.inputs, key=lambda entry: entry.rank)
        yield from table(
            [
                t("inputs.rank"),
                t("inputs.path"),
                t("inputs.kind"),
                t("inputs.level"),
                t("inputs.framework"),
                t("inputs.versions"),
                "sha256",
            ],
            [
                [
                    str(entry.rank),
                    _cell(entry.path),
                    self._text(entry.kind),
                    self._text(entry.level or "–"),
                    self._text(entry.framework or "–"),
                    self._text(t.join([f"{name} {version}" for name, version in entry.versions.items()])),
                    _cell(entry.sha256),
                ]
                for entry in inputs[:ROWS]
            ],
            (True,),
        )
        yield from self._cut(len(inputs))

    def _diagnostics(self) -> Iterator[str]:
        t = self.t
        yield f"## {t('diag.title')}"
        yield ""
        if not self.result.diagnostics:
            yield t("diag.none")
            yield ""
            return
        yield from table(
            [t("diag.severity"), t("diag.source"), t("diag.message")],
            [
                [
                    t(f"diag.{d.severity}"),
                    _cell(f"{d.role} › {d.source}" if d.role else d.source),
                    self._text(shorten(one_line(t.of(d.message)), 400)),
                ]
                for d in self.result.diagnostics[:ROWS]
            ],
        )
        yield from self._cut(len(self.result.diagnostics))

    def _tool(self) -> Iterator[str]:
        t, tool = self.t, self.result.tool
        yield f"## {t('tool.title')}"
        yield ""
        rows = [[self._text(tool.name), _cell(tool.version)], [t("tool.schema"), _cell(self.result.schema_version)]]
        rows += [[self._text(name), _cell(version)] for name, version in tool.plugins.items()]
        yield from table(["", t("tool.version")], rows)


def _slug(heading: str) -> str:
    """The anchor that GitHub and GitLab give to a heading of ours: words of letters, no punctuation."""
    return heading.lower().replace(" ", "-")


def _unbold(text: str) -> str:
    """Bold inside of bold is not bold."""
    return text.replace("**", "")
