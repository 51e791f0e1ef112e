"""NS039: experts that run one after the other, each with products of its own."""

from __future__ import annotations

import numpy as np
import pandas as pd

from advisor_core.api.advisors import Column, Observations, Params, Reference, Rows, advisor
from advisor_core.api.facts import (
    HOST_EVENTS,
    KERNELS,
    LONGEST,
    NO_TIME,
    PROFILE,
    Facts,
    HostChange,
    Launches,
    Merging,
    NotApplicable,
    launches,
    peaks,
    replay,
    sync_calls,
)
from advisors.columns import savings, shares
from advisors.fusion.expert_loops import ExpertLoops, expert_loops
from advisors.host_dispatch.waits import launch_spans, waits_gone, whole_waits
from advisors.layers.layers import layers
from advisors.layers.places import PLACES, origin
from advisors.measuring import row
from advisors.messages import message
from advisors.network_structure.memory_bound_chains import series_text
from advisors.roofline.bounds import roofline
from advisors.step_kernels import EVIDENCE_COLUMNS, StepKernels, kernel_rows, step_kernels


@advisor(
    "network_structure.expert_loop",
    needs=(step_kernels, expert_loops),
    wants=(replay, launches, HOST_EVENTS, PROFILE, sync_calls, layers, roofline, peaks),
    columns=(
        Column("loops", "float", "count", "loops over experts per step, in both passes", zh="循环数"),
        Column("experts", "float", "count", "experts in the longest loop", zh="专家数"),
        Column("chain", "text", "", "the operator types of one expert in order, in short", zh="算子链"),
        Column("least_rows", "float", "count", "rows (tokens) of the expert with the fewest", zh="最少行数"),
        Column("most_rows", "float", "count", "rows (tokens) of the expert with the most", zh="最多行数"),
        Column("kernels", "float", "count", "kernels of the loops per step", zh="kernel 数"),
        Column("loop_ns", "float", "ns", "their time per step", zh="循环耗时"),
        Column("backward_ns", "float", "ns", "part of loop_ns in the backward pass", zh="反向"),
        Column("product_ns", "float", "ns", "part of loop_ns in the products", zh="矩阵乘"),
        Column(
            "grouped_kernels",
            "float",
            "count",
            "grouped products and fused kernels instead, per step",
            zh="分组后 kernel 数",
        ),
        Column(
            "fused_ns",
            "float",
            "ns",
            "time instead, per step: the products with their tiles on all cores, and the tensors with rows of experts "
            "that they read and write moved once more at the bandwidth reached",
            zh="融合算子",
        ),
        Column("saved_launches", "float", "count", "kernels that need not be launched, per step", zh="节省的下发次数"),
        Column(
            "host_waits",
            "float",
            "count",
            "how often the host waits within the loops for a number of the device, per step, where it does so for "
            "every expert",
            zh="host 等待次数",
        ),
        *savings("loop_ns less fused_ns"),
        Column(
            "bandwidth",
            "float",
            "B/s",
            "what large elementwise kernels of this profile reach; without such kernels, the best small kernel of the "
            "loops",
            zh="带宽",
        ),
        *shares("saving_ns", "kernel_saving_ns"),
    ),
    evidence=PLACES,
)
def expert_loop(facts: Facts, params: Params) -> Observations:
    """Experts that run one after the other: what their kernels take, and what grouped products would."""
    own = facts[step_kernels]
    own.require_tensors()
    found = facts[expert_loops]
    if not len(found.members):
        raise NotApplicable(message("expert_loop.none"))
    took = own.frame["duration_ns"].to_numpy(dtype=np.float64)[found.members]
    count = len(found.experts)
    loop_ns = np.bincount(found.loop_of, took, count).astype(np.float64)
    product_ns = np.bincount(found.loop_of, took * found.is_product, count).astype(np.float64)
    # One kernel for each product of an expert, and one for what stands between two of them, before and behind.
    kernels_after = 2 * found.products + 1
    bandwidth, begin = own.reached(own.best_bandwidth(found.members[~found.is_product]))
    moved_ns = found.exchanged / bandwidth * 1e9 + kernels_after * begin
    after_ns = np.fmin(np.bincount(found.loop_of, _on_all_cores(facts, own, found), count) + moved_ns, loop_ns)
    as_they_are_ns = np.fmin(product_ns + moved_ns, loop_ns)
    known = bool(np.isfinite(moved_ns).all())
    tasks = own.frame["work"].to_numpy()[found.members]
    waits = _waits(facts, tasks, found)
    gone, at_least_gone = (
        (HostChange(), HostChange())
        if waits is None
        else (waits_gone(_with_host_time(waits, facts[launches])), waits_gone(waits))
    )
    merging = Merging(
        tasks,
        found.loop_of,
        loop_ns,
        after_ns,
        waits=gone,
        least=Merging(tasks, found.loop_of, loop_ns, as_they_are_ns, longest=1.0, waits=at_least_gone),
        most=Merging(tasks, found.loop_of, loop_ns, _at_least(facts, found, after_ns), longest=np.inf, waits=gone),
    )
    replayed = facts.get(replay)
    kernel_saving = float((loop_ns - after_ns).sum()) if known else np.nan
    saving = kernel_saving if replayed is None or not known else float(replayed.saved_by_each([merging])[0])
    longest = int(found.experts.argmax())
    result = row(
        loops=count / own.steps,
        experts=float(found.experts[longest]),
        chain=series_text(own.frame["type"].iloc[_of_one(found, longest)]),
        least_rows=float(found.least_rows.min()),
        most_rows=float(found.most_rows.max()),
        kernels=len(found.members) / own.steps,
        loop_ns=float(loop_ns.sum()) / own.steps,
        backward_ns=float(loop_ns[found.backward].sum()) / own.steps,
        product_ns=float(product_ns.sum()) / own.steps,
        grouped_kernels=float(kernels_after.sum()) / own.steps,
        fused_ns=float(after_ns.sum()) / own.steps if known else np.nan,
        saved_launches=float(len(found.members) - kernels_after.sum()) / own.steps,
        host_waits=np.nan if waits is None else len(waits) / own.steps,
        bandwidth=bandwidth,
        **own.savings(kernel_saving, saving),
    )

    def evidence(_: int) -> list[Reference]:
        first = own.frame.iloc[_of_one(found, longest)]
        everything = own.frame.iloc[found.members]
        return [
            Rows(message("expert_loop.example"), KERNELS, first["row"].to_numpy(dtype=np.int64), EVIDENCE_COLUMNS),
            kernel_rows(message("expert_loop.rows"), everything),
            *origin(facts, everything),
        ]

    return Observations(result, evidence, cure=lambda _: merging)


def _on_all_cores(facts: Facts, own: StepKernels, found: ExpertLoops) -> np.ndarray:
    """What the product of each member takes as a part of a grouped one, ns, without its start; 0 of other kernels. A
    grouped product goes on with the tiles of the next expert on the cores that the last one leaves free
    (docs/sources.md#grouped-products), so that what a product does on some of the cores (``block_dim``) is shared out
    among all, as far as the memory gives its operands. As it is where cores or blocks are not known."""
    frame = own.frame.iloc[found.members]
    took = frame["duration_ns"].to_numpy(dtype=np.float64)
    blocks = frame["block_dim"].to_numpy(dtype=np.float64)
    chip, bounds = facts.get(peaks), facts.get(roofline)
    if chip is None or bounds is None:
        return np.where(found.is_product, took, 0.0)
    spread = np.maximum(took - own.least_ns, 0.0) * np.clip(blocks / chip.cores, 0.0, 1.0)
    spread = np.fmin(np.fmax(spread, bounds.least_ns[found.members]), took)
    told = (blocks > 0) & np.isfinite(bounds.least_ns[found.members])
    return np.where(found.is_product, np.where(told, spread, took), 0.0)


def _at_least(facts: Facts, found: ExpertLoops, otherwise: np.ndarray) -> np.ndarray:
    """The least that grouped products and fused kernels take in place of each loop: one large product can be as quick
    as its operations and bytes allow, where each expert alone has too few rows for that; with few rows it reads its
    weights as quickly as the memory gives them (docs/sources.md#grouped-products). ``otherwise`` where that is
    unknown."""
    bounds = facts.get(roofline)
    if bounds is None:
        return otherwise
    products = np.where(found.is_product, bounds.least_ns[found.members], 0.0)
    least = np.bincount(found.loop_of, products, len(found.experts)) + found.exchanged / bounds.peaks.hbm * 1e9
    return np.asarray(np.fmin(least, otherwise), dtype=np.float64)


def _waits(facts: Facts, tasks: np.ndarray, found: ExpertLoops) -> pd.DataFrame | None:
    """The times in which the host waits for the device (``start_ns``, ``end_ns``) while it launches a loop, at least
    once for every expert: for the rows that the router gave it. Those of the first expert come before the first launch
    of the loop, with no other launch in between: as many of these as the other experts have. ``None`` where no calls or
    no launches are recorded."""
    if not facts.knows(sync_calls, launches, HOST_EVENTS):
        return None
    calls, launched = facts[sync_calls], facts[launches]
    spans = launch_spans(launched, tasks, found.loop_of, len(found.experts))
    entered = np.sort(launched.frame["entered_ns"].to_numpy()[launched.known().to_numpy()])
    began = calls["start_ns"].to_numpy()
    within = np.zeros(len(calls), dtype=np.bool_)
    for number, (first, last, experts) in enumerate(zip(*spans, found.experts, strict=True)):
        inside = (began >= first) & (began < last)
        handed_over = _first_of(launched, tasks[found.loop_of == number])
        behind = np.searchsorted(entered, handed_over) - 1
        ahead = np.flatnonzero((began > entered[behind]) & (began <= handed_over)) if behind >= 0 else began[:0]
        own = np.union1d(np.flatnonzero(inside), ahead[max(0, len(ahead) - int(inside.sum()) // int(experts - 1)) :])
        if len(own) >= experts:
            within[own] = True
    return whole_waits(facts[HOST_EVENTS], calls[within], launched.skew_ns, facts[PROFILE].vocabulary)


def _first_of(launched: Launches, tasks: np.ndarray) -> int:
    """When the host handed over the first of these tasks."""
    entered = launched.frame["entered_ns"].to_numpy()[tasks]
    return int(entered[entered != NO_TIME].min(initial=np.iinfo(np.int64).max))


def _of_one(found: ExpertLoops, loop: int) -> np.ndarray:
    """The kernels of the first expert of a loop, less those before its first product."""
    inside = found.loop_of == loop
    members, is_product = found.members[inside], found.is_product[inside]
    starts = np.flatnonzero(is_product)[:: int(found.products[loop])]
    return np.asarray(members[starts[0] : starts[1]])


def _with_host_time(waits: pd.DataFrame, launched: Launches) -> pd.DataFrame:
    """The waits with what the host does before each, since it handed over a task or returned from the wait before it:
    a part of the loop as well. Of a stretch that is many times longer than usual as much as `LONGEST` says: the rest
    was no part of the loop."""
    start, end = (waits[name].to_numpy() for name in ("start_ns", "end_ns"))
    entered = np.sort(launched.frame["entered_ns"].to_numpy())
    before = np.concatenate([entered, np.sort(end)])
    before.sort()
    at = np.searchsorted(before, start, side="right") - 1
    stretch = np.where(at >= 0, start - before[np.maximum(at, 0)], 0)
    usual = float(np.median(stretch[stretch > 0])) if (stretch > 0).any() else 0.0
    return waits.assign(start_ns=start - np.minimum(stretch, round(LONGEST * usual)))
