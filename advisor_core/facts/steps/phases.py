"""Phases of an iteration of reinforcement learning: rollout, log-probabilities, reward, update.

Where a role was profiled by itself, all of its profile is one phase. Where one profile holds the whole iteration, the
framework marks the phases with MSTX ranges (a range of the profiler around user code serves as well). A mark lies on
the host: it is brought to the clock of the device, and divides the time of the device as it stands, so that work which
was launched within a mark and still runs after it is booked to what follows. The frameworks wait for their results at
the end of a phase, which keeps that small. Where marks nest or overlap the one that began first keeps the time.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from advisor_core.contracts.columns import Column
from advisor_core.contracts.facts import Facts, fact
from advisor_core.contracts.missing import NotApplicable
from advisor_core.contracts.profile import PROFILE, Profile
from advisor_core.contracts.tables import HOST_EVENTS
from advisor_core.facts.grouping import aggregated
from advisor_core.facts.host.launches import ahead_ns, launches
from advisor_core.facts.intervals import NOTHING, Layer, cut, earliest_start_wins
from advisor_core.facts.ledger.bookings import Bookings
from advisor_core.facts.ledger.settled import bookings
from advisor_core.facts.steps.steps import steps
from advisor_core.text.base import Text
from advisor_core.text.messages import message
from advisor_core.vocabulary.vocabulary import Vocabulary

_MARKS = ("mstx", "user_annotation")
_NAMED = 5
"""Marks that are named at most, where none of them is known."""


SPANS = (
    Column("step", "int", "", "row of steps"),
    Column("phase", "text", "", "phase as it is marked"),
    Column("kind", "text", "", "the known phase that it stands for, '' none"),
    Column("start_ns", "int", "ns", "start, clock of the device"),
    Column("end_ns", "int", "ns", "end, clock of the device"),
)


@fact("phases", needs=(PROFILE, steps), wants=(HOST_EVENTS, launches), shared=True, columns=SPANS)
def phases(facts: Facts) -> pd.DataFrame:
    """One row per stretch of a phase within a step; disjoint, in order of time.

    Not applicable where the profile is not of a role and no mark names a phase.
    """
    profile = facts[PROFILE]
    windows = facts[steps]
    whole = profile.role and profile.vocabulary.phase_of(profile.role, profile.phase_marks)
    if whole:
        return _whole(windows, profile.role, whole)
    marked = _marked(facts, profile, windows)
    if marked is not None:
        return marked
    if profile.role:
        return _whole(windows, profile.role, "")
    raise NotApplicable(_nothing_known(facts.get(HOST_EVENTS), profile.vocabulary))


LEDGER = (
    Column("step", "int", "", "row of steps"),
    Column("phase", "text", "", "phase, '' outside all"),
    Column("path", "text", "", "leaf of the ledger"),
    Column("ns", "int", "ns", "time that is booked there"),
)


@fact("phase_ledger", needs=(phases, steps, bookings), shared=True, columns=LEDGER)
def phase_ledger(facts: Facts) -> pd.DataFrame:
    """One row per step, phase and leaf; the phases of a step add up to its entries of the fact ``ledger``."""
    return booked_in(facts[phases], ["phase"], facts[bookings], facts[steps])


def booked_in(spans: pd.DataFrame, names: Sequence[str], booked: Bookings, windows: pd.DataFrame) -> pd.DataFrame:
    """The time that is booked in each span: one row per step, texts of the columns ``names`` ('' outside all spans) and
    leaf of the ledger. ``spans``: disjoint; ``windows``: the steps."""
    pieces = booked.pieces[booked.pieces["step"] >= 0]
    layers = [Layer.of(pieces), Layer.of(spans)]
    parts = cut(int(windows["start_ns"].min()), int(windows["end_ns"].max()), layers)
    inside = parts.ids[0] != NOTHING
    piece, span = (ids[inside] for ids in parts.ids)
    # NOTHING, -1, is the last
    texts = {name: np.append(spans[name].astype(str).to_numpy(dtype=object), "") for name in names}
    frame = pd.DataFrame(
        {
            "step": pieces["step"].to_numpy()[piece],
            **{name: pd.Categorical(values[span]) for name, values in texts.items()},
            "path": pd.Categorical.from_codes(
                pieces["path"].array.codes[piece], categories=pieces["path"].array.categories
            ),
            "ns": parts.lengths[inside],
        }
    )
    sums: pd.DataFrame = aggregated(frame, ["step", *names, "path"], ns=("ns", "sum"))
    sums = sums.assign(**{name: sums[name].astype(str) for name in (*names, "path")})
    return sums.sort_values(["step", *names, "path"], ignore_index=True)


def _whole(windows: pd.DataFrame, phase: str, kind: str) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "step": np.arange(len(windows)),
            "phase": phase,
            "kind": kind,
            "start_ns": windows["start_ns"].to_numpy(),
            "end_ns": windows["end_ns"].to_numpy(),
        }
    )


def _marked(facts: Facts, profile: Profile, windows: pd.DataFrame) -> pd.DataFrame | None:
    """The phases by marks, ``None`` where no mark within the steps names one."""
    events = facts.get(HOST_EVENTS)
    if events is None:
        return None
    codes = events["name"].array.codes
    marks = events["category"].isin(_MARKS).to_numpy() & (events["duration_ns"].to_numpy() > 0)
    known = np.full(len(events["name"].array.categories), "", dtype=object)
    for code in np.unique(codes[marks]).tolist():  # names, of which there are few
        known[code] = profile.vocabulary.phase_of(str(events["name"].array.categories[code]), profile.phase_marks)
    rows = np.flatnonzero(marks & (known != "")[codes])
    launched = facts.get(launches)
    starts = events["start_ns"].to_numpy()[rows] - ahead_ns(launched)
    spans = earliest_start_wins(starts, starts + events["duration_ns"].to_numpy()[rows])
    first, last = int(windows["start_ns"].min()), int(windows["end_ns"].max())
    steps = Layer.of(windows)
    parts = cut(first, last, [steps, spans.clip(first, last)])
    inside = (parts.ids[0] != NOTHING) & (parts.ids[1] != NOTHING)
    if not inside.any():
        return None
    step, mark = (ids[inside] for ids in parts.ids)
    names = known[codes[rows[mark]]]
    found = pd.DataFrame(
        {
            "step": step,
            "phase": names,
            "kind": [name if name in profile.vocabulary.phases else "" for name in names.tolist()],
            "start_ns": parts.starts[inside],
            "end_ns": parts.ends[inside],
        }
    )
    return _joined(found)


def _joined(spans: pd.DataFrame) -> pd.DataFrame:
    """Stretches of one phase that touch, as one."""
    goes_on = (
        (spans["start_ns"] == spans["end_ns"].shift())
        & (spans["phase"] == spans["phase"].shift())
        & (spans["step"] == spans["step"].shift())
    )
    number = (~goes_on).cumsum()
    how = {"step": "first", "phase": "first", "kind": "first", "start_ns": "first", "end_ns": "last"}
    return spans.groupby(number.to_numpy()).agg(how).reset_index(drop=True)


def _nothing_known(events: pd.DataFrame | None, words: Vocabulary) -> Text:
    """The reason why there are no phases, with the marks that may name some which are not known."""
    if events is not None:
        marks = events.loc[events["category"].isin(_MARKS), "name"].astype(str).drop_duplicates()
        named = [name for name in marks.tolist() if not words.step_mark.search(name) and not words.phase_of(name)]
        if named:
            return message("phases.none_known", count=len(named), names=", ".join(named[:_NAMED]))
    return message("phases.none")
