"""Views: the data that a report draws, typed by the kind of drawing. Renderers choose which of them they show."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, FiniteFloat, model_validator

from advisor_core.text.base import Model, Text

Number = int | FiniteFloat
Purpose = Literal[
    "step", "first_looks", "phases", "operators", "layers", "memory", "memory_peak", "ledger", "settings", "other"
]


class _View(Model):
    id: str
    purpose: Purpose = Field(
        "other",
        description="what it is for: a step of a rank over time, what to look at first in it, the phases of all ranks "
        "over time, operator types by time, layers of the model by time, memory over time, what was alive at its peak, "
        "the ledgers of many ranks, or environment variables and what they mean for the job",
    )
    title: Text
    unit: str
    rank: int | None = None
    role: str | None = None


class BarRow(Model):
    """One bar. ``label``: a name from the profile, or a text of the report."""

    label: str | Text
    value: Number
    note: str = ""


class Bars(Model):
    rows: list[BarRow]


class BarsView(_View):
    """Values side by side."""

    kind: Literal["bars"] = "bars"
    data: Bars


class StackPart(Model):
    key: str
    value: Number


class StackRow(Model):
    label: str
    parts: list[StackPart]


class StackedBars(Model):
    rows: list[StackRow]


class StackedBarsView(_View):
    """Values side by side, each divided into parts."""

    kind: Literal["stacked_bar"] = "stacked_bar"
    data: StackedBars


class Lane(Model):
    """``intervals``: start, end and key of each. ``heading``: what the lane is called where ``label`` is no name
    from the profile."""

    label: str
    heading: Text | None = None
    intervals: list[tuple[int, int, str]]


class StretchMark(Model):
    """A stretch of a strip that is pointed out; ``path``: the ledger entry that it is booked under."""

    start: int
    end: int
    label: Text
    path: str | None = None


class Strip(Model):
    """Times are ns from ``start``, which is ``origin_ns`` in the profile."""

    start: int
    end: int
    origin_ns: int | None = None
    lanes: list[Lane]
    marks: list[StretchMark] = Field(default_factory=list)


class StripView(_View):
    """Lanes over time."""

    kind: Literal["strip"] = "strip"
    data: Strip


class Heatmap(Model):
    """``values``: a line for each row, with a value for each column; ``None``: not measured. ``rows`` and ``columns``:
    names from the profile, or texts of the report. ``total``: the column that has the whole of each row, where the rows
    divide a whole. ``depths``: how many rows above each contain it, 0 for all where empty."""

    rows: list[str | Text]
    columns: list[str | Text]
    values: list[list[Number | None]]
    total: int | None = Field(None, ge=0)
    depths: list[int] = Field(default_factory=list)

    @model_validator(mode="after")
    def _is_a_rectangle(self) -> Self:
        if self.total is not None and self.total >= len(self.columns):
            raise ValueError("the whole of a row is one of its columns")
        if self.depths and len(self.depths) != len(self.rows):
            raise ValueError("each row has a depth, or none has")
        if len(self.values) != len(self.rows) or any(len(line) != len(self.columns) for line in self.values):
            raise ValueError("a heatmap needs a value for each row and column")
        return self


class HeatmapView(_View):
    """A value for each pair of a row and a column."""

    kind: Literal["heatmap"] = "heatmap"
    data: Heatmap


class Series(Model):
    key: str
    label: Text
    values: list[Number] = Field(min_length=1)


class MomentMark(Model):
    """A moment of a curve that is pointed out."""

    start: int
    label: Text


class Curve(Model):
    """Times are ns from ``start``, which is ``origin_ns`` in the profile. A value holds until the next time; series
    from the back to the front, each with a value for each time."""

    start: int
    end: int
    origin_ns: int | None = None
    times: list[int]
    series: list[Series]
    marks: list[MomentMark] = Field(default_factory=list)

    @model_validator(mode="after")
    def _has_all_values(self) -> Self:
        if any(len(series.values) != len(self.times) for series in self.series):
            raise ValueError("a curve needs a value of each series for each time")
        return self


class CurveView(_View):
    """Values over time."""

    kind: Literal["curve"] = "curve"
    data: Curve


FrameKind = Literal[
    "thread", "python", "module", "operator", "mark", "runtime", "kernel", "unknown", "earlier", "left_out"
]
"""The kind of a frame: a thread by its number, a Python function, a call of a module, an operator of the framework, a
mark of the user or an engine, a call of the runtime, what ran on the device; ``unknown``: it is not recorded what
launched that, ``earlier``: memory that is older than the recording or not recorded, ``left_out``: calls that there was
no room for."""


class Flame(Model):
    """Time by call stack: ``of`` the host without what threads wait unrecorded, or of the device; or memory at its
    peak. ``nodes``: of each the place of its caller before it (-1: none), its number in ``frames`` (name and kind), and
    its time with that of all it calls, ns of all steps; of memory bytes."""

    of: Literal["host", "device", "memory"]
    frames: list[tuple[str, FrameKind]]
    nodes: list[tuple[int, int, int]]

    @model_validator(mode="after")
    def _is_a_tree(self) -> Self:
        left = [took for _, _, took in self.nodes]
        for place, (caller, frame, took) in enumerate(self.nodes):
            if not -1 <= caller < place or not 0 <= frame < len(self.frames):
                raise ValueError("a node stands behind its caller and has one of the frames")
            if caller >= 0:
                left[caller] -= took
        if any(took < 0 for took in left):
            raise ValueError("a caller takes at least as long as what it calls")
        return self


class FlameView(_View):
    """Time or memory by call stack, what is called below its caller."""

    kind: Literal["flame"] = "flame"
    data: Flame


class TableColumn(Model):
    """``unit``: of the numbers in it, '' for counts and texts."""

    label: Text
    unit: str = ""


Cell = str | Number | Text | None
"""A name or value from the profile, a number in the unit of its column, a text of the report, or what is not known."""


class Grid(Model):
    """``entries``: where the last column names problems, the entries of the ledger that each row is about; the
    composition of the result fills that column."""

    columns: list[TableColumn] = Field(min_length=1)
    rows: list[list[Cell]]
    entries: list[list[str]] = Field(default_factory=list)

    @model_validator(mode="after")
    def _is_a_rectangle(self) -> Self:
        if any(len(row) != len(self.columns) for row in self.rows):
            raise ValueError("a table needs a cell for each column of each row")
        if self.entries and len(self.entries) != len(self.rows):
            raise ValueError("each row has entries of the ledger, or none has")
        return self


class TableView(_View):
    """Rows of names, numbers and texts: what is written and not drawn."""

    kind: Literal["table"] = "table"
    unit: str = ""
    data: Grid


Drawn = BarsView | StackedBarsView | StripView | HeatmapView | CurveView | FlameView
View = Annotated[Drawn | TableView, Field(discriminator="kind")]
