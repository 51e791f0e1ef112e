"""The idle time of each phase by cause: what several advisors observe."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pandas as pd

from advisor_core.api import Scalar
from advisor_core.api.advisors import Column, Interval, Metric, Reference
from advisor_core.api.facts import KERNELS, Facts, bookings, phase_ledger, phases, steps, work
from advisors.columns import SHARE, TIME
from advisors.measuring import DEVICE_LANE, next_kernels, share, step_count, step_ns, under
from advisors.messages import message
from advisors.rl.columns import KIND

LATE: Final = ("idle/host/python", "idle/host/framework", "idle/host/runtime")
"""The host had not launched the next task and was at work on its own."""

_REFILLING: Final = ("idle/sync", "idle/launch_latency")
"""Further costs of a host that launches task by task: filling the queue again when it had to be drained, and the way of
each launch to the device."""

_CAUSES: Final = 8
_LARGEST_GAPS: Final = 3

NEEDS: Final = (phases, phase_ledger, steps, bookings, work)
WANTS: Final = (KERNELS,)

COLUMNS: Final = (
    KIND,
    Column("duration_ns", "float", "ns", "time of the phase per step", zh="时长"),
    Column("phase_share", "float", "ratio", "duration_ns over the wall time of the step", zh="阶段占 step 比例"),
    Column("idle_ns", "float", "ns", "of it: the device does nothing", zh="空闲"),
    Column("idle_share", "float", "ratio", "idle_ns over duration_ns", zh="空闲占比"),
    Column("idle_of_step", "float", "ratio", "idle_ns over the wall time of the step", zh="空闲占 step 比例"),
    Column(
        "own_idle_share",
        "float",
        "ratio",
        "idle_ns over duration_ns without the time in which the rank waits for others in a collective",
        zh="扣除等待后的空闲占比",
    ),
    Column("computing_share", "float", "ratio", "of the phase: the device computes", zh="计算占比"),
    Column(
        "communicating_share",
        "float",
        "ratio",
        "of the phase: communication that no computing covers",
        zh="未掩盖通信占比",
    ),
    Column("cause", "text", "", "leaf of the ledger with most of the idle time of the phase", zh="原因"),
    Column("cause_share", "float", "ratio", "of the idle time of the phase: this leaf", zh="主因占比"),
    Column("second_cause", "text", "", "the leaf with most of the rest, none if there is none", zh="次要原因"),
    Column("second_share", "float", "ratio", "of the idle time of the phase: that leaf", zh="次因占比"),
    Column("unknown_share", "float", "ratio", "of the idle time of the phase: no cause known", zh="未知占比"),
    Column(
        "late_ns",
        "float",
        "ns",
        "idle while the host was still to launch: Python, operators, runtime calls",
        zh="迟到",
    ),
    Column("late_share", "float", "ratio", "late_ns over duration_ns", zh="迟到占比"),
    Column(
        "launch_ns",
        "float",
        "ns",
        "late_ns, and idle after synchronising calls and between launch and start",
        zh="下发",
    ),
    Column("kernels", "float", "count", "device tasks that start in the phase, per step", zh="kernel 数"),
    Column("mean_kernel_ns", "float", "ns", "their mean duration, none without tasks", zh="kernel 平均时长"),
    Column("largest_gap_ns", "float", "ns", "longest idle gap that begins in the phase", zh="最长空隙"),
)

EVIDENCE: Final = (TIME, SHARE)


class PhaseIdle:
    """The idle time of the phases of a rank. ``frame``: one row per phase, its name and `COLUMNS`; times in ns per
    step."""

    def __init__(self, facts: Facts) -> None:
        spans = self._spans = facts[phases]
        booked = facts[bookings]
        count, wall = step_count(facts), step_ns(facts)
        ledger = facts[phase_ledger]
        per_phase = self._per_phase = ledger[ledger["phase"] != ""].groupby(["phase", "path"])["ns"].sum() / count
        tasks = _in_stages(spans, facts[work]["start_ns"].to_numpy())
        lasting = (facts[work]["end_ns"] - facts[work]["start_ns"]).groupby(tasks).agg(["size", "mean"])
        gaps = self._gaps = booked.gaps.assign(ns=booked.gaps["end_ns"] - booked.gaps["start_ns"])
        gaps["phase"] = _in_stages(spans, gaps["start_ns"].to_numpy())
        kinds = dict(zip(spans["phase"].tolist(), spans["kind"].tolist(), strict=True))
        rows = []
        for phase in kinds:  # a handful
            leaves = per_phase.loc[phase]
            total, unused, late = float(leaves.sum()), under(leaves, "idle"), under(leaves, *LATE)
            causes = _causes(leaves)
            first, second = (causes.index[n] if len(causes) > n else None for n in (0, 1))
            gap_lengths = gaps.loc[gaps["phase"] == phase, "ns"]
            has_tasks = phase in lasting.index
            rows.append(
                {
                    "phase": phase,
                    "kind": kinds[phase],
                    "duration_ns": total,
                    "phase_share": share(total, wall),
                    "idle_ns": unused,
                    "idle_share": share(unused, total),
                    "idle_of_step": share(unused, wall),
                    "own_idle_share": share(unused, total - under(leaves, "communication/wait")),
                    "computing_share": share(under(leaves, "compute"), total),
                    "communicating_share": share(under(leaves, "communication"), total),
                    "cause": first,
                    "cause_share": share(float(causes.iloc[0]), unused) if first else np.nan,
                    "second_cause": second,
                    "second_share": share(float(causes.iloc[1]), unused) if second else np.nan,
                    "unknown_share": share(under(leaves, "idle/unknown", "idle/host/unknown"), unused),
                    "late_ns": late,
                    "late_share": share(late, total),
                    "launch_ns": under(leaves, *LATE, *_REFILLING),
                    "kernels": float(lasting["size"][phase]) / count if has_tasks else 0.0,
                    "mean_kernel_ns": float(lasting["mean"][phase]) if has_tasks else np.nan,
                    "largest_gap_ns": float(gap_lengths.max()) if len(gap_lengths) else 0.0,
                }
            )
        self.frame = pd.DataFrame(rows)
        self._facts = facts

    def evidence(self, number: int) -> Sequence[Reference]:
        """Where one phase lies, its idle time by cause, and the longest gaps with the tasks behind them."""
        phase = str(self.frame["phase"].iloc[number])
        causes, unused = _causes(self._per_phase.loc[phase]), float(self.frame["idle_ns"].iloc[number])
        cause_rows: list[dict[str, Scalar]] = [
            {"cause": str(path), "time": float(ns), "share": share(float(ns), unused)}
            for path, ns in causes.head(_CAUSES).items()
        ]
        references: list[Reference] = [
            Metric(message("rl.idle_by_cause", phase=phase), cause_rows),
            *_longest(self._spans, phase, 1),
        ]
        largest = self._gaps[self._gaps["phase"] == phase].nlargest(_LARGEST_GAPS, "ns")
        references += [
            Interval(message("common.gap"), int(start), int(end), DEVICE_LANE)
            for start, end in zip(largest["start_ns"], largest["end_ns"], strict=True)
        ]
        return [*references, *next_kernels(self._facts, largest["next"])]


def _causes(leaves: pd.Series) -> pd.Series:
    """The idle leaves, largest first."""
    unused = leaves[leaves.index.str.startswith("idle/")]
    return unused[unused > 0].sort_values(ascending=False, kind="stable")


def _in_stages(spans: pd.DataFrame, times: np.ndarray) -> pd.Series:
    """The phase that holds each moment, '' for none; the spans are disjoint and in order."""
    place = np.searchsorted(spans["start_ns"].to_numpy(), times, side="right") - 1
    inside = (place >= 0) & (times < spans["end_ns"].to_numpy()[np.maximum(place, 0)])
    names = np.append(spans["phase"].astype(str).to_numpy(dtype=object), "")
    return pd.Series(names[np.where(inside, place, -1)], dtype=object)


def _longest(spans: pd.DataFrame, phase: str, limit: int) -> list[Reference]:
    """The longest stretches of a phase."""
    stretches = spans[spans["phase"] == phase]
    largest = stretches.assign(ns=stretches["end_ns"] - stretches["start_ns"]).nlargest(limit, "ns")
    return [
        Interval(message("rl.span", phase=phase), int(start), int(end), DEVICE_LANE)
        for start, end in zip(largest["start_ns"], largest["end_ns"], strict=True)
    ]
