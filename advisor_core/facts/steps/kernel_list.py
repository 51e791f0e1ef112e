"""Recordings that are lists of kernels: no loop runs, and the time between two launches means nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np
import pandas as pd

from advisor_core.contracts.facts import Facts, fact
from advisor_core.contracts.missing import NotApplicable
from advisor_core.contracts.profile import PROFILE
from advisor_core.contracts.tables import HOST_EVENTS, KERNELS
from advisor_core.facts.device.work import work
from advisor_core.text.messages import message

FEW_KERNELS: Final = 3
"""A benchmark of one operator launches at most so many kinds of kernels: the operator, and what clears or casts its
tensors. Our choice."""

MOSTLY_GAPS: Final = 0.5
"""Share of the time from one launch to the next in which no kernel runs, at the median, from which the gaps are those
of a script. Our choice."""

HOLES: Final = 0.1
"""Share of the recording in which rows are missing, from which it is no step any more: it would make idle time of a
tenth of the step, which is what the broad rules call a problem. Our choice."""

COLD: Final = 1.5
"""Least ratio of the first launch of a benchmark to the median of the others, if it is a cold start. Our
choice."""

LAUNCHES: Final = 5
"""Fewer launches tell a benchmark neither from a step nor a cold start from a steady call. Our choice."""

ROUNDING_NS: Final = 1_000
"""A gap may be longer than the exporter's wait time by this much: its times are rounded to a quarter of a microsecond
(real gpt3 export)."""


@dataclass(frozen=True)
class KernelList:
    """``starts`` and ``ends``: the launches, each from its first to its last kernel, disjoint, in order of time.
    ``why``: ``benchmark`` (a few kinds of kernels, again and again) or ``holes`` (rows are missing between others, so
    that neither gaps nor steps are known). ``cold``: how many launches at the beginning are no steady ones, 0 or 1."""

    starts: np.ndarray
    ends: np.ndarray
    why: Literal["benchmark", "holes"]
    cold: int = 0


@fact("kernel_list", needs=(work, PROFILE), wants=(KERNELS, HOST_EVENTS))
def kernel_list(facts: Facts) -> KernelList:
    """The launches of a recording that is no loop: a benchmark of one operator, or rows with holes between them.

    A benchmark launches a few kinds of kernels again and again, without collectives and without a framework, and lets
    the device wait for most of the time between two launches.
    """
    device = facts[work]
    if device.empty:
        raise NotApplicable(message("kernel_list.loop"))
    starts, ends = device["start_ns"].to_numpy(), device["end_ns"].to_numpy()
    reach = np.maximum.accumulate(ends)
    wall = int(reach[-1] - starts[0])
    missing = _holes(device, facts.get(KERNELS))
    if wall and int(missing.sum()) > HOLES * wall:
        return _launches(starts, reach, missing > 0, "holes")
    again = _begins(device)
    framework = facts[PROFILE].framework is not None or _has_framework(facts.get(HOST_EVENTS))
    if again.sum() < LAUNCHES or framework:
        raise NotApplicable(message("kernel_list.loop"))
    found = _launches(starts, reach, again, "benchmark")
    idle = (found.starts[1:] - found.ends[:-1]) / np.maximum(np.diff(found.starts), 1)
    if np.median(idle) < MOSTLY_GAPS:
        raise NotApplicable(message("kernel_list.loop"))
    lengths = found.ends - found.starts
    cold = bool(lengths[0] > COLD * np.median(lengths[1:]))
    return replace(found, cold=int(cold))


def holes(kernels: pd.DataFrame) -> np.ndarray:
    """For each row of ``kernels``: how much longer the gap before it is than the exporter says that the task waited
    [ns]; in that time ran tasks whose rows are missing. 0 where the exporter tells no wait."""
    order = np.argsort(kernels["start_ns"].to_numpy(), kind="stable")
    starts = kernels["start_ns"].to_numpy()[order]
    reach = np.maximum.accumulate(starts + kernels["duration_ns"].to_numpy()[order])
    waits = kernels["wait_ns"].to_numpy()[order]
    gaps = np.zeros(len(order), dtype=np.int64)
    gaps[1:] = np.maximum(starts[1:] - reach[:-1], 0)
    beyond = gaps - waits
    found = np.zeros(len(order), dtype=np.int64)
    found[order] = np.where((waits > 0) & (beyond > ROUNDING_NS), beyond, 0)
    return found


def _holes(device: pd.DataFrame, kernels: pd.DataFrame | None) -> np.ndarray:
    """As `holes`, for each row of the fact ``work``."""
    if kernels is None:
        return np.zeros(len(device), dtype=np.int64)
    rows: np.ndarray = device["row"].to_numpy()
    return np.asarray(holes(kernels)[rows], dtype=np.int64)


def _begins(device: pd.DataFrame) -> np.ndarray:
    """At which kernels a launch of the one operator begins: at each of the kind that comes most often, and of several
    at the one that comes first. None where there are too many kinds, steps or collectives for a benchmark."""
    kinds, names = pd.factorize(device["type"].astype(str).where(device["type"] != "", device["name"].astype(str)))
    if len(names) > FEW_KERNELS or device["communication"].any() or device["step"].nunique() > 1:
        return np.zeros(len(device), dtype=bool)
    often = int(np.bincount(kinds).argmax())
    begins: np.ndarray = kinds == often
    return begins


def _has_framework(events: pd.DataFrame | None) -> bool:
    return events is not None and bool((events["category"] == "cpu_op").any())


def _launches(
    starts: np.ndarray, reach: np.ndarray, borders: np.ndarray, why: Literal["benchmark", "holes"]
) -> KernelList:
    first = np.unique(np.append(0, np.flatnonzero(borders)))
    last = np.append(first[1:], len(starts)) - 1
    return KernelList(starts[first], reach[last], why)
