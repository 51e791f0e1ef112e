"""Ledgers as bars of characters, for what cannot draw."""

from __future__ import annotations

from reports.blocks import LedgerBars
from reports.labels import Labels

BAR = 40
FILLS = {"compute": "█", "communication": "▒", "idle": "·"}


def text_bars(bars: LedgerBars, labels: Labels) -> list[str]:
    """One bar for each ledger, to a common scale, with its parts written out."""
    top = max((ledger.wall_ns for ledger in bars.ledgers), default=0)
    widest = max((len(name) for name in bars.names), default=0)
    lines = []
    for ledger, name in zip(bars.ledgers, bars.names, strict=True):
        bar, filled, done = "", 0, 0
        for node in ledger.roots:
            done += node.ns
            end = round(BAR * done / top) if top else 0
            bar += FILLS.get(node.path, "?") * (end - filled)
            filled = end
        parts = [
            f"{FILLS.get(node.path, '?')} {labels.path(node.path)} {labels.time(node.ns)}" for node in ledger.roots
        ]
        lines.append(f"{name:<{widest}}  {bar:<{BAR}}  {'  '.join(parts)}")
    return lines
