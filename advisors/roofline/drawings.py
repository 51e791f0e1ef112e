"""How fast the step could be: the peaks of the chip, what parts of the step need at least, and what is above that."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from advisor_core.api import Text
from advisor_core.api.advisors import Drawing, drawing
from advisor_core.api.facts import PROFILE, Facts, Peaks, ledger, part_ledger, parts
from advisor_core.api.renderers import BarRow, Bars, BarsView, Heatmap, HeatmapView, View
from advisors.layers.layers import Layers, layers
from advisors.messages import message
from advisors.roofline.boundness import bound_of
from advisors.roofline.bounds import Part, Roofline, parts_of, roofline
from advisors.roofline.named_parts import BOUNDS, NamedPart, named_parts
from advisors.roofline.work import KernelWork, kernel_work
from advisors.step_kernels import StepKernels, step_kernels

Ints = npt.NDArray[np.int64]

OPERATORS = 12
PRODUCTS = 100
"""Rows of the drawings, those with most time; the titles say of how many."""

_BASIS = {
    "info.json": "roofline.basis.recorded",
    "cycle counters": "roofline.basis.counters",
    "largest launches": "roofline.basis.launches",
    "device": "roofline.basis.device",
}
"""Messages about the chip."""

_TIMES = ("roofline.column.least", "roofline.column.above")
_SHARES = (
    "roofline.column.mfu",
    "roofline.column.bandwidth",
    "roofline.column.reached",
    "roofline.column.by_computing",
    "roofline.column.by_memory",
)
_OF_PRODUCTS = ("roofline.column.of_peak", "roofline.column.of_memory")
"""The columns of the drawings, as messages."""


@drawing(
    "roofline.bounds",
    needs=(step_kernels, kernel_work, roofline, PROFILE),
    wants=(layers, ledger, parts, part_ledger),
)
def bounds(facts: Facts) -> list[View]:
    """Lower bounds of the step, its phases, passes, parts and layers; operators by time above them; all products."""
    own, work, found, rank = facts[step_kernels], facts[kernel_work], facts[roofline], facts[PROFILE].rank
    towers = facts.get(layers)
    views = [_peaks(found.peaks, set(work.table["dtype"]), rank)]
    if np.isfinite(found.least_ns).any():
        named = named_parts(facts, own, found, towers)
        views += [_shares(named, rank), _times(named, rank), *_above(own, found, rank)]
        views += _heavy(own, work, found, rank)
        views += [] if towers is None else _by_layer(own, found, towers, rank)
    return views


def _peaks(chip: Peaks, used: set[str], rank: int) -> View:
    """The peaks for the types of operands that the kernels have, and what was reached of them where that was measured;
    FP32 may be shortened to HF32."""
    used = used | ({"HF32"} if "FLOAT" in used else set())
    rows = [BarRow(label=dtype, value=_number(flops / 1e12, 1)) for dtype, flops in chip.flops.items() if dtype in used]
    reached = message("roofline.reached")
    rows += [
        BarRow(
            label=Text(en=f"{dtype}, {reached.en}", zh=f"{dtype}，{reached.zh}"),
            value=_number(chip.of(dtype) * share / 1e12, 1),
        )
        for dtype, share in chip.reached.items()
        if dtype in used
    ]
    vector = message("roofline.vector")
    rows += [
        BarRow(label=Text(en=f"{vector.en}, {dtype}", zh=f"{vector.zh}，{dtype}"), value=_number(flops / 1e12, 1))
        for dtype, flops in sorted(chip.vector_flops.items())
        if dtype in used
    ]
    rows = [row for row in rows if np.isfinite(row.value)]
    links = ", ".join(f"{name} {rate / 1e9:g} GB/s" for name, rate in chip.links.items())
    title = message(
        "roofline.view.peaks",
        rank=rank,
        models=" / ".join(chip.models) if chip.models else message("roofline.no_model"),
        cores=chip.cores,
        mhz=f"{chip.mhz:.0f}",
        basis=message(_BASIS[chip.basis]),
        memory=_memory(chip),
        cache=_cache(chip),
        links=message("roofline.links", links=links) if links else message("roofline.no_links"),
    )
    return BarsView(id=f"peaks-rank{rank}", title=title, unit="TFLOP/s", rank=rank, data=Bars(rows=rows))


def _memory(chip: Peaks) -> Text:
    if not np.isfinite(chip.hbm):
        return message("roofline.memory.unknown")
    rate = f"{chip.hbm / 1e12:.2f}"
    return message("roofline.memory.inferred" if chip.hbm_inferred else "roofline.memory.known", rate=rate)


def _cache(chip: Peaks) -> Text:
    if not np.isfinite(chip.l2_read):
        return message("roofline.cache.unknown")
    read, written = (f"{rate / 1e12:.1f}" for rate in (chip.l2_read, chip.l2_write))
    return message("roofline.cache.known", size=f"{chip.l2_bytes / (1 << 20):.0f}", read=read, written=written)


def _shares(parts: Sequence[NamedPart], rank: int) -> View:
    step = parts[0]
    return HeatmapView(
        id=f"roofline-rank{rank}",
        title=message(
            "roofline.view.shares",
            rank=rank,
            bound=message(BOUNDS[step.bound]),
            mfu=_percent(step.part.mfu),
            hfu=_percent(step.part.hfu),
            known=_percent(step.part.known),
            bandwidth=_percent(step.part.bandwidth),
            reached=_percent(step.part.reached),
        ),
        unit="ratio",
        rank=rank,
        data=Heatmap(
            rows=[part.label for part in parts],
            columns=[message(name) for name in _SHARES],
            values=[_shares_of(named.part) for named in parts],
        ),
    )


def _shares_of(part: Part) -> list[int | float | None]:
    bounded = (part.by_computing_ns / part.wall_ns, part.by_memory_ns / part.wall_ns) if part.wall_ns else (0.0, 0.0)
    return [_or_none(x) for x in (part.mfu, part.bandwidth, part.reached, *bounded)]


def _times(parts: Sequence[NamedPart], rank: int) -> View:
    timed = [part for part in parts if part.timed]
    return HeatmapView(
        id=f"bounds-rank{rank}",
        title=message("roofline.view.times", rank=rank),
        unit="ns",
        rank=rank,
        data=Heatmap(
            rows=[part.label for part in timed],
            columns=[message(name) for name in _TIMES],
            values=[_times_of(named.part) for named in timed],
        ),
    )


def _times_of(part: Part) -> list[int | float | None]:
    return [round(part.least_ns), round(part.known_ns - part.least_ns)]


def _above(own: StepKernels, found: Roofline, rank: int) -> list[View]:
    """The operator types with most time above their bound."""
    known = np.isfinite(found.least_ns)
    frame = pd.DataFrame(
        {
            "operator": own.frame["type"].astype(str).to_numpy()[known],
            "took": found.duration_ns[known],
            "least": np.minimum(found.least_ns, found.duration_ns)[known],
        }
    )
    sums = frame.groupby("operator", sort=True).sum() / own.steps
    sums["above"] = sums["took"] - sums["least"]
    sums = sums.sort_values("above", ascending=False, kind="stable")
    rows = [
        BarRow(label=str(name), value=round(row["above"]), note=_percent(row["least"] / row["took"]))
        for name, row in sums.head(OPERATORS).iterrows()
        if row["took"]
    ]
    title = message("roofline.view.above", rank=rank, shown=len(rows), count=len(sums))
    return [
        BarsView(id=f"above-rank{rank}", purpose="operators", title=title, unit="ns", rank=rank, data=Bars(rows=rows))
    ]


def _heavy(own: StepKernels, work: KernelWork, found: Roofline, rank: int) -> list[View]:
    """Each distinct product, convolution and attention: how near it comes to the peak, the memory and its bound."""
    signature = own.frame["signature"].to_numpy()
    count = len(work.table)

    def summed(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        return np.asarray(np.bincount(signature, weights=values, minlength=count), dtype=np.float64)

    took = summed(found.duration_ns)
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = np.stack([summed(ns) / took for ns in (found.computing_ns, found.memory_ns)], axis=1)
    heavy = np.flatnonzero((work.table["kind"] != "vector").to_numpy() & np.isfinite(shares).all(axis=1))
    heavy = heavy[np.argsort(-took[heavy], kind="stable")]
    if not len(heavy):
        return []
    shown = heavy[:PRODUCTS]
    each = np.bincount(signature, minlength=count) / own.steps
    mean = took / np.maximum(each, 1e-9) / own.steps / 1e3
    rows = [
        f"{row.operator} {row.work} {row.dtype} ({each[number]:g} x {mean[number]:.1f} µs)"
        for number, row in zip(shown, work.table.iloc[shown].itertuples(), strict=True)
    ]
    return [
        HeatmapView(
            id=f"products-rank{rank}",
            title=message("roofline.view.products", rank=rank, shown=len(shown), count=len(heavy)),
            unit="ratio",
            rank=rank,
            data=Heatmap(
                rows=[" ".join(row.split()) for row in rows],
                columns=[message(name) for name in _OF_PRODUCTS],
                values=[[_or_none(share) for share in shares[number].tolist()] for number in shown],
            ),
        )
    ]


def _by_layer(own: StepKernels, found: Roofline, towers: Layers, rank: int) -> list[View]:
    views: list[View] = []
    none = np.zeros(len(own.frame), dtype=np.bool_)
    for tower in towers.towers["tower"].tolist():
        layer: Ints = np.where(towers.tower == tower, towers.layer, -1)
        parts = parts_of(found, layer, int(layer.max(initial=0)) + 1, own.steps, none, None)
        names = [bound_of(part) for part in parts]
        most = max(set(names), key=lambda bound: (names.count(bound), bound))
        views.append(
            HeatmapView(
                id=f"bounds-rank{rank}-stack{tower}",
                purpose="layers",
                title=message(
                    "roofline.view.layers",
                    rank=rank,
                    stack=tower,
                    count=names.count(most),
                    layers=len(names),
                    bound=message(BOUNDS[most]),
                ),
                unit="ns",
                rank=rank,
                data=Heatmap(
                    rows=[message(name) for name in _TIMES],
                    columns=[str(number) for number in range(len(parts))],
                    values=[list(line) for line in zip(*(_times_of(part) for part in parts), strict=True)],
                ),
            )
        )
    return views


def _number(value: float, digits: int) -> float:
    return round(float(value), digits)


def _or_none(value: float) -> float | None:
    return round(float(value), 4) if np.isfinite(value) else None


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if np.isfinite(share) else "–"


DRAWINGS: tuple[Drawing, ...] = (bounds,)
