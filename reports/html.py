"""``report.html``: one file that needs nothing else, no script and no network.

Templates escape everything; what they may put in unescaped comes from `reports.prose` and `reports.charts`.
"""

from __future__ import annotations

import marshal
import re
import sys
from collections.abc import Sequence
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2
from jinja2 import Environment, StrictUndefined, Template
from jinja2.runtime import Macro
from markupsafe import Markup

from advisor_core.api.renderers import RunResult, kept
from reports import prose
from reports.blocks import (
    Block,
    Boxes,
    Code,
    Column,
    Document,
    Entry,
    Figure,
    LedgerBars,
    Line,
    LinkMap,
    Piece,
    RankMap,
    Row,
    Times,
    Waterfall,
    Words,
)
from reports.charts.boxes import draw_boxes
from reports.charts.chart import Chart
from reports.charts.draw import draw
from reports.charts.keys import Keys
from reports.charts.ledger_bars import ledger_bars
from reports.charts.link_map import draw_link_map
from reports.charts.patterns import patterns
from reports.charts.rank_map import draw_rank_map
from reports.charts.times import draw_times
from reports.charts.waterfall import draw_waterfall
from reports.document import document
from reports.html_pieces import cells, code, finalized, words
from reports.labels import Labels
from reports.outline import Outline
from reports.sections.limits import Limits, Room

if TYPE_CHECKING:
    from advisor_core.api.renderers import ComparisonResult

_HERE = Path(__file__).parent
DETAILED = 34
"""So many findings are written out; further ones are listed in a table, to keep the file within its budget: those of
simulated jobs take 5 to 15 kB each."""

LISTED_INPUTS = 16
LISTED_DIAGNOSTICS = 200
ROWS = 24
ROOM = 260_000
"""Bytes of the page that the drawings of ranks share, so that it stays below a megabyte with room for what else a large
job has to tell: those of a rank take 50 to 130 kB."""


class HtmlRenderer:
    """Writes the report that is attached to a ticket."""

    def render(self, result: RunResult, lang: str) -> str:
        labels, outline = Labels.of_result(result, lang), Outline(result)
        written = _Page(labels)
        limits = Limits(
            written=frozenset(item.number for root in outline.items[: _trees(outline)] for item in root.walk()),
            further=len(result.findings),
            rows=ROWS,
            inputs=LISTED_INPUTS,
            diagnostics=LISTED_DIAGNOSTICS,
            charts=None,
            room=Room(ROOM, lambda block: len(written.block(block).encode())),
        )
        return written.render(document(outline, labels, limits))

    def render_comparison(self, result: ComparisonResult, lang: str) -> str:
        """A comparison of runs as a page."""
        from reports.comparison.document import document as comparison_document

        labels = Labels(lang, result.labels)
        return page(comparison_document(result, labels), labels)


def page(document: Document, labels: Labels) -> str:
    """A document as a page."""
    return _Page(labels).render(document)


def _trees(outline: Outline) -> int:
    """How many problems are written out with their causes; the first always is."""
    count = 0
    for number, item in enumerate(outline.items):
        count += sum(1 for _ in item.walk())
        if count > DETAILED and number:
            return number
    return len(outline.items)


class _Page:
    """The renderings of blocks and pieces: a macro of the same name for each."""

    def __init__(self, labels: Labels) -> None:
        self.labels = labels
        self._written: dict[int, tuple[Block | Entry, Markup]] = {}
        self.shared = {
            "t": labels,
            "block": self.block,
            "blocks": lambda blocks: prose.joined(self.block(one) for one in blocks),
            "line": self.line,
            "cells": self.cells,
            "chart": self.chart,
            "fills": Keys(labels),
            "md": prose,
        }
        self._module: Any = _template("blocks.html.j2").make_module(self.shared)
        self._macros: dict[type, Macro] = {}

    def render(self, document: Document) -> str:
        return _template("report.html.j2").render(
            **self.shared,
            page=document,
            lang="zh-CN" if self.labels.lang == "zh" else "en",
            css=prose.trusted(_style()),
            patterns=patterns(),
        )

    def block(self, block: Block | Entry) -> Markup:
        """The block as a part of the page; of one that was asked for before, the same again."""
        found = self._written.get(id(block))
        if found is None:
            found = self._written[id(block)] = block, self._macro(block)
        return found[1]

    def line(self, content: Line) -> Markup:
        if len(content) == 1:
            return self._piece(content[0])
        return prose.joined([self._piece(piece) for piece in content])

    def cells(self, row: Row, columns: Sequence[Column]) -> Markup:
        """The cells of a row of a table."""
        classes = [f"n {column.style}" if column.numeric else column.style for column in columns]
        headed = row.depth is not None or row.total
        return cells([self.line(content) for content in row.cells], classes, headed=headed)

    def _piece(self, piece: Piece) -> Markup:
        if isinstance(piece, Words):
            return words(piece.text, piece.style)
        if isinstance(piece, Code):
            return code(piece.text, piece.style)
        return self._macro(piece)

    def _macro(self, what: Block | Entry | Piece) -> Markup:
        kind = type(what)
        if kind not in self._macros:
            self._macros[kind] = getattr(self._module, _snake(kind.__name__))
        return prose.trusted(str(self._macros[kind](what)).strip("\n"))

    def chart(self, figure: Figure) -> Chart:
        if isinstance(figure.data, LedgerBars):
            bars = ledger_bars(figure.data.ledgers, self.labels, figure.data.names)
            return Chart("", bars)
        if isinstance(figure.data, Waterfall):
            return draw_waterfall(figure.data, figure.title, self.labels)
        if isinstance(figure.data, RankMap):
            return draw_rank_map(figure.data, figure.title, self.labels)
        if isinstance(figure.data, Boxes):
            return draw_boxes(figure.data, figure.title, self.labels)
        if isinstance(figure.data, Times):
            return draw_times(figure.data, figure.title, self.labels)
        if isinstance(figure.data, LinkMap):
            return draw_link_map(figure.data, figure.title, self.labels)
        return draw(figure.data, self.labels)


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


@cache
def _style() -> str:
    return (_HERE / "styles" / "report.css").read_text(encoding="utf-8")


@cache
def _template(name: str) -> Template:
    """A template of ours, as byte code of this interpreter that was kept: to compile them is a third of the page."""
    file, environment = _HERE / "templates" / name, _environment()
    source = file.read_bytes()
    code = kept(
        f"template-{name}",
        [source, str(file).encode(), jinja2.__version__.encode(), sys.version.encode()],
        __file__,
        lambda: marshal.dumps(environment.compile(source.decode("utf-8"), name, str(file))),
    )
    return Template.from_code(environment, marshal.loads(code), environment.make_globals(None))


@cache
def _environment() -> Environment:
    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=finalized,
    )
    environment.filters["groupby_run"] = _runs
    return environment


def _runs(columns: Sequence[Column], attribute: str) -> list[tuple[str, int]]:
    """Neighbouring columns that share a value of an attribute: the value and how many they are."""
    return [(value, len(list(run))) for value, run in groupby(columns, key=lambda column: getattr(column, attribute))]
