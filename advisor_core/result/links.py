"""The links of a job: how fast data moved between its ranks."""

from __future__ import annotations

from pydantic import Field

from advisor_core.text.base import Model


class Link(Model):
    """The data that a rank sent to another one through one communication group, as the file of the sender tells.
    ``source`` and ``target``: ranks of the job. ``bytes``: per step; ``bandwidth`` in B/s, ``median_bandwidth`` of the
    other links of the sender that are of this transport and group, ``None`` without any; ``lost_ns``: of moving, per
    step, more than at that median."""

    source: int
    target: int
    transport: str
    group: str
    bytes: int
    bandwidth: float
    median_bandwidth: float | None
    lost_ns: int
    findings: list[str] = Field(default_factory=list, description="fingerprints of the findings that it is slow")


class LinkCell(Model):
    """A cell of the matrix. ``source`` and ``target``: the first ranks of its row and column. ``bandwidth``: bytes
    over the time of moving, of all ``links`` in it together."""

    source: int
    target: int
    bandwidth: float
    links: int
    findings: list[str] = Field(default_factory=list, description="as of `Link`, of all links in it")


class TransportLinks(Model):
    """The links of one transport: least, median and highest bandwidth in B/s."""

    transport: str
    links: int
    least: float
    median: float
    most: float


class LinkMatrix(Model):
    """Bandwidth between the ranks of a job. ``ranks_per_cell``: 1, or how many neighbouring ranks share a row and a
    column. ``rows``: the first rank of each row and column, in order. ``links``: those of findings, then the others,
    each by the time that they lose; ``recorded``: how many there are. ``unplaced``: links that stand in no cell, as the
    ranks of their group are not recorded; ``assumed``: that stand where the number of a place in such a group says,
    which is the rank of all senders that were recorded."""

    role: str | None = None
    ranks_per_cell: int
    rows: list[int]
    cells: list[LinkCell]
    transports: list[TransportLinks]
    links: list[Link]
    recorded: int
    unplaced: int = 0
    assumed: int = 0
