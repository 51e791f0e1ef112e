"""Order and sizes of the transfers of a rank: which come in a row, which of these computing could have hidden, and the
fixed cost of each."""

from __future__ import annotations

import numpy as np
import pandas as pd

from advisor_core.api.facts import POINT_TO_POINT, Layer

_BEGUN_NS = 1_000_000
"""Computing that goes on for this long after a transfer began is not the end of what the transfer had waited for, nor
some small kernels behind it: 1 ms, our choice."""


def chains(calls: pd.DataFrame, computing: Layer | None = None) -> pd.DataFrame:
    """Collectives in a row, with less between two of them than the longer one needs to move its data, or with nothing
    computed between them, where the ``computing`` is given (a slow host launches them one by one): a row per chain, in
    order of time. Operations of which it is not known when they move data, and those between pipeline stages, belong
    to none.

    Columns: ``step``, ``start_ns``, ``end_ns``, ``operations``, ``transmit_ns`` (uncovered moving), ``tail_ns`` (what
    of it stays if the chain starts earlier), ``displaced_ns`` (what of it would have been hidden had nobody waited),
    ``begun_under_computing`` (computing went on for at least half of the first transfer, or for 1 ms: the chain started
    as soon as its data was there, not when all was computed), ``first_share`` (of the time in which it moves data, its
    first operation, a half of one on its own), ``first`` (the row of ``calls`` of that).

    The tail: what is sent last is ready last, so that the last operation stays, or an average one where that is longer
    (the last may be a flag). An operation on its own can be cut in two, of which the second stays. Displaced: while an
    operation waits under computing nothing moves; as much of what moves uncovered afterwards would have moved then.
    """
    between = calls["operation"].str.contains(POINT_TO_POINT.pattern, case=False, regex=True).to_numpy()
    own = np.flatnonzero((calls["moving_ns"] >= 0).to_numpy() & ~between & (calls["step"] >= 0).to_numpy())
    own = own[np.lexsort((calls["end_ns"].to_numpy()[own], calls["start_ns"].to_numpy()[own]))]
    step, start, end, moving, bare, elapse, uncovered = (
        calls[name].to_numpy()[own]
        for name in ("step", "start_ns", "end_ns", "moving_ns", "transmit_ns", "elapse_ns", "uncovered_ns")
    )
    gap, longer = start[1:] - np.maximum.accumulate(end)[:-1], np.maximum(moving[1:], moving[:-1])
    apart = gap >= longer
    if computing is not None:
        apart &= computing.measure(start[1:]) > computing.measure(np.maximum.accumulate(end)[:-1])
    begins = np.append(True, apart | (step[1:] != step[:-1]))[: len(own)]
    covered = elapse - uncovered >= np.minimum(moving / 2, _BEGUN_NS)
    waiting = np.maximum(elapse - moving - (uncovered - bare), 0)  # under computing
    first = np.flatnonzero(begins)  # rows of a chain follow each other
    last = np.append(first[1:], len(own))[: len(first)] - 1
    operations, transmit = last - first + 1, np.add.reduceat(bare, first)
    part = transmit / np.maximum(operations, 2)
    tail = np.where(operations > 1, np.maximum(bare[last], part), part)
    return pd.DataFrame(
        {
            "step": step[first],
            "start_ns": start[first],
            "end_ns": np.maximum.reduceat(end, first),
            "operations": operations,
            "transmit_ns": transmit,
            "begun_under_computing": covered[first],
            "first_share": np.where(operations > 1, moving[first] / np.maximum(np.add.reduceat(moving, first), 1), 0.5),
            "first": own[first],
            "tail_ns": tail,
            "displaced_ns": np.minimum(transmit - tail, np.add.reduceat(waiting, first)),
        }
    )


def hideable_ns(found: pd.DataFrame, computing_before: np.ndarray) -> float:
    """The part of the uncovered moving of some `chains` that computing could hide if they started earlier.

    ``computing_before``: computing that could hide them. A chain that started under computing has started
    as soon as its data was there: it is longer than what can hide it.
    """
    return float(np.minimum(late_ns(found), computing_before).sum())


def late_ns(found: pd.DataFrame) -> np.ndarray:
    """Of each of some `chains` the uncovered moving that enough computing before it could hide."""
    late = found["transmit_ns"] - found["tail_ns"] - found["displaced_ns"]
    return np.where(found["begun_under_computing"], 0.0, late).clip(min=0)


def time_by_size(kinds: pd.DataFrame) -> pd.DataFrame:
    """Moving time as a straight line over bytes, fitted to the operations of each kind (column ``kind``): ``fixed_ns``
    of an operation of no size, ``ns_per_byte``. Relative errors are minimised, so that large operations do not hide
    the small ones. NaN where the sizes of a kind differ by less than a factor of two, or no line of this form fits."""
    x, y = kinds["bytes"].to_numpy(dtype=np.float64), kinds["moving_ns"].to_numpy(dtype=np.float64)
    weight = 1 / y**2
    products = {"w": weight, "wx": weight * x, "wy": weight * y, "wxx": weight * x * x, "wxy": weight * x * y}
    groups = pd.DataFrame({**products, "x": x}).groupby(kinds["kind"].to_numpy())
    sums = groups[list(products)].sum()
    w, wx, wy, wxx, wxy = sums.to_numpy().T
    least, most = groups["x"].min().to_numpy(), groups["x"].max().to_numpy()
    divisor = np.where((most >= 2 * least) & (least > 0), w * wxx - wx**2, np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):  # as of sizes that are nearly equal
        slope = (w * wxy - wx * wy) / divisor
        fixed = (wy - slope * wx) / w
    fits = (slope > 0) & (fixed >= 0)
    found = {"fixed_ns": np.where(fits, fixed, np.nan), "ns_per_byte": np.where(fits, slope, np.nan)}
    return pd.DataFrame(found, index=sums.index)


def message_bytes(calls: pd.DataFrame) -> pd.Series:
    """Size of the data of each operation, bytes; NaN unknown. Of n ranks each sends and receives (n - 1)/n of it to
    scatter or to gather, and twice that to reduce for all."""
    ranks = calls["members"].where(calls["members"] > 1).astype(float)
    part = (ranks - 1) / ranks
    operation = calls["operation"].str.lower()
    times = part.where(operation.isin(["allgather", "reducescatter", "alltoall", "alltoallv", "allreduce"]), 1.0)
    times = times.where(operation != "allreduce", 2 * part)
    return calls["bytes"].where(calls["bytes"] >= 0) / times
