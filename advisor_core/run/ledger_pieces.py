"""The largest pieces of each ledger entry, with their rows in the input files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from advisor_core.contracts.tables import Table
from advisor_core.facts.host.activity import HostActivity
from advisor_core.facts.host.launches import Launches
from advisor_core.facts.ledger.bookings import Bookings
from advisor_core.nesting import enclosing_of
from advisor_core.text.base import Scalar

PIECES = 3
"""Pieces of a leaf that are listed at most."""

LEAST_SHARE = 0.005
"""Leaves below this share of the step are not worth a look."""


class Derivations:
    """Finds what a piece of time is about. Wants the facts ``launches`` and ``host_activity`` where they exist."""

    def __init__(
        self,
        booked: Bookings,
        device: pd.DataFrame,
        tables: Mapping[str, Table],
        launched: Launches | None,
        host: HostActivity | None,
    ) -> None:
        self._pieces = booked.pieces
        self._gaps = booked.gaps
        self._device = device
        self._tables = tables
        self._launched = launched
        self._host = host

    def of_step(self, step: int, wall_ns: int) -> dict[str, list[dict[str, Scalar]]]:
        """Ledger path to its largest pieces in step ``step`` (row of the fact ``steps``)."""
        pieces = self._pieces[self._pieces["step"] == step]
        lengths = (pieces["end_ns"] - pieces["start_ns"]).rename("ns")
        totals = lengths.groupby(pieces["path"], observed=True).sum()
        worth = totals.index[totals >= LEAST_SHARE * wall_ns]
        chosen = pieces.join(lengths)[pieces["path"].isin(worth)].sort_values("ns", ascending=False, kind="stable")
        largest = chosen.groupby("path", observed=True).head(PIECES)
        told: dict[str, list[dict[str, Scalar]]] = {}
        for piece, busy in zip(largest.itertuples(), self._busy_with(largest), strict=True):
            told.setdefault(str(piece.path), []).append(self._described(piece, busy))
        return told

    def _busy_with(self, pieces: pd.DataFrame) -> list[int]:
        """For each piece the row of the host event in its middle, on the first thread that was in one; -1 for none."""
        if self._launched is None or self._host is None or "host_events" not in self._tables:
            return [-1] * len(pieces)
        threads = np.array([-1, *sorted(self._host.launchers | self._host.feeders)], dtype=np.int64)
        middles = (pieces["start_ns"] + pieces["ns"] // 2 + self._launched.skew_ns).to_numpy()
        events = self._tables["host_events"].frame
        found = enclosing_of(events, np.tile(threads, len(pieces)), np.repeat(middles, len(threads)))
        found = found.reshape(len(pieces), len(threads))
        found[:, 0] = -1  # a thread that there is not: what is picked where no other was busy
        first = (found >= 0).argmax(axis=1)
        return [int(row) for row in found[np.arange(len(pieces)), first]]

    def _described(self, piece: Any, busy: int) -> dict[str, Scalar]:
        row: dict[str, Scalar] = {"start_ns": int(piece.start_ns), "ns": int(piece.ns)}
        if piece.gap >= 0:
            self._gap(row, piece, busy)
        elif piece.collective >= 0 and not str(piece.path).startswith("compute"):
            row |= self._work("collective", int(piece.collective))
            if piece.wait >= 0:
                row |= self._position("wait", "communication_tasks", int(piece.wait))
        else:
            starts = self._device["start_ns"].to_numpy()
            running = int(np.searchsorted(starts, piece.start_ns, side="right")) - 1
            row |= self._work("kernel", max(running, 0))
        return row

    def _gap(self, row: dict[str, Scalar], piece: Any, busy: int) -> None:
        gap = int(piece.gap)
        start, end, following = (int(self._gaps[name].to_numpy()[gap]) for name in ("start_ns", "end_ns", "next"))
        row |= {"gap_start_ns": start, "gap_end_ns": end}
        if following < 0:
            return
        row |= self._work("ended_by", following)
        if self._launched is None:
            return
        for word, name in (("launch", "call_row"), ("operator", "op_row")):
            link = int(self._launched.frame[name].to_numpy()[following])
            if link >= 0:
                row |= self._position(word, "host_events", link)
        if busy >= 0:
            row |= self._position("host", "host_events", busy)

    def _work(self, word: str, number: int) -> dict[str, Scalar]:
        table, row = (self._device[name].array[number] for name in ("table", "row"))
        return self._position(word, str(table), int(row))

    def _position(self, word: str, table: str, row: int) -> dict[str, Scalar]:
        read = self._tables[table]
        rows = np.array([row], dtype=np.int64)
        told: dict[str, Scalar] = {word: str(read.frame["name"].array[row]), f"{word}_file": read.source.file}
        if read.source.position == "rowid":
            told[f"{word}_table"] = read.tables(rows)[0]
        return told | {f"{word}_{read.source.position}": int(read.positions(rows)[0])}
