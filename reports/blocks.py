"""The document model: what a report consists of, before any format.

Sections build documents out of blocks (`reports.sections`); HTML, Markdown and terminal render them and compute
nothing: a number is written once. A line is made of pieces; a block is made of lines and of other blocks. ``style`` is
a hint that a format may follow. The kinds are structs of msgspec: as dataclasses, to define them took a tenth of what a
report takes.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from advisor_core.api.renderers import Drawn, Severity, Spread
from reports.ledgers import Ledger

# --- pieces of a line


class Words(Struct, frozen=True):
    """Plain text; nothing in it is markup. ``extra`` as a style: a format that is short of room leaves it out."""

    text: str
    style: str = ""


class Code(Struct, frozen=True):
    """A name or a value from the profile."""

    text: str
    style: str = ""


class Prose(Struct, frozen=True):
    """One line of Markdown from a rule."""

    text: str


class Link(Struct, frozen=True):
    """A link to a block of the same document, by its id."""

    target: str
    content: Line
    style: str = ""


class Web(Struct, frozen=True):
    """A link out of the document."""

    title: str
    url: str


class Nearby(Struct, frozen=True):
    """A link into another file that is written beside the report. A format that travels alone leaves it out."""

    file: str
    target: str
    content: Line


class Level(Struct, frozen=True):
    """How severe something is."""

    severity: Severity


class Swatch(Struct, frozen=True):
    """The fill that a chart uses for a path of the ledger."""

    path: str


class Below(Struct, frozen=True):
    """What is told of a cell in small letters."""

    content: Line


Piece = Words | Code | Prose | Link | Web | Nearby | Level | Swatch | Below
Line = tuple[Piece, ...]


def line(*parts: Piece | str | None) -> Line:
    """A line of pieces and plain texts; what is empty is left out."""
    return tuple([Words(part) if isinstance(part, str) else part for part in parts if part])


# --- blocks


class Paragraph(Struct, frozen=True):
    content: Line
    style: str = ""


class Callout(Struct, frozen=True):
    """Something that the reader must not miss."""

    blocks: tuple[Block, ...]


class RuleText(Struct, frozen=True):
    """Paragraphs, lists and code of a rule, in Markdown."""

    text: str


class Items(Struct, frozen=True):
    """A list."""

    items: tuple[Line, ...]
    style: str = ""


class Pairs(Struct, frozen=True):
    """Names and values; ``title`` says of what."""

    pairs: tuple[tuple[Line, Line], ...]
    title: str = ""
    style: str = ""


class Column(Struct, frozen=True):
    """``group``: a heading that neighbouring columns share. ``style``: ``short`` stays on one line, ``long`` breaks."""

    title: str
    numeric: bool = False
    group: str = ""
    style: str = ""


class Row(Struct, frozen=True):
    """``depth``: of a row of a tree. ``id``: what a link to it names. ``total``: the row that sums up the others."""

    cells: tuple[Line, ...]
    depth: int | None = None
    id: str = ""
    total: bool = False


class Table(Struct, frozen=True):
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    style: str = ""


class CodeLines(Struct, frozen=True):
    """Lines of code, as in a call stack."""

    lines: tuple[str, ...]


class Exhibit(Struct, frozen=True):
    """A piece of evidence: its caption, where it is from, and what is shown of it."""

    title: str
    about: str
    block: Table | CodeLines | None


class LedgerBars(Struct, frozen=True):
    """The ledgers of several ranks, roles or phases side by side, by name."""

    ledgers: tuple[Ledger, ...]
    names: tuple[str, ...]


class WaterfallPart(Struct, frozen=True):
    """``path``: of the ledger, '' for a part that is of no entry; ``ns``: what the part adds."""

    name: str
    path: str
    ns: int


class Waterfall(Struct, frozen=True):
    """The way from one time to another: the parts add up to the difference. ``ends``: what the two are called."""

    before_ns: int
    after_ns: int
    ends: tuple[str, str]
    parts: tuple[WaterfallPart, ...]


class RankLine(Struct, frozen=True):
    """Neighbouring ranks of a map, each with its value, ``None`` unknown. ``label``: what they are; ``apart``: whether
    they are of another stage than those above."""

    label: str
    cells: tuple[tuple[int, float | None], ...]
    apart: bool = False


class RankMap(Struct, frozen=True):
    """All ranks of a job in the order of its layout, by one measure. ``together``: how many neighbours share tensors.
    ``unit``: of the values, '' for a ratio that is 1 at best; ``low`` and ``high``: between which shades lie."""

    lines: tuple[RankLine, ...]
    unit: str
    low: float
    high: float
    together: int = 1


class LinkMap(Struct, frozen=True):
    """The bandwidth from rank to rank, B/s. ``names``: of the rows and columns; ``cells``: row, column, bandwidth and
    whether a finding calls it slow."""

    names: tuple[str, ...]
    cells: tuple[tuple[int, int, float, bool], ...]


class Boxes(Struct, frozen=True):
    """The spread over ranks, a box for each of ``names``."""

    names: tuple[str, ...]
    rows: tuple[Spread, ...]


class Timed(Struct, frozen=True):
    """A row of a picture over time. ``spans``: start, end and key, ns; ``texts``: what is written in each where it
    fits, or nothing."""

    name: str
    spans: tuple[tuple[int, int, str], ...]
    texts: tuple[str, ...] = ()


class Times(Struct, frozen=True):
    """Rows over one span of time, from 0 to ``end``. ``labels``: of keys that are no paths of the ledger."""

    end: int
    rows: tuple[Timed, ...]
    labels: dict[str, str]


class Figure(Struct, frozen=True):
    """A drawing: each format draws the data as it can, or writes it down."""

    data: Drawn | LedgerBars | Waterfall | RankMap | LinkMap | Boxes | Times
    title: str = ""


class Definitions(Struct, frozen=True):
    """Terms, and what there is to say about each."""

    entries: tuple[tuple[str, tuple[Block, ...]], ...]
    style: str = ""


class Details(Struct, frozen=True):
    """Blocks that can be folded away. ``extra``: what stands elsewhere in other words, or what few readers want; a
    format that is short of room leaves it out. ``mark``: of the state that it is about."""

    summary: Line
    blocks: tuple[Block, ...]
    open: bool = False
    extra: bool = False
    mark: str = ""


class Columns(Struct, frozen=True):
    """Blocks side by side."""

    blocks: tuple[Block, ...]


class Stake(Struct, frozen=True):
    """The time of a problem in words; ``why_none`` instead of all else where there is none."""

    time: str = ""
    share: str = ""
    basis: str = ""
    why_none: str = ""


class Headline(Struct, frozen=True):
    """A problem in brief: what it costs, its cause, and what to change first."""

    number: str
    target: str
    title: str
    severity: Severity
    stake: Stake
    notes: tuple[str, ...]
    role: str
    cause: Link | None
    cause_number: str
    kind: str
    settings: tuple[Code, ...]
    conditions: Link | None
    change: str


class Headlines(Struct, frozen=True):
    items: tuple[Headline, ...]


class Step(Struct, frozen=True):
    """One thing to do: what kind of change, the settings, the text, and what to mind."""

    kind: str
    settings: tuple[Code, ...]
    text: str
    notes: tuple[tuple[str, Line], ...]


class Steps(Struct, frozen=True):
    steps: tuple[Step, ...]
    withheld_title: str
    withheld: tuple[Line, ...]


class Card(Struct, frozen=True):
    """A problem written out, with its causes below it; ``judged`` is ``None``, and the body empty, where only a cause
    of it is."""

    id: str
    number: str
    title: str
    severity: Severity
    stake: Stake
    own: str
    facts: tuple[Line, ...]
    body: Definitions
    judged: Details | None
    causes: tuple[Card, ...]


class Section(Struct, frozen=True):
    """``title`` may be empty for a part of the first page that needs none; ``label`` then says what it is."""

    id: str
    title: str
    blocks: tuple[Block, ...]
    level: int = 2
    label: str = ""


Block = (
    Paragraph
    | Callout
    | RuleText
    | Items
    | Pairs
    | Table
    | CodeLines
    | Exhibit
    | Figure
    | Definitions
    | Details
    | Columns
    | Headlines
    | Steps
    | Card
    | Section
)


class Entry(Struct, frozen=True):
    """An entry of the table of contents."""

    target: str
    content: Line
    below: tuple[Entry, ...] = ()


class Document(Struct, frozen=True):
    """A report. ``first`` is its first page, ``sections`` all else."""

    kind: str
    tool: str
    verdict: str
    ran: Pairs
    first: tuple[Block, ...]
    contents: tuple[Entry, ...]
    sections: tuple[Section, ...]
    footer: str


def cards(blocks: Sequence[Block]) -> list[Card]:
    """All cards among blocks, causes after their symptom."""
    nested: list[Card] = []
    for block in blocks:
        if isinstance(block, Card):
            nested += [block, *cards(block.causes)]
        elif isinstance(block, Section):
            nested += cards(block.blocks)
    return nested
