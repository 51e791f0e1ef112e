"""The document model: what a report consists of, before any format.

Sections build documents out of blocks (`reports.sections`); HTML, Markdown and terminal render them and compute
nothing: a number is written once. A line is made of pieces; a block is made of lines and of other blocks. ``style`` is
a hint that a format may follow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from advisor_core.api.renderers import Severity, View
from reports.ledgers import Ledger

# --- pieces of a line


@dataclass(frozen=True)
class Words:
    """Plain text; nothing in it is markup. ``extra`` as a style: a format that is short of room leaves it out."""

    text: str
    style: str = ""


@dataclass(frozen=True)
class Code:
    """A name or a value from the profile."""

    text: str
    style: str = ""


@dataclass(frozen=True)
class Prose:
    """One line of Markdown from a rule."""

    text: str


@dataclass(frozen=True)
class Link:
    """A link to a block of the same document, by its id."""

    target: str
    content: Line
    style: str = ""


@dataclass(frozen=True)
class Web:
    """A link out of the document."""

    title: str
    url: str


@dataclass(frozen=True)
class Level:
    """How severe something is."""

    severity: Severity


@dataclass(frozen=True)
class Swatch:
    """The fill that a chart uses for a path of the ledger."""

    path: str


@dataclass(frozen=True)
class Below:
    """What is told of a cell in small letters."""

    content: Line


Piece = Words | Code | Prose | Link | Web | Level | Swatch | Below
Line = tuple[Piece, ...]


def line(*parts: Piece | str | None) -> Line:
    """A line of pieces and plain texts; what is empty is left out."""
    return tuple(Words(part) if isinstance(part, str) else part for part in parts if part)


# --- blocks


@dataclass(frozen=True)
class Paragraph:
    content: Line
    style: str = ""


@dataclass(frozen=True)
class Callout:
    """Something that the reader must not miss."""

    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class RuleText:
    """Paragraphs, lists and code of a rule, in Markdown."""

    text: str


@dataclass(frozen=True)
class Items:
    """A list."""

    items: tuple[Line, ...]
    style: str = ""


@dataclass(frozen=True)
class Pairs:
    """Names and values; ``title`` says of what."""

    pairs: tuple[tuple[Line, Line], ...]
    title: str = ""
    style: str = ""


@dataclass(frozen=True)
class Column:
    """``group``: a heading that neighbouring columns share. ``style``: ``short`` stays on one line, ``long`` breaks."""

    title: str
    numeric: bool = False
    group: str = ""
    style: str = ""


@dataclass(frozen=True)
class Row:
    """``depth``: of a row of a tree. ``id``: what a link to it names. ``total``: the row that sums up the others."""

    cells: tuple[Line, ...]
    depth: int | None = None
    id: str = ""
    total: bool = False


@dataclass(frozen=True)
class Table:
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    style: str = ""


@dataclass(frozen=True)
class CodeLines:
    """Lines of code, as in a call stack."""

    lines: tuple[str, ...]


@dataclass(frozen=True)
class Exhibit:
    """A piece of evidence: its caption, where it is from, and what is shown of it."""

    title: str
    about: str
    block: Table | CodeLines | None


@dataclass(frozen=True)
class LedgerBars:
    """The ledgers of several ranks, roles or phases side by side, by name."""

    ledgers: tuple[Ledger, ...]
    names: tuple[str, ...]


@dataclass(frozen=True)
class Figure:
    """A drawing: each format draws the data as it can, or writes it down."""

    data: View | LedgerBars
    title: str = ""


@dataclass(frozen=True)
class Definitions:
    """Terms, and what there is to say about each."""

    entries: tuple[tuple[str, tuple[Block, ...]], ...]
    style: str = ""


@dataclass(frozen=True)
class Details:
    """Blocks that can be folded away. ``extra``: what stands elsewhere in other words, or what few readers want; a
    format that is short of room leaves it out. ``mark``: of the state that it is about."""

    summary: Line
    blocks: tuple[Block, ...]
    open: bool = False
    extra: bool = False
    mark: str = ""


@dataclass(frozen=True)
class Columns:
    """Blocks side by side."""

    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Stake:
    """The time of a problem in words; ``why_none`` instead of all else where there is none."""

    time: str = ""
    share: str = ""
    basis: str = ""
    why_none: str = ""


@dataclass(frozen=True)
class Headline:
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


@dataclass(frozen=True)
class Headlines:
    items: tuple[Headline, ...]


@dataclass(frozen=True)
class Step:
    """One thing to do: what kind of change, the settings, the text, and what to mind."""

    kind: str
    settings: tuple[Code, ...]
    text: str
    notes: tuple[tuple[str, Line], ...]


@dataclass(frozen=True)
class Steps:
    steps: tuple[Step, ...]
    withheld_title: str
    withheld: tuple[Line, ...]


@dataclass(frozen=True)
class Card:
    """A problem written out, with its causes below it."""

    id: str
    number: str
    title: str
    severity: Severity
    stake: Stake
    own: str
    facts: tuple[Line, ...]
    body: Definitions
    judged: Details
    causes: tuple[Card, ...]


@dataclass(frozen=True)
class Section:
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


@dataclass(frozen=True)
class Entry:
    """An entry of the table of contents."""

    target: str
    content: Line
    below: tuple[Entry, ...] = ()


@dataclass(frozen=True)
class Document:
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
