"""The bookings of a rank with what only the comparison of ranks tells."""

from __future__ import annotations

import pandas as pd

from advisor_core.contracts.facts import Facts, fact
from advisor_core.facts.communication.cross_rank_waits import CROSS_RANK_WAITS
from advisor_core.facts.ledger.bookings import FRAMES, Bookings, recorded_bookings

_UNKNOWN = "communication/unknown"


@fact("bookings", needs=(recorded_bookings, CROSS_RANK_WAITS), frames=FRAMES)
def bookings(facts: Facts) -> Bookings:
    """Every piece of profiled time under one leaf of the ledger; the comparison of ranks divides what of a collective
    the rank alone cannot tell."""
    recorded = facts[recorded_bookings]
    return Bookings(divided(recorded.pieces, facts[CROSS_RANK_WAITS]), recorded.gaps)


def divided(pieces: pd.DataFrame, waits: pd.DataFrame) -> pd.DataFrame:
    """``pieces`` of `Bookings` in which ``communication/unknown`` of the compared collectives is waiting for the last
    rank, for as long as that took, and then transfer. Waiting in a send or receive is that of the pipeline, as where
    planes tell it. No time is added or lost."""
    unknown = pieces[(pieces["path"] == _UNKNOWN) & pieces["collective"].isin(waits["work"]) & ~pieces["overlapped"]]
    if unknown.empty:
        return pieces
    compared = waits.set_index("work").loc[unknown["collective"]]
    lengths = unknown["end_ns"] - unknown["start_ns"]
    before = lengths.groupby(unknown["collective"]).cumsum() - lengths
    left = (compared["waited_ns"].to_numpy() - before).clip(lower=0)
    arrival = unknown["start_ns"] + left.where(left < lengths, lengths)
    for_rank = "communication/wait/rank " + compared["last_rank"].astype(str)
    paths = for_rank.where(~compared["pair"], "communication/wait/pipeline").to_numpy(dtype=object)
    waiting = unknown.assign(end_ns=arrival, path=paths)
    moving = unknown.assign(start_ns=arrival, path="communication/transmit")
    parts = [frame[frame["end_ns"] > frame["start_ns"]] for frame in (waiting, moving)]
    rest = pieces.drop(index=unknown.index)
    whole = pd.concat([rest.assign(path=rest["path"].astype(object)), *parts]).sort_values(
        "start_ns", ignore_index=True
    )
    return whole.assign(path=whole["path"].astype("category"))
