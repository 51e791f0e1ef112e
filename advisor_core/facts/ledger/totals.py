"""The ledger: every nanosecond of a step booked once, under its cause.

For each step of a rank the leaves of a tree, which add up to the step's wall time to the nanosecond. How a moment
finds its leaf is told in `bookings`; this module only adds up. Paths:

``compute/<class>``               the device computes; detail ``overlapped_communication_ns`` is the communication that
                                  ran at the same time and cost nothing
``communication/transmit``        a collective moves data and nothing computes
``communication/wait/rank N``     it waits for rank N; ``wait/pipeline``: in a send or receive
``communication/launch``          it has begun and its next task has not
``idle/host/<activity>``          the next task was launched late; what the host was doing meanwhile
``idle/sync``                     a synchronising call had drained the queue, which then had to be filled again
``idle/copy``, ``idle/dependency``, ``idle/task_switch``, ``idle/launch_latency``   launched, but not yet running
``idle/step_boundary``            between two recorded steps of the framework
``.../unknown``                   what the data at hand cannot tell

Where the device tasks are withheld because other files contradict them, but the exporter's summary tells the parts of
the step, these are the ledger: ``compute/unknown``, ``communication/unknown`` and ``idle/unknown``. Of a stage of a
pipeline that summary also has the time in receives, the ``Bubble``: it is ``communication/wait/pipeline``, with the
little of it in which data moves.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from advisor_core.contracts.columns import Column
from advisor_core.contracts.facts import Facts, fact
from advisor_core.facts.grouping import aggregated
from advisor_core.facts.ledger.settled import bookings
from advisor_core.facts.steps.rank_summary import EXPORTER, rank_summary
from advisor_core.facts.steps.steps import steps

COLUMNS = (
    Column("step", "int", "", "row of steps"),
    Column("path", "text", "", "leaf of the ledger"),
    Column("ns", "int", "ns", "time of the step that is booked there"),
    Column("overlapped_ns", "int", "ns", "of it: communication runs under computing"),
)


@fact("ledger", needs=(rank_summary,), wants=(steps, bookings), shared=True, columns=COLUMNS)
def ledger(facts: Facts) -> pd.DataFrame:
    """One row per step and leaf; the leaves of a step add up to its wall time."""
    summary = facts[rank_summary]
    if (summary["source"] == EXPORTER).all():
        return _parts(summary)
    pieces = facts[bookings].pieces
    ns = pieces["end_ns"].to_numpy() - pieces["start_ns"].to_numpy()
    lengths = pd.DataFrame(
        {
            "step": pieces["step"],
            "path": pieces["path"],
            "ns": ns,
            "overlapped_ns": np.where(pieces["overlapped"].to_numpy(dtype=np.bool_), ns, 0),
        }
    )
    counted = (lengths["step"] >= 0).to_numpy()  # not between the launches of a recording that is no loop
    lengths = lengths if counted.all() else lengths[counted]
    totals = aggregated(lengths, ["step", "path"], ns=("ns", "sum"), overlapped_ns=("overlapped_ns", "sum"))
    totals["path"] = totals["path"].astype(str)
    totals = pd.DataFrame(totals.sort_values(["step", "path"], ignore_index=True))
    walls = (facts[steps]["end_ns"] - facts[steps]["start_ns"]).to_numpy()
    booked = np.zeros(len(walls), dtype=np.int64)
    np.add.at(booked, totals["step"].to_numpy(), totals["ns"].to_numpy())
    if not (booked == walls).all():  # pragma: no cover - the pieces tile the window
        raise AssertionError(f"the ledger does not add up: {(walls - booked).tolist()} ns per step")
    return totals


def _parts(summary: pd.DataFrame) -> pd.DataFrame:
    parts = {
        "communication/unknown": summary["uncovered_ns"] - summary["receiving_ns"],
        "communication/wait/pipeline": summary["receiving_ns"],
        "compute/unknown": summary["computing_ns"],
        "idle/unknown": summary["idle_ns"],
    }
    if not summary["receiving_ns"].any():
        del parts["communication/wait/pipeline"]
    times = np.column_stack([part.to_numpy() for part in parts.values()])
    covered = np.zeros_like(times)
    covered[:, list(parts).index("compute/unknown")] = summary["overlapped_ns"]
    return pd.DataFrame(
        {
            "step": np.repeat(np.arange(len(summary)), len(parts)),
            "path": [*parts] * len(summary),
            "ns": times.ravel(),
            "overlapped_ns": covered.ravel(),
        }
    )
