"""Where the entries of the ledger come from: the largest pieces of each leaf, with what they point at in the files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from advisor_core.facts.bookings import Bookings
from advisor_core.facts.host_activity import HostActivity
from advisor_core.facts.launches import Launches
from advisor_core.facts.nesting import enclosing_of
from advisor_core.models.base import Scalar
from advisor_core.tables import Table

PIECES = 3
"""How many pieces of a leaf are told."""

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
        for piece in largest.itertuples():
            told.setdefault(str(piece.path), []).append(self._tell(piece))
        return told

    def _tell(self, piece: Any) -> dict[str, Scalar]:
        row: dict[str, Scalar] = {"start_ns": int(piece.start_ns), "ns": int(piece.ns)}
        if piece.gap >= 0:
            self._gap(row, piece)
        elif piece.collective >= 0 and not str(piece.path).startswith("compute"):
            row |= self._work("collective", int(piece.collective))
            if piece.wait >= 0:
                row |= self._position("wait", "communication_tasks", int(piece.wait))
        else:
            starts = self._device["start_ns"].to_numpy()
            running = int(np.searchsorted(starts, piece.start_ns, side="right")) - 1
            row |= self._work("kernel", max(running, 0))
        return row

    def _gap(self, row: dict[str, Scalar], piece: Any) -> None:
        gap = self._gaps.iloc[int(piece.gap)]
        row |= {"gap_start_ns": int(gap["start_ns"]), "gap_end_ns": int(gap["end_ns"])}
        following = int(gap["next"])
        if following < 0:
            return
        row |= self._work("ended_by", following)
        if self._launched is None:
            return
        link = self._launched.frame.iloc[following]
        for name in ("cann_row", "op_row"):
            if link[name] >= 0:
                row |= self._position(
                    {"cann_row": "launch", "op_row": "operator"}[name], "host_events", int(link[name])
                )
        if self._host is None or "host_events" not in self._tables:
            return
        events = self._tables["host_events"].frame
        threads = np.array(sorted(self._host.launchers | self._host.feeders), dtype=np.int64)
        middle = np.full(len(threads), int(piece.start_ns) + int(piece.ns) // 2 + self._launched.skew_ns)
        busy = [int(found) for found in enclosing_of(events, threads, middle) if found >= 0]
        if busy:
            row |= self._position("host", "host_events", busy[0])

    def _work(self, word: str, number: int) -> dict[str, Scalar]:
        item = self._device.iloc[number]
        table = (
            "kernels"
            if "kernels" in self._tables
            else ("communication_tasks" if item["communication"] else "device_tasks")
        )
        return self._position(word, table, int(item["row"]))

    def _position(self, word: str, table: str, row: int) -> dict[str, Scalar]:
        source = self._tables[table]
        place = int(source.positions(np.array([row], dtype=np.int64))[0])
        return {word: str(source.frame["name"].iloc[row]), f"{word}_{source.source.position}": place}
