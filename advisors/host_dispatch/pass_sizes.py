"""HD026: passes with new sequences that hold up the next tokens of running ones; and the sizes and times of all passes.

Engines mark their passes with the sequences and tokens that they compute (`Vocabulary.pass_size`). A running sequence
gets its next token once per pass: the time from the start of a pass to that of the next on its thread is the time
between two tokens, whatever the device did in it.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from advisor_core.api.advisors import (
    Column,
    Drawing,
    Interval,
    Metric,
    Observations,
    Params,
    Reference,
    advisor,
    drawing,
)
from advisor_core.api.facts import HOST_EVENTS, PROFILE, Facts, NotApplicable, Vocabulary
from advisor_core.api.renderers import Cell, View
from advisors.host_dispatch.engine_passes import KINDS, marked_passes
from advisors.measuring import HOST_LANE, LARGEST, records
from advisors.messages import message
from advisors.rank_tables import known, rank_table

_SIZES: Final = ("context", "context_tokens", "generation", "generation_tokens", "batch", "batch_tokens")
_QUANTILES: Final = ((0.9, 10), (0.99, 100))
"""Quantiles of the times, and how many passes each needs: it is the time that one pass of so many exceeds."""
_COLUMNS: Final = (
    ("host_dispatch.passes.kind", ""),
    ("host_dispatch.pass_sizes.sequences", ""),
    ("host_dispatch.passes.count", ""),
    ("host_dispatch.pass_sizes.tokens", ""),
    ("host_dispatch.pass_sizes.mark", "ns"),
    ("host_dispatch.pass_sizes.median", "ns"),
    ("host_dispatch.pass_sizes.p90", "ns"),
    ("host_dispatch.pass_sizes.p99", "ns"),
    ("host_dispatch.passes.longest", "ns"),
    ("host_dispatch.pass_sizes.rate", "1/s"),
)


def sized_passes(events: pd.DataFrame, words: Vocabulary) -> pd.DataFrame:
    """The marked passes in order of start: ``kind``, ``thread``, ``start_ns``, ``duration_ns`` of the mark;
    ``period_ns``, up to the start of the next on the thread, NaN of the last; ``new`` and ``running``, sequences that
    are begun or go on, ``new_tokens``, ``sequences`` and ``tokens`` of both, NaN where the mark does not tell."""
    marks = marked_passes(events, words)
    names = marks["name"].astype(str)
    known_names = pd.Series(names.unique(), dtype=object)
    told = [match.groupdict() if (match := words.pass_size.search(name)) else {} for name in known_names]
    sizes = pd.DataFrame(told, columns=list(_SIZES), index=known_names).astype(np.float64).reindex(names)
    kind = marks["kind"].to_numpy(dtype=object)
    batch, tokens = sizes["batch"].to_numpy(), sizes["batch_tokens"].to_numpy()
    is_new, is_running = kind == "prefill", kind == "decode"
    starts = marks["start_ns"].astype(np.float64)
    return pd.DataFrame(
        {
            "kind": kind,
            "thread": marks["thread"].to_numpy(),
            "start_ns": marks["start_ns"].to_numpy(),
            "duration_ns": marks["duration_ns"].to_numpy(),
            "period_ns": -starts.groupby(marks["thread"].to_numpy()).diff(-1).to_numpy(),
            "new": _first(sizes["context"], np.where(is_new, batch, np.nan)),
            "running": _first(sizes["generation"], np.where(is_running, batch, np.nan)),
            "new_tokens": _first(sizes["context_tokens"], np.where(is_new, tokens, np.nan)),
            "sequences": _first(sizes["context"] + sizes["generation"], batch),
            # One token for each running sequence is not certain: it can be more where some are guessed ahead.
            "tokens": _first(sizes["context_tokens"] + sizes["generation_tokens"], tokens),
        }
    )


def _first(value: pd.Series, other: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The value, where it is not known the other one."""
    values = value.to_numpy(dtype=np.float64)
    return np.where(np.isfinite(values), values, other)


@drawing("host_dispatch.pass_sizes", needs=(HOST_EVENTS, PROFILE))
def sizes_of_passes(facts: Facts) -> list[View]:
    """Sequences and tokens of the marked passes of an engine, the time between two tokens, and tokens per second."""
    found = sized_passes(facts[HOST_EVENTS], facts[PROFILE].vocabulary)
    if not (found["sequences"] > 0).any():
        return []
    rows: list[list[Cell]] = []
    for kind, name in KINDS.items():
        of_kind = found[(found["kind"] == kind).to_numpy()]
        # A row for sizes within a factor of two: the time between tokens grows with the batch.
        doubled = np.floor(np.log2(np.fmax(of_kind["sequences"].to_numpy(), 1)))
        for size in np.unique(doubled):
            rows.append([message(name), *_row(of_kind[(doubled == size) | (np.isnan(doubled) & np.isnan(size))])])
    rank = facts[PROFILE].rank
    title = message("host_dispatch.view.pass_sizes", rank=rank, count=len(found))
    return [rank_table("pass-sizes", title, rank, _COLUMNS, rows)]


def _row(passes: pd.DataFrame) -> list[Cell]:
    periods = np.sort(passes["period_ns"].dropna().to_numpy())
    low, high = passes["sequences"].min(), passes["sequences"].max()
    sequences = None if np.isnan(low) else f"{low:.0f}" if low == high else f"{low:.0f}–{high:.0f}"
    timed = passes[(passes["period_ns"].notna() & passes["tokens"].notna()).to_numpy()]
    seconds = timed["period_ns"].sum() / 1e9
    return [
        sequences,
        len(passes),
        known(passes["tokens"].mean()),
        round(float(passes["duration_ns"].mean())),
        known(float(np.median(periods)) if len(periods) else float("nan")),
        *(known(_exceeded(periods, share) if len(periods) >= least else float("nan")) for share, least in _QUANTILES),
        known(float(periods[-1]) if len(periods) else float("nan")),
        known(timed["tokens"].sum() / seconds if seconds else float("nan")),
    ]


def _exceeded(ascending: npt.NDArray[np.float64], share: float) -> float:
    """The value that at least this share of them does not exceed (nearest rank)."""
    return float(ascending[int(np.ceil(share * len(ascending))) - 1])


@advisor(
    "host_dispatch.pass_sizes",
    needs=(HOST_EVENTS, PROFILE),
    columns=(
        Column("delayed_passes", "int", "count", "passes with new sequences while others run", zh="受影响的执行次数"),
        Column("decodes", "int", "count", "passes that only compute next tokens", zh="仅 decode 的执行次数"),
        Column("delayed_ns", "float", "ns", "time between tokens in passes with new sequences, median", zh="受影响时"),
        Column("longest_ns", "float", "ns", "the longest of these", zh="最长"),
        Column("decode_ns", "float", "ns", "time between tokens in passes without, median", zh="仅 decode 时"),
        Column("slower_times", "float", "ratio", "delayed_ns over decode_ns", zh="变慢倍数"),
        Column("new_tokens", "float", "count", "tokens of new sequences in such a pass, median", zh="新序列 token 数"),
        Column(
            "running", "float", "count", "sequences that wait for their next token in it, median", zh="等待的序列数"
        ),
        Column("held_share", "float", "ratio", "of the time of all passes, more than next tokens alone", zh="占比"),
    ),
    params=("min_passes",),
    evidence=(
        Column("kind", "text", "", "what the pass computes: mixed is both", zh="类别"),
        Column("period", "float", "ns", "from its start to that of the next", zh="间隔"),
    ),
)
def pass_sizes(facts: Facts, params: Params) -> Observations:
    """Passes of an engine that compute new sequences while others wait for their next token, against passes that
    compute next tokens alone."""
    found = sized_passes(facts[HOST_EVENTS], facts[PROFILE].vocabulary)
    found = found.assign(running=_running(found))
    found = found[found["period_ns"].notna().to_numpy()].reset_index(drop=True)
    decodes = found[(found["kind"] == "decode").to_numpy()]
    held = found[((found["kind"] != "decode") & (found["running"] > 0)).to_numpy()]
    least = int(params["min_passes"])
    if found.empty:
        raise NotApplicable(message("host_dispatch.held_up.none"))
    if len(decodes) < least or len(held) < least:
        raise NotApplicable(message("host_dispatch.held_up.few", decodes=len(decodes), held=len(held), least=least))
    usual = float(decodes["period_ns"].median())
    took = float(held["period_ns"].median())
    more = np.maximum(held["period_ns"] - usual, 0).sum()
    row = {
        "delayed_passes": len(held),
        "decodes": len(decodes),
        "delayed_ns": took,
        "longest_ns": float(held["period_ns"].max()),
        "decode_ns": usual,
        "slower_times": took / usual if usual else float("nan"),
        "new_tokens": float(held["new_tokens"].median()),
        "running": float(held["running"].median()),
        "held_share": float(more / found["period_ns"].sum()),
    }

    def evidence(_: int) -> list[Reference]:
        longest = held.sort_values("period_ns", ascending=False, kind="stable").head(LARGEST)
        spans = zip(longest["start_ns"].tolist(), longest["period_ns"].tolist(), strict=True)
        rows = records(longest, LARGEST, kind="kind", period="period_ns", new_tokens="new_tokens", running="running")
        return [
            Metric(message("host_dispatch.held_up.passes"), rows),
            *(Interval(message("host_dispatch.held_up.pass"), at, at + int(took), HOST_LANE) for at, took in spans),
        ]

    return Observations(pd.DataFrame([row]), evidence)


def _running(passes: pd.DataFrame) -> npt.NDArray[np.float64]:
    """Sequences that run while a pass computes: what its mark tells. Of a pass of new sequences alone, the fewer of
    those that the passes with next tokens before and behind it on its thread have; 0 where one of these is not."""
    own = passes["running"].where((passes["kind"] != "prefill").to_numpy())
    around = own.groupby(passes["thread"].to_numpy())
    before, behind = around.ffill().to_numpy(), around.bfill().to_numpy()
    beside = np.where(np.isfinite(before) & np.isfinite(behind), np.fmin(before, behind), 0)
    # A mixed pass whose mark does not divide its sequences has some of either kind.
    told = own.fillna(1.0).to_numpy()
    return np.where(passes["kind"].to_numpy(dtype=object) == "prefill", beside, told)


DRAWINGS: tuple[Drawing, ...] = (sizes_of_passes,)
