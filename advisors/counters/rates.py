"""Rates of memory, caches, links and network ports over the recording, as tables."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pandas as pd

from advisor_core.api.advisors import Drawing, drawing
from advisor_core.api.facts import COUNTERS, PORTS, PROFILE, CollectiveState, Facts, aggregated, collective_state, peaks
from advisor_core.api.renderers import Cell, View
from advisors.messages import message
from advisors.rank_tables import known, rank_table

MARGIN_NS = 100_000_000
"""The distance that may lie between samples and tasks: in four real recordings the memory is sampled as busy 25 to
50 ms before the tasks that keep it busy (docs/sources.md#sampled-counters); twice as much is allowed for."""

MOSTLY = 0.5
"""Of the time around a sample: data of collectives move for as much. Our choice."""

_BOTH = "read + write"

_OFTEN = "QoS"
"""A part that is sampled a hundred times as often as the memory."""

_RATES = (
    ("counters.column.part", ""),
    ("counters.column.counter", ""),
    ("counters.column.mean", "B/s"),
    ("counters.column.peak", "B/s"),
    ("counters.column.limit", "B/s"),
    ("counters.column.of_limit", "ratio"),
    ("counters.column.moving", "B/s"),
    ("counters.column.else", "B/s"),
    ("counters.column.hits", "ratio"),
    ("counters.column.latency", "ns"),
    ("counters.column.samples", ""),
)
_PORTS = (
    ("counters.column.port", ""),
    ("counters.column.received", "B/s"),
    ("counters.column.most_received", "B/s"),
    ("counters.column.sent", "B/s"),
    ("counters.column.most_sent", "B/s"),
    ("counters.column.limit", "B/s"),
    ("counters.column.packets_received", "1/s"),
    ("counters.column.packets_sent", "1/s"),
    ("counters.column.faulty", ""),
    ("counters.column.errors", ""),
    ("counters.column.dropped", ""),
    ("counters.column.sent_again", ""),
    ("counters.column.pauses", ""),
    ("counters.column.congestion", ""),
    ("counters.column.samples", ""),
)


@drawing("counters.rates", needs=(COUNTERS, PROFILE), wants=(peaks, collective_state))
def rates(facts: Facts) -> list[View]:
    """Rates of memory, caches and links over the recording: mean, peak, and what the chip can do."""
    table, rank = facts[COUNTERS], facts[PROFILE].rank
    limit = facts[peaks].hbm if peaks in facts else float("nan")
    moving = facts.get(collective_state)
    rows = [_row(part, counter, samples, table, limit, moving) for part, counter, samples in _of_parts(table)]
    if not rows:
        return []
    every = _interval(table)
    title = message("counters.view.rates", rank=rank, every=f"{every / 1e6:.0f}" if np.isfinite(every) else "–")
    return [rank_table("rates", title, rank, _RATES, rows)]


def _of_parts(table: pd.DataFrame) -> Iterator[tuple[str, str, pd.DataFrame]]:
    """Part, counter, and the sum of its channels at each time (``time_ns``, ``value``); of memory also both ways."""
    moved = table[(table["unit"] == "B/s").to_numpy()]
    keys = ["part", "counter"]
    for part, counter in moved[keys].astype(str).drop_duplicates().itertuples(index=False):
        own = moved[((moved["part"] == part) & (moved["counter"] == counter)).to_numpy()]
        yield part, counter, _summed(own)
    for part in ("HBM", "DDR"):
        of_part = moved[(moved["part"] == part).to_numpy()]
        if len(of_part):
            yield part, _BOTH, _summed(of_part)


def _summed(samples: pd.DataFrame) -> pd.DataFrame:
    """Channels are sampled together. A sample that not all of them have is left out: its sum would be too small."""
    sums = aggregated(samples, "time_ns", value=("value", "sum"), channels=("value", "size"))
    whole: pd.DataFrame = sums[sums["channels"] == sums["channels"].max()]
    return whole


def _row(
    part: str,
    counter: str,
    samples: pd.DataFrame,
    table: pd.DataFrame,
    limit: float,
    state: CollectiveState | None,
) -> list[Cell]:
    time, value = samples["time_ns"].to_numpy(), samples["value"].to_numpy()
    width = np.diff(time, prepend=time[0])
    mean = float((value * width).sum() / width.sum()) if width.sum() else float(value.mean())
    peak = float(value.max())
    most = limit if part == "HBM" and counter == _BOTH else float("nan")
    moving, otherwise = _while_moving(time, value, width, state)
    hits = _hits(table, part, counter)
    latency = table["value"][_of(table, part, f"latency {counter.rpartition(' ')[2]}")]
    slow = float(latency.mean()) if len(latency) and counter.startswith("transmit") else float("nan")
    numbers = (mean, peak, most, peak / most, moving, otherwise, hits, slow)
    return [part, counter, *map(known, numbers), len(samples)]


def _of(table: pd.DataFrame, part: str, counter: str) -> npt.NDArray[np.bool_]:
    return np.asarray((table["part"].array == part) & (table["counter"].array == counter), dtype=np.bool_)


def _hits(table: pd.DataFrame, part: str, counter: str) -> float:
    """The share of hits in all that was moved: each sample counts by how much it is about."""
    keys = ["channel", "time_ns"]
    hits = table[_of(table, part, f"{counter} hits")]
    if hits.empty:
        return float("nan")
    moved = table[_of(table, part, counter)]
    both = moved.merge(hits, on=keys, suffixes=("", "_hits"))
    weight = both["value"].sum()
    return float((both["value"] * both["value_hits"]).sum() / weight) if weight else float("nan")


def _while_moving(
    time: npt.NDArray[np.int64],
    value: npt.NDArray[np.float64],
    width: npt.NDArray[np.int64],
    state: CollectiveState | None,
) -> tuple[float, float]:
    """The mean rate while data of collectives move, and while none do. NaN where no sample lies so clearly in either
    that the distance between samples and tasks could not change it."""
    if state is None:
        return float("nan"), float("nan")
    begin, end = time - width - MARGIN_NS, time + MARGIN_NS
    covered = state.covered
    if not len(covered):
        return float("nan"), float("nan")
    share = (state.moving.measure(end) - state.moving.measure(begin)) / (end - begin)
    inside = (width > 0) & (begin >= int(covered.starts[0])) & (end <= int(covered.ends[-1]))

    def mean(chosen: npt.NDArray[np.bool_]) -> float:
        return float(np.average(value[chosen], weights=width[chosen])) if chosen.any() else float("nan")

    return mean(inside & (share > MOSTLY)), mean(inside & (share == 0))


def _interval(table: pd.DataFrame) -> float:
    parts = table["part"].astype(str)
    slow = parts[parts != _OFTEN]
    times = np.unique(table["time_ns"].to_numpy()[(parts == (slow if len(slow) else parts).iloc[0]).to_numpy()])
    return float(np.median(np.diff(times))) if len(times) > 1 else float("nan")


@drawing("counters.ports", needs=(PORTS, PROFILE))
def ports(facts: Facts) -> list[View]:
    """Traffic and losses of the network ports of a device over the recording."""
    table, rank = facts[PORTS], facts[PROFILE].rank
    rows: list[list[Cell]] = []
    for port, own in table.groupby(table["port"].astype(str), sort=True):
        means = own[["received", "sent", "receive_packets", "transmit_packets"]].mean()
        most = own[["received", "sent", "capacity"]].max()
        sums = own[["error_packets", "dropped_packets", "sent_again", "pause_frames", "congestion_notices"]].sum(
            min_count=1
        )
        moved = (means["received"], most["received"], means["sent"], most["sent"], most["capacity"])
        packets = (means["receive_packets"], means["transmit_packets"])
        counts: list[Cell] = [None if np.isnan(count) else int(count) for count in sums.tolist()]
        rows.append([str(port), *map(known, (*moved, *packets)), int(own["faulty"].sum()), *counts, len(own)])
    title = message("counters.view.ports", rank=rank)
    return [rank_table("ports", title, rank, _PORTS, rows)] if rows else []


DRAWINGS: tuple[Drawing, ...] = (rates, ports)
