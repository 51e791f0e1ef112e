"""The steps of a rank and their ledger, as the result holds them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import pandas as pd

from advisor_core.contracts.missing import Missing
from advisor_core.contracts.profile import Profile
from advisor_core.contracts.tables import STEP_TRACE
from advisor_core.facts.device.work import work
from advisor_core.facts.host.activity import host_activity
from advisor_core.facts.host.host_steps import host_steps
from advisor_core.facts.host.launches import launches
from advisor_core.facts.ledger.settled import bookings
from advisor_core.facts.ledger.totals import ledger
from advisor_core.facts.steps.kernel_list import kernel_list
from advisor_core.facts.steps.rank_summary import EXPORTER, rank_summary
from advisor_core.facts.steps.steps import steps
from advisor_core.facts.store import FactStore
from advisor_core.result.run import COVERED, Diagnostic, LedgerEntry, LedgerStep, LedgerWindow, StepInfo
from advisor_core.run.beyond_kernels import bounded
from advisor_core.run.ledger_pieces import Derivations
from advisor_core.run.step_mark import marked
from advisor_core.run.why_unknown import why_unknown
from advisor_core.text.base import Scalar, Text
from advisor_core.text.messages import message

Why = tuple[Text | None, Text | None]
"""Reason and remedy of an entry without a cause."""


def ledger_steps(store: FactStore, profile: Profile) -> tuple[list[StepInfo], list[LedgerStep]]:
    """The steps and their ledgers; none, and a diagnostic, where the ledger is not known."""
    found, summary = store.find(ledger), store.find(rank_summary)
    if isinstance(found, Missing) or isinstance(summary, Missing):
        missing = next(each for each in (summary, found) if isinstance(each, Missing))
        if missing.kind != "failed":  # which has been said
            # a recording of the host alone is read as far as it goes; else the input is as good as unread
            severity: Literal["error", "warning"] = "warning" if host_steps in store else "error"
            source = f"rank {profile.rank}"
            store.diagnostics.append(Diagnostic(severity=severity, source=source, message=missing.reason))
        return [], []
    paths = found["path"].unique().tolist()
    edges = np.searchsorted(found["step"].to_numpy(), np.arange(len(summary) + 1))  # its rows are in order of steps
    own = [found.iloc[first:end] for first, end in pairwise(edges.tolist())]
    ids = [step if step >= 0 else None for step in summary["step"].tolist()]
    walls: list[int] = summary["wall_ns"].tolist()
    slowest = int(np.argmax(walls))
    if (summary["source"] == EXPORTER).all():
        why = dict.fromkeys(paths, _summed_up(profile))
        infos = [StepInfo(rank=profile.rank, step=step, start_ns=None, end_ns=None) for step in ids]
        pieces: Mapping[str, list[dict[str, Scalar]]] = {}
    else:
        why = {path: why_unknown(path, store) for path in paths}
        bounds = store[steps][["start_ns", "end_ns"]].itertuples(index=False, name=None)
        infos = [
            StepInfo(rank=profile.rank, step=step, start_ns=start, end_ns=end)
            for step, (start, end) in zip(ids, bounds, strict=True)
        ]
        if len(infos) == 1:
            infos = [bounded(marked(infos[0], store, profile), store, profile)]
        pieces = _derivations(store, profile).of_step(slowest, walls[slowest])
    booked = [
        LedgerStep(
            rank=profile.rank, step=step, wall_ns=wall, entries=_entries(own[n], why, pieces if n == slowest else {})
        )
        for n, (step, wall) in enumerate(zip(ids, walls, strict=True))
    ]
    return infos, booked


def window_of(store: FactStore, steps: Sequence[StepInfo]) -> LedgerWindow:
    """The stretch of time that the ledgers of a rank divide."""
    launched = store.get(kernel_list)
    if launched is not None:
        return "call" if launched.why == "benchmark" else "stretch"
    return "recording" if steps and all(each.step is None for each in steps) else "step"


def _entries(leaves: pd.DataFrame, why: Mapping[str, Why], pieces: Mapping[str, Sequence[Any]]) -> list[LedgerEntry]:
    return [
        LedgerEntry(
            path=path,
            ns=ns,
            reason=why[path][0],
            collect=why[path][1],
            detail={COVERED: overlapped} if overlapped else {},
            pieces=list(pieces.get(path, ())),
        )
        for path, ns, overlapped in leaves[["path", "ns", "overlapped_ns"]].itertuples(index=False, name=None)
    ]


def _summed_up(profile: Profile) -> Why:
    """The reason why the parts of a step that the exporter summed up have no causes."""
    file = profile.tables[STEP_TRACE.name].source.file
    return message("ledger.exporter", file=file), message("doubt.collect")


def _derivations(store: FactStore, profile: Profile) -> Derivations:
    return Derivations(store[bookings], store[work], profile.tables, store.get(launches), store.get(host_activity))
