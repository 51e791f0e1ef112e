"""NS010 to NS018, NS030 to NS034, NS036, NS037, NS054 to NS059: chains of small kernels for which there is a fused one.

What fusing them saves is more than the time of the kernels where the host is slow: see the replay.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from advisor_core.api.advisors import Column, Metric, Observations, Params, Reference, Rows, advisor
from advisor_core.api.facts import HOST_EVENTS, KERNELS, Facts, Merging, Replay, aggregated, launches, peaks, replay
from advisors.columns import savings, shares
from advisors.fusion.chains import Chains, fusion_chains
from advisors.fusion.computations import Computation, computations, matches
from advisors.fusion.nodes import kernel_nodes
from advisors.layers.layers import layers
from advisors.layers.places import PLACES, origin
from advisors.messages import message
from advisors.network_structure.fused_attention import measured_ns
from advisors.roofline.bounds import roofline
from advisors.step_kernels import EVIDENCE_COLUMNS, StepKernels, kernel_rows, records, step_kernels


@advisor(
    "network_structure.fusion",
    needs=(step_kernels, fusion_chains, kernel_nodes),
    wants=(replay, launches, HOST_EVENTS, layers, peaks, roofline),
    about=(Column("pattern", "text", "", "which pattern of fusion/computations.yaml", zh="模式"),),
    columns=(
        Column("api", "text", "", "what replaces the chain", zh="接口"),
        Column("chain", "text", "", "the operator types of the chain on which most time is spent", zh="算子链"),
        Column("shape", "text", "", "the largest tensor of that chain", zh="shape"),
        Column("chains", "float", "count", "chains of the forward pass per step", zh="链数"),
        Column("kernels", "float", "count", "kernels in them, per step", zh="kernel 数"),
        Column(
            "saved_launches",
            "float",
            "count",
            "kernels that need not be launched any more, per step",
            zh="节省的下发次数",
        ),
        Column("chain_ns", "float", "ns", "time of the chains per step", zh="算子链"),
        Column("backward_ns", "float", "ns", "part of chain_ns in the chains that autograd runs for them", zh="反向"),
        Column(
            "fused_ns",
            "float",
            "ns",
            "time of the fused kernels per step: bytes moved once at the bandwidth reached, and what the shortest "
            "kernels take; of attention on an NPU what was measured for each score, else its products as they are; of "
            "a chain whose bytes are not known, the chain itself",
            zh="融合算子",
        ),
        Column(
            "kept_ns",
            "float",
            "ns",
            "part of fused_ns in kernels that stay: the products of attention, the copy that makes a plain array of "
            "the input of a rotary embedding",
            zh="保留",
        ),
        *savings("chain_ns less fused_ns"),
        Column(
            "bandwidth",
            "float",
            "B/s",
            "what large elementwise kernels of this profile reach; without such kernels, the best kernel of each chain",
            zh="带宽",
        ),
        Column(
            "fused_kernels",
            "float",
            "count",
            "fused kernels of this kind that run already, per step",
            zh="融合 kernel 数",
        ),
        *shares("saving_ns", "kernel_saving_ns"),
    ),
    evidence=(
        *PLACES,
        Column("types", "text", "", "operator types of the chain", zh="类型"),
    ),
)
def fusion(facts: Facts, params: Params) -> Observations:
    """Chains of small kernels for which there is a fused one, by pattern: their time and what fusing would save."""
    own = facts[step_kernels]
    own.require_tensors()
    chains = facts[fusion_chains]
    found = chains.frame
    on_gpu = facts[kernel_nodes].on_gpu
    moved, kept = _moved_ns(own, found), fused_ns(own, found)
    measured = np.full(len(found), np.nan) if on_gpu else measured_ns(found, facts.get(peaks))
    fused = np.where(np.isnan(measured), kept, measured)
    found = found.assign(
        fused_ns=fused,
        least_ns=_fused_at(
            found,
            chip.hbm if (chip := facts.get(peaks)) is not None else np.nan,
            _least_begin(own, found),
            _products_at_least(facts, own, chains, kept),
        ),
        longest_ns=_fused_at(
            found, np.fmin(found["best_bandwidth"], _reached(own, found)[0]), own.least_ns, np.fmax(kept, fused)
        ),
        moved_ns=np.where(found["kept_ns"] > 0, np.nan, moved),
    )
    # What autograd runs counts only where the forward chain was seen: the same backward runs for other forms too, such
    # as SwiGLU of two separate projections, which the fused kernel cannot take as they are.
    forwards = found.loc[~found["backward"], "pattern"]
    found = found[found["pattern"].isin(forwards)]
    forward = [one for one in computations() if not one.backward and (one.on_gpus or not on_gpu)]
    replayed = facts.get(replay)
    by_pattern, none = dict(iter(found.groupby("pattern"))), found.iloc[:0]
    chains_of = [(computation, by_pattern.get(computation.name, none)) for computation in forward]
    merged = [_merging(mine, chains, own, at_once=computation.at_once) for computation, mine in chains_of]
    of_step = _of_step(merged, replayed)
    rows = [
        _row(*mine, own, merging, on_gpu=on_gpu) | _savings(mine[1], merging, own, total)
        for mine, merging, total in zip(chains_of, merged, of_step, strict=True)
    ]
    frame = pd.DataFrame(rows).assign(
        fused_kernels=_kernels_of([computation.fused for computation in forward], own),
        **{name: pd.Series([row[name] for row in rows], dtype=object) for name in ("chain", "shape")},
    )
    frame["share_of_step"] = frame["saving_ns"] / own.wall_ns
    frame["share_of_computing"] = frame["kernel_saving_ns"] / own.kernel_ns

    def evidence(row: int) -> list[Reference]:
        mine = found[found["pattern"] == frame["pattern"][row]]
        part = own.frame.iloc[chains.of(mine.index.to_numpy())]
        # The chain that the text names; what autograd runs for it is in the table of shapes.
        best = own.frame.iloc[chains.of(np.array([mine.loc[~mine["backward"], "chain_ns"].idxmax()]))]
        by_shape = aggregated(
            mine,
            ["types", "shape"],
            sort=False,
            chains=("kernels", "size"),
            chain_ns=("chain_ns", "sum"),
            fused_ns=("fused_ns", "sum"),
        )
        top = by_shape.sort_values("chain_ns", ascending=False, kind="stable").head(8)
        return [
            Rows(
                message("network_structure.fusion.example"),
                KERNELS,
                best["row"].to_numpy(dtype=np.int64),
                EVIDENCE_COLUMNS,
            ),
            Metric(message("network_structure.fusion.by_shape"), records(top)),
            kernel_rows(message("network_structure.fusion.kernels"), part),
            *origin(facts, part),
        ]

    return Observations(frame, evidence, cure=lambda row: merged[row])


def _reached(own: StepKernels, found: pd.DataFrame) -> tuple[Any, float]:
    return own.reached(found["best_bandwidth"])


def _moved_ns(own: StepKernels, found: pd.DataFrame) -> np.ndarray:
    """The time of the bytes of the fused kernel of each chain; NaN unknown."""
    return np.asarray(np.where(found["fused_bytes"] >= 0, found["fused_bytes"], np.nan) / _reached(own, found)[0] * 1e9)


def fused_ns(own: StepKernels, found: pd.DataFrame) -> np.ndarray:
    """Time of a fused kernel in place of each chain of `Chains`, with the kernels whose work stays and the copy that
    it needs in front of it; NaN unknown."""
    kept, took = found["kept_ns"].to_numpy(), found["chain_ns"].to_numpy()
    moving = _moved_ns(own, found) + np.maximum(_reached(own, found)[1], _least_begin(own, found))
    return np.asarray(np.minimum(kept + found["copied_ns"].to_numpy() + np.where(kept > 0, 0, moving), took))


def _least_begin(own: StepKernels, found: pd.DataFrame) -> np.ndarray:
    """The time of the shortest kernels, ns, for chains that write a row of what they take: the bandwidth that these
    reach counts start and end for the whole. 0 for others."""
    appending = [computation.name for computation in computations() if computation.appends]
    return np.where(found["pattern"].isin(appending), own.least_ns, 0.0)


def _products_at_least(facts: Facts, own: StepKernels, chains: Chains, fused: np.ndarray) -> np.ndarray:
    """The least that a fused kernel takes in which products stay: their operations at the peak of the chip, as it does
    not write the scores that bound them now. ``fused``: what it takes otherwise, and where that is unknown."""
    bounds = facts.get(roofline)
    kept = chains.frame["kept_ns"].to_numpy(dtype=np.float64)
    if bounds is None or not (kept > 0).any():
        return fused
    computing = np.bincount(chains.chain_of, bounds.computing_ns[chains.members], minlength=len(kept))
    known = (kept > 0) & (computing > 0)
    return np.where(known, np.minimum(fused, fused - kept + computing), fused)


def _fused_at(found: pd.DataFrame, bandwidth: Any, begin: float | np.ndarray, otherwise: np.ndarray) -> np.ndarray:
    """The time of fused kernels that move their bytes at this bandwidth (B/s), from ``begin`` ns on; ``otherwise``
    where a kernel of the chain stays, or the bandwidth is unknown."""
    moved = np.where(found["fused_bytes"] >= 0, found["fused_bytes"], np.nan) / bandwidth * 1e9
    took = np.minimum(moved + begin + found["copied_ns"].to_numpy(), found["chain_ns"].to_numpy())
    return np.where((found["kept_ns"] == 0) & np.isfinite(took), took, otherwise)


def _kernels_of(fused: Sequence[Sequence[str]], own: StepKernels) -> list[float]:
    """The number of kernels of each group of fused operator types per step."""
    types = own.frame["type"].array
    counts = np.bincount(types.codes, minlength=len(types.categories)).tolist()
    run = {str(name): count for name, count in zip(types.categories, counts, strict=True)}
    return [sum(count for name, count in run.items() if matches(name, names)) / own.steps for names in fused]


def _row(
    computation: Computation, mine: pd.DataFrame, own: StepKernels, merging: Merging | None, *, on_gpu: bool
) -> dict[str, object]:
    took, kernels, kept, moved_ns = (mine[name].to_numpy() for name in ("chain_ns", "kernels", "kept_ns", "moved_ns"))
    copied = mine["copied_ns"].to_numpy()
    backward, moving = mine["backward"].to_numpy(dtype=np.bool_), moved_ns > 0
    fused = len(mine) if merging is None else len(merging.after_ns)
    largest: Any = (None, None)
    if not backward.all():
        by_shape = aggregated(mine[~backward], ["types", "shape"], sort=False, took=("chain_ns", "sum"))
        most = int(by_shape["took"].to_numpy().argmax())
        largest = by_shape["types"].iloc[most], by_shape["shape"].iloc[most]
    return {
        "pattern": computation.name,
        "api": computation.on_gpus if on_gpu else computation.api,
        "chain": largest[0],
        "shape": largest[1],
        "chains": float((~backward).sum()) / own.steps,
        "kernels": float(kernels.sum()) / own.steps,
        "saved_launches": float(kernels.sum() - fused - (copied > 0).sum()) / own.steps,
        "chain_ns": float(took.sum()) / own.steps,
        "backward_ns": float(took[backward].sum()) / own.steps,
        "kept_ns": float(kept.sum() + copied.sum()) / own.steps,
        "bandwidth": float(mine["fused_bytes"].to_numpy()[moving].sum() / moved_ns[moving].sum() * 1e9)
        if moving.any()
        else own.bandwidth,
    }


def _merging(mine: pd.DataFrame, chains: Chains, own: StepKernels, *, at_once: bool) -> Merging | None:
    """Each chain of a pattern as one kernel, or (``at_once``) all that stand right behind one another; ``None`` where
    the bytes of no chain are known."""
    before, fused = (mine[name].to_numpy(dtype=np.float64) for name in ("chain_ns", "fused_ns"))
    unknown = np.isnan(fused)
    if unknown.all():
        return None
    # The numbers of chains are those of the whole frame, ascending.
    inside = np.isin(chains.chain_of, mine.index.to_numpy())
    number = np.searchsorted(mine.index.to_numpy(), chains.chain_of[inside])
    members = chains.members[inside]
    tasks = own.frame["work"].to_numpy()[members]
    group = _in_a_row(members, number, len(mine)) if at_once else np.arange(len(mine))
    begin = _reached(own, mine)[1] if at_once else 0.0

    def together(ns: np.ndarray) -> np.ndarray:
        """The times of the chains as one kernel, which begins and ends once."""
        moving = np.bincount(group, np.maximum(np.where(unknown, before, ns) - begin, 0.0))
        return np.asarray(moving + begin, dtype=np.float64)

    shortest, longest = (mine[name].to_numpy(dtype=np.float64) for name in ("least_ns", "longest_ns"))
    took = np.asarray(np.bincount(group, before), dtype=np.float64)
    return Merging(
        tasks,
        group[number],
        took,
        together(fused),
        least=Merging(tasks, group[number], took, together(np.maximum(longest, fused)), longest=1.0),
        most=Merging(tasks, group[number], took, together(np.minimum(shortest, fused)), longest=np.inf),
    )


def _in_a_row(members: np.ndarray, number: np.ndarray, count: int) -> np.ndarray:
    """For each chain which of the runs of chains, with no other kernel in between, it belongs to. ``members``: rows of
    kernels in order of stream and start; ``number``: of their chains."""
    first, last = np.full(count, np.iinfo(np.int64).max), np.full(count, -1)
    np.minimum.at(first, number, members)
    np.maximum.at(last, number, members)
    order = np.argsort(first, kind="stable")
    runs = np.concatenate([[0], np.cumsum(first[order][1:] != last[order][:-1] + 1)])
    group = np.empty(count, dtype=np.int64)
    group[order] = runs
    return group


def _of_step(merged: Sequence[Merging | None], replayed: Replay | None) -> list[float | None]:
    """By how much the recorded steps are shorter with each of these, ns; ``None`` where that cannot be replayed."""
    if replayed is None:
        return [None] * len(merged)
    saved = iter(replayed.saved_by_each([merging for merging in merged if merging is not None]))
    return [None if merging is None else float(next(saved)) for merging in merged]


def _savings(mine: pd.DataFrame, merging: Merging | None, own: StepKernels, of_step: float | None) -> dict[str, float]:
    """The savings per step of fusing the chains of a pattern; unknown where the bytes of no chain are known.
    ``of_step``: see `_of_step`."""
    if len(mine) and merging is None:
        return dict.fromkeys(("fused_ns", "kernel_saving_ns", "saving_ns", "launch_saving_ns"), np.nan)
    after = 0.0 if merging is None else float(merging.after_ns.sum())
    kernels = 0.0 if merging is None else float(merging.before_ns.sum()) - after
    total = kernels if of_step is None else of_step
    return {
        "fused_ns": after / own.steps,
        "kernel_saving_ns": kernels / own.steps,
        "saving_ns": total / own.steps,
        "launch_saving_ns": max(total - kernels, 0.0) / own.steps,
    }
