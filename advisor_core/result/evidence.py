"""Evidence of a finding: rows, intervals, metrics and settings, with file, row and time."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from advisor_core.text.base import Model, Scalar, Text


class Source(Model):
    """The place in a file where evidence was read. Exactly one of ``line``, ``offset`` and ``rowid`` names the first
    row shown.

    ``file`` is relative to the input path, so that a report does not carry the paths of the machine that wrote it.
    ``table``: the table of the database that the first row is in; for other files the canonical table it was read into.
    """

    file: str
    table: str
    line: int | None = Field(None, description="1-based line of a text file")
    offset: int | None = Field(None, description="0-based byte offset of a JSON object")
    rowid: int | None = Field(None, description="SQLite rowid")
    sha256: str | None = None


class Evidence(Model):
    """One piece of evidence.

    kind ``rows``: records of an input table; each row carries its own ``line``, ``offset`` or ``rowid``, and its
    ``table`` where they are in several tables of a database.
    kind ``interval``: a stretch of a lane, ``start_ns`` to ``end_ns``.
    kind ``metric``: numbers computed from the profile; ``rows`` holds one mapping of name to value.
    kind ``setting``: a recorded setting of the job or of the profiler.
    kind ``stack``: a call stack.
    """

    kind: Literal["rows", "interval", "metric", "setting", "stack"]
    title: Text
    source: Source | None = None
    units: dict[str, str] = Field(default_factory=dict, description="column name to unit")
    rows: list[dict[str, Scalar]] = Field(default_factory=list)
    total_rows: int | None = Field(None, description="how many rows there are when only the first are shown")
    rank: int | None = None
    start_ns: int | None = None
    end_ns: int | None = None
    lane: str | None = None
    place: str = Field("", description="of a call stack: the innermost frame of code that is no installed package")
