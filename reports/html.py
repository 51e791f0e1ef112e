"""``report.html``: one file that needs nothing else, no script and no network.

Templates escape everything; what they may put in unescaped comes from `reports.prose` and `reports.charts`.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from advisor_core.result.run import RunResult
from advisor_core.result.view import View
from reports import charts, prose, tables
from reports.headline import coverage, rank_name, verdict, what_ran
from reports.labels import Labels, shorten, visible
from reports.outline import ALL_RANKS, STATE_ORDER, Outline
from reports.phases import phase_ledgers, phase_rows
from reports.problems import Item
from reports.rank_states import rank_states

_HERE = Path(__file__).parent
_UNIT_SPACE = re.compile(r"(?<=\d) (?=(?:%|ns|µs|ms|s|B|kB|MB|GB)(?:\W|$))")
DETAILED = 80
"""So many findings are written out; further ones are listed in a table, to keep the file within its budget."""

TITLE = 140
"""Longest title outside of its own finding."""

LISTED_INPUTS = 16
LISTED_DIAGNOSTICS = 200
UNEXPLAINED_ROWS = 24


TREE_LIMIT = 0.01
"""Share of the step from which an entry of the ledger stands on the first screen."""


class HtmlRenderer:
    """Writes the report that is attached to a ticket."""

    name = "html"
    filename = "report.html"

    def render(self, result: RunResult, lang: str) -> str:
        labels = Labels(lang)
        outline = Outline(result)
        detailed, further = _split(outline.items)
        shown = outline.shown
        strip = _first_strip(result, outline)
        timeline = next((view for view in result.views if view.purpose == "phases"), None)
        marked = {} if outline.has_roles else phase_ledgers(result)
        return (
            _environment()
            .get_template("report.html.j2")
            .render(
                t=labels,
                lang="zh-CN" if labels.lang == "zh" else "en",
                css=prose.trusted(_style()),
                patterns=charts.patterns(),
                o=outline,
                result=result,
                ran=what_ran(outline, labels),
                verdict=verdict(outline, labels),
                bars=charts.ledger_bars(shown, labels, [rank_name(ledger, outline, labels) for ledger in shown]),
                tree=[row for row in outline.rows if any(share >= TREE_LIMIT for _, share in row.cells)],
                tree_limit=TREE_LIMIT,
                strip=charts.draw(strip, labels) if strip else None,
                phases=phase_rows(result, labels),
                phase_bars=charts.ledger_bars(list(marked.values()), labels, list(marked)) if marked else None,
                column=labels.column(max((ledger.wall_ns for ledger in outline.columns), default=0)),
                column_names=[rank_name(ledger, outline, labels) for ledger in outline.columns],
                heatmap=charts.rank_heatmap(outline.by_rank, outline.mean, labels)
                if len(outline.by_rank) > ALL_RANKS and not outline.has_roles
                else None,
                phase_strip=charts.draw(timeline, labels) if timeline else None,
                charts=[
                    charts.draw(view, labels) for view in outline.views if view is not strip and view is not timeline
                ],
                fills=charts.Keys(labels),
                coverage=coverage(outline, labels),
                detailed=detailed,
                further=further,
                states=STATE_ORDER,
                unexplained_rows=UNEXPLAINED_ROWS,
                listed_inputs=LISTED_INPUTS,
                listed_diagnostics=LISTED_DIAGNOSTICS,
                serious=sum(diagnostic.severity != "info" for diagnostic in result.diagnostics),
                evidence=lambda finding: tables.evidence(finding.evidence, result, labels),
                stretches=[tables.stretches(ledger, result, labels) for ledger in outline.told],
                observation=lambda finding: tables.observation(finding, labels),
                pairs=lambda values: tables.pairs(values, labels),
                prose=prose,
                rank_states=lambda outcome: rank_states(outcome, labels),
                short=lambda text: shorten(prose.plain(text), TITLE),
            )
        )


def _first_strip(result: RunResult, outline: Outline) -> View | None:
    """The slowest step of the slowest rank that is drawn."""
    walls = {ledger.lane: ledger.wall_ns for ledger in outline.by_rank}
    strips = [view for view in result.views if view.purpose == "step"]
    known = [(walls[lane], view) for view in strips if (lane := (view.role, view.rank or 0)) in walls]
    return max(known, key=lambda pair: pair[0], default=(0, None))[1]


def _split(items: list[Item]) -> tuple[list[Item], list[Item]]:
    """The trees that are written out, and the findings that are only listed."""
    count = 0
    for number, item in enumerate(items):
        count += sum(1 for _ in item.walk())
        if count > DETAILED and number:
            return items[:number], [member for rest in items[number:] for member in rest.walk()]
    return items, []


@cache
def _style() -> str:
    return (_HERE / "styles" / "report.css").read_text(encoding="utf-8")


@cache
def _environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalize,
    )


def _finalize(value: Any) -> Any:
    """Plain text on its way into the page: nothing invisible, and no line break between a number and its unit."""
    return _UNIT_SPACE.sub("\u00a0", visible(value)) if type(value) is str else value
