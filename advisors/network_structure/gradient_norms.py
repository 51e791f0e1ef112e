"""NS046: the norms of gradients that are clipped, one kernel or several for each gradient."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from advisor_core.api.advisors import Column, Observations, Params, Reference, advisor
from advisor_core.api.facts import (
    HOST_EVENTS,
    Facts,
    Merging,
    NotApplicable,
    launches,
    replay,
    sync_calls,
    union,
    work,
)
from advisors.columns import savings, shares
from advisors.fusion.clipping import NORM, NUMBER, SCALE, Clipping, gradient_clipping
from advisors.host_dispatch.waits import launch_spans
from advisors.measuring import row
from advisors.messages import message
from advisors.network_structure.memory_bound_chains import series_text
from advisors.step_kernels import StepKernels, call_stack, kernel_rows, step_kernels

if TYPE_CHECKING:
    import numpy.typing as npt

Ints: TypeAlias = "npt.NDArray[np.int64]"
Floats: TypeAlias = "npt.NDArray[np.float64]"

TENSORS_OF_A_LIST = 24
"""One kernel on a list of tensors takes the norms of so many at most: docs/sources.md#norms-of-lists."""


@dataclass(frozen=True)
class _Lists:
    """The kernels that a kernel on a list of gradients would replace. ``members``: rows of the frame of `StepKernels`;
    ``list_of``: the list of each, from 0. By list: ``before_ns`` and ``after_ns`` of its kernels."""

    members: Ints
    list_of: Ints
    before_ns: Floats
    after_ns: Floats


@advisor(
    "network_structure.gradient_norms",
    needs=(step_kernels, gradient_clipping, work),
    wants=(replay, launches, sync_calls, HOST_EVENTS),
    columns=(
        Column("gradients", "float", "count", "gradients of which a norm is computed, per step", zh="梯度数"),
        Column("norm_kernels", "float", "count", "kernels for their norms, per step", zh="范数 kernel 数"),
        Column(
            "scale_kernels",
            "float",
            "count",
            "kernels that multiply gradients by one number, per step",
            zh="缩放 kernel 数",
        ),
        Column(
            "read_backs",
            "float",
            "ratio",
            "how often the host waits for the device between these norms, for each; 0 where that is not recorded",
            zh="读回比例",
        ),
        Column("scaled", "float", "count", "how often each gradient is multiplied", zh="缩放次数"),
        Column("chain", "text", "", "the operator types of the first norms in order, in short", zh="算子链"),
        Column("norm_time_ns", "float", "ns", "time of the kernels for norms per step", zh="范数耗时"),
        Column("scale_ns", "float", "ns", "time of the kernels that multiply, per step", zh="缩放耗时"),
        Column("idle_ns", "float", "ns", "idle between the kernels for norms, per step", zh="空闲"),
        Column("moved_bytes", "float", "B", "bytes that all these kernels read and write, per step", zh="搬运字节"),
        Column("list_kernels", "float", "count", "kernels on lists instead, per step", zh="列表 kernel 数"),
        Column("saved_launches", "float", "count", "kernels that need not be launched, per step", zh="节省的下发次数"),
        Column(
            "fused_ns",
            "float",
            "ns",
            "time of the kernels on lists per step: each gradient read once at the bandwidth reached, and what the "
            "shortest kernels take",
            zh="融合算子",
        ),
        *savings(
            "norm_time_ns less fused_ns",
            otherwise="kernel_saving_ns and the idle time between the kernels that become one",
        ),
        *shares("saving_ns", "kernel_saving_ns"),
    ),
)
def gradient_norms(facts: Facts, params: Params) -> Observations:
    """Norms of gradients: their kernels, and what kernels on lists of gradients would take."""
    own = facts[step_kernels]
    own.require_tensors()
    found = facts[gradient_clipping]
    if not len(found.members):
        raise NotApplicable(message("gradient_norms.none"))
    lists = _lists(own, found)
    idle_ns = _idle_ns(facts, own, lists)
    merging = Merging(own.frame["work"].to_numpy()[lists.members], lists.list_of, lists.before_ns, lists.after_ns)
    kernel_saving = float((lists.before_ns - lists.after_ns).sum())
    replayed = facts.get(replay)
    if replayed is None or launches not in facts:
        saving = kernel_saving + idle_ns
    else:
        saving = float(replayed.saved_by_each([merging])[0])
    took = own.frame["duration_ns"].to_numpy(dtype=np.float64)[found.members]
    moved = own.frame["bytes"].to_numpy()[found.members]
    scales = found.role == SCALE
    norms = own.frame.iloc[lists.members]
    gradients = int(found.gradients.sum())
    result = row(
        gradients=gradients / own.steps,
        norm_kernels=len(lists.members) / own.steps,
        scale_kernels=float(scales.sum()) / own.steps,
        read_backs=_read_backs(facts, own, lists) / gradients,
        scaled=float(found.tensors[scales].sum()) / gradients,
        chain=series_text(norms["type"].iloc[lists.list_of == 0]),
        norm_time_ns=float(lists.before_ns.sum()) / own.steps,
        scale_ns=float(took[scales].sum()) / own.steps,
        idle_ns=idle_ns / own.steps,
        moved_bytes=float(np.maximum(moved, 0).sum()) / own.steps,
        list_kernels=len(lists.after_ns) / own.steps,
        saved_launches=(len(lists.members) - len(lists.after_ns)) / own.steps,
        fused_ns=float(lists.after_ns.sum()) / own.steps,
        **own.savings(kernel_saving, saving),
    )

    def evidence(_: int) -> list[Reference]:
        products = own.frame.iloc[found.members[scales]]
        shown = [kernel_rows(message("gradient_norms.rows"), norms)]
        if len(products):
            shown.append(kernel_rows(message("gradient_norms.scales"), products))
        return [*shown, *call_stack(facts, norms)]

    return Observations(result, evidence, cure=lambda _: merging)


def _read_backs(facts: Facts, own: StepKernels, lists: _Lists) -> int:
    """Times that the host waits for the device from the launch of the first norm of a list to that of the last."""
    if not facts.knows(launches, sync_calls):
        return 0
    tasks = own.frame["work"].to_numpy()[lists.members]
    first, last = launch_spans(facts[launches], tasks, lists.list_of, len(lists.after_ns))
    began = np.sort(facts[sync_calls]["start_ns"].to_numpy())
    return int(np.maximum(np.searchsorted(began, last) - np.searchsorted(began, first), 0).sum())


def _lists(own: StepKernels, found: Clipping) -> _Lists:
    """The kernels from the first norm of each clipping to its last, by lists of gradients; the arithmetic behind an
    earlier norm goes with it: a kernel on a list gives the norm itself."""
    of_norms = np.where(found.role == NORM, found.tensors, 0)
    of_earlier = np.cumsum(found.gradients) - found.gradients
    # Gradients of the clipping that were read before each kernel.
    before = np.cumsum(of_norms) - of_norms - of_earlier[found.clip_of]
    between = (before > 0) & (before < found.gradients[found.clip_of])
    kept = (found.role == NORM) | ((found.role == NUMBER) & between)
    members, reads = found.members[kept], of_norms[kept] > 0
    # What reads no gradient works on what was read before it.
    number = np.where(reads, before[kept], np.maximum(before[kept] - 1, 0)) // TENSORS_OF_A_LIST
    lists, list_of = np.unique(found.clip_of[kept] * int(found.gradients.max()) + number, return_inverse=True)
    part = own.frame.iloc[members]
    took = np.bincount(list_of, part["duration_ns"].to_numpy())
    moved = np.where(reads, part["bytes"].to_numpy(), 0).astype(np.float64)
    bandwidth, begin = own.reached(own.best_bandwidth(members[reads]))
    read_bytes = np.where(np.bincount(list_of, moved < 0) > 0, np.nan, np.bincount(list_of, moved))
    alone = np.bincount(list_of, minlength=len(lists)) == 1
    after = np.where(alone, took, np.fmin(read_bytes / bandwidth * 1e9 + begin, took))
    return _Lists(members, list_of, took.astype(np.float64), after.astype(np.float64))


def _idle_ns(facts: Facts, own: StepKernels, lists: _Lists) -> float:
    """Idle of the device between kernels of the same list."""
    device = facts[work]
    busy = union(device["start_ns"].to_numpy(), device["end_ns"].to_numpy())
    same = np.diff(lists.list_of) == 0
    starts = own.frame["end_ns"].to_numpy()[lists.members][:-1][same]
    ends = own.frame["start_ns"].to_numpy()[lists.members][1:][same]
    ends = np.maximum(ends, starts)
    return float((ends - starts - (busy.measure(ends) - busy.measure(starts))).sum())
