"""The lanes of a rank for a timeline: its ledger, its critical path and the kernels of its streams, within a budget."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from advisor_core.facts.communication.cross_rank_waits import CROSS_RANK_WAITS
from advisor_core.facts.device.work import work
from advisor_core.facts.ledger.settled import bookings
from advisor_core.facts.replay.critical_path import critical_path
from advisor_core.facts.steps.steps import steps
from advisor_core.facts.store import FactStore
from advisor_core.job.shown import by_interest
from advisor_core.result.timeline import RankTimeline, Track, Why, Window

SPANS = 50_000
"""Spans of all ranks together: about 7 MB as trace events of 130 bytes. Our choice: what any viewer opens at once."""

FOR_RANK = r"^communication/wait/rank (\d+)$"
"""The entry of the ledger for waiting for a rank."""

_PIPELINE = "communication/wait/pipeline"


@functools.cache
def _no_calls() -> pd.DataFrame:
    return pd.DataFrame({"work": pd.Series(dtype="int64"), "call": pd.Series(dtype="int64")})


@dataclass(frozen=True)
class Wanted:
    """What a timeline wants of a rank. ``ranks``: how many share the room. ``steps``: ids, those that are wanted most
    first; nothing: as this rank alone would have it. ``calls``: ``work`` (row of the fact) and ``call``, a number that
    is the same on all ranks, of what several ranks have."""

    ranks: int = 1
    why: Why = "all"
    steps: tuple[int, ...] = ()
    calls: pd.DataFrame = field(default_factory=_no_calls)


@dataclass(frozen=True)
class RankTimes:
    """What a rank gives to the timeline of the job. ``calls``: the calls that it has in common with others, and are
    shown: ``call``, ``stream``, ``start_ns``, ``end_ns``. ``waits``: what it waited for in them: ``call``,
    ``last_rank`` (-1: the other end of a send or receive), ``ns`` and, of its longest part, ``end_ns``."""

    timeline: RankTimeline
    calls: pd.DataFrame
    waits: pd.DataFrame


def step_walls(store: FactStore) -> dict[int, int]:
    """The length in ns of each step, by id; nothing where no step is known."""
    windows = store.get(steps)
    return {} if windows is None else _walls(windows)


def _walls(windows: pd.DataFrame) -> dict[int, int]:
    return dict(zip(windows["step"].tolist(), (windows["end_ns"] - windows["start_ns"]).tolist(), strict=True))


def rank_timeline(store: FactStore, rank: int, wanted: Wanted) -> RankTimes | None:
    """The lanes of a rank; ``None`` where no device task or no step is known."""
    windows, booked, device = store.get(steps), store.get(bookings), store.get(work)
    if windows is None or booked is None or device is None or not len(windows):
        return None
    room = SPANS // wanted.ranks
    path = store.get(critical_path)
    lanes = {"ledger": _merged(booked.pieces), **({} if path is None else {"critical_path": _merged(path)})}
    chosen = _chosen(windows, list(lanes.values()), device, wanted.steps, room)
    own = {kind: lane[lane["step"].isin(chosen)] for kind, lane in lanes.items()}
    kernels = _inside(device, windows.iloc[chosen])
    rooms = _rooms({**{kind: len(lane) for kind, lane in own.items()}, "stream": len(kernels)}, room)
    tracks = [_track(kind, lane["start_ns"], lane["end_ns"], lane["path"], rooms[kind]) for kind, lane in own.items()]
    tracks += _streams(kernels, rooms["stream"])
    timeline = RankTimeline(
        rank=rank,
        why=wanted.why,
        steps=[
            Window(step=step if step >= 0 else None, start_ns=start, end_ns=end)
            for step, start, end in zip(
                *(windows[name].iloc[chosen].tolist() for name in ("step", "start_ns", "end_ns")), strict=True
            )
        ],
        recorded_steps=len(windows),
        tracks=tracks,
    )
    inside = booked.pieces[booked.pieces["step"].isin(chosen)]
    return RankTimes(timeline, *_calls(wanted.calls, device, inside, store.get(CROSS_RANK_WAITS)))


def _chosen(
    windows: pd.DataFrame, lanes: Sequence[pd.DataFrame], device: pd.DataFrame, wanted: Sequence[int], room: int
) -> list[int]:
    """Rows of the steps that are shown, in order: as many of the wanted ones as there is room for, at least one."""
    ids = windows["step"].tolist()
    walls = _walls(windows)
    order = [ids.index(step) for step in wanted or by_interest({0: walls}) if step in walls]
    starts = np.sort(device["start_ns"].to_numpy())
    counts = np.searchsorted(starts, windows["end_ns"]) - np.searchsorted(starts, windows["start_ns"])
    for lane in lanes:
        counts = counts + np.bincount(lane["step"].clip(lower=-1) + 1, minlength=len(windows) + 1)[1:]
    chosen: list[int] = []
    for row in order:
        room -= int(counts[row])
        if chosen and room < 0:
            break
        chosen.append(row)
    return sorted(chosen)


def _rooms(wanted: Mapping[str, int], room: int) -> dict[str, int]:
    """What each kind of lane may take: the same, and what one does not need is for the others."""
    rooms = {}
    for left, (kind, count) in enumerate(sorted(wanted.items(), key=lambda item: item[1])):
        rooms[kind] = min(count, room // (len(wanted) - left))
        room -= rooms[kind]
    return rooms


def _merged(pieces: pd.DataFrame) -> pd.DataFrame:
    """``step``, ``start_ns``, ``end_ns`` and ``path``; neighbours that are alike are one."""
    pieces = pieces[["step", "start_ns", "end_ns", "path"]]
    if pieces.empty:
        return pieces
    paths = pieces["path"].cat.codes.to_numpy()
    starts, ends, step = (pieces[name].to_numpy() for name in ("start_ns", "end_ns", "step"))
    new = (paths[1:] != paths[:-1]) | (starts[1:] != ends[:-1]) | (step[1:] != step[:-1])
    first = np.flatnonzero(np.concatenate([[True], new]))
    last = np.append(first[1:], len(pieces)) - 1
    whole: pd.DataFrame = pieces.iloc[first].assign(end_ns=ends[last])
    return whole


def _inside(device: pd.DataFrame, windows: pd.DataFrame) -> pd.DataFrame:
    """The kernels and collectives that run in some of the windows."""
    starts, ends = device["start_ns"].to_numpy(), device["end_ns"].to_numpy()
    inside = np.zeros(len(device), dtype=np.bool_)
    for begin, finish in zip(windows["start_ns"].tolist(), windows["end_ns"].tolist(), strict=True):
        inside |= (starts < finish) & (ends > begin)
    found: pd.DataFrame = device[inside]
    return found


def _streams(device: pd.DataFrame, room: int) -> Iterator[Track]:
    """A lane for each stream; of more kernels than there is room for, the longest of all streams."""
    lasts = (device["end_ns"] - device["start_ns"]).to_numpy()
    kept = np.ones(len(device), dtype=np.bool_)
    if len(device) > room:
        kept[np.argsort(-lasts, kind="stable")[max(room, 0) :]] = False
    for stream in sorted(device["stream"].unique().tolist()):
        here = (device["stream"] == stream).to_numpy()
        own, missing = device[here & kept], lasts[here & ~kept]
        track = _track("stream", own["start_ns"], own["end_ns"], own["name"], len(own))
        gone = {"left_out": len(missing), "left_out_ns": int(missing.max(initial=0))}
        talking = set(own["name"][own["communication"]].astype(str))
        talks = [number for number, name in enumerate(track.names) if name in talking]
        yield track.model_copy(update={"stream": int(stream), "talks": talks, **gone})


def _track(kind: str, starts: pd.Series, ends: pd.Series, names: pd.Series, room: int) -> Track:
    """A lane of at most ``room`` spans, the longest of them."""
    first, lasts = starts.to_numpy(), (ends - starts).to_numpy()
    codes, distinct = pd.factorize(names.astype(str))
    kept, missing = np.arange(len(first)), np.zeros(0, dtype=np.int64)
    if len(first) > room:
        order = np.argsort(-lasts, kind="stable")
        kept, missing = np.sort(order[:room]), lasts[order[room:]]
    used, numbers = np.unique(codes[kept], return_inverse=True)
    return Track.model_validate(
        {
            "kind": kind,
            "names": [str(distinct[code]) for code in used],
            "spans": list(zip(first[kept].tolist(), lasts[kept].tolist(), numbers.tolist(), strict=True)),
            "left_out": len(missing),
            "left_out_ns": int(missing.max(initial=0)),
        }
    )


def _calls(
    calls: pd.DataFrame, device: pd.DataFrame, pieces: pd.DataFrame, told: pd.DataFrame | None
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The frames of `RankTimes`. ``pieces``: of the ledger, in the steps that are shown."""
    here = calls[calls["work"].isin(pieces["collective"])]
    found = device.iloc[here["work"].to_numpy()]
    shown = pd.DataFrame(
        {"call": here["call"].to_numpy(), **{name: found[name].to_numpy() for name in ("stream", "start_ns", "end_ns")}}
    )
    paths = pieces["path"].astype(str)
    named = paths.str.extract(FOR_RANK)[0]
    waiting = pieces[["collective", "start_ns", "end_ns"]].assign(
        last_rank=pd.to_numeric(named).fillna(-1).astype("int64"), ns=pieces["end_ns"] - pieces["start_ns"]
    )[named.notna() | (paths == _PIPELINE)]
    waiting = waiting.merge(here.rename(columns={"work": "collective"}), on="collective")
    if told is not None and len(told):  # the other end of a send or receive
        others = waiting["collective"].map(told.set_index("work")["last_rank"])
        waiting["last_rank"] = waiting["last_rank"].where(waiting["last_rank"] >= 0, others.fillna(-1)).astype("int64")
    key = ["call", "last_rank"]
    waiting = waiting.sort_values("ns", kind="stable").assign(whole_ns=waiting.groupby(key)["ns"].transform("sum"))
    longest = waiting.drop_duplicates(key, keep="last").sort_values(key)
    waits = longest.drop(columns="ns").rename(columns={"whole_ns": "ns"})[[*key, "end_ns", "ns"]]
    return shown, waits.reset_index(drop=True)
