"""The kernels of the profiled steps, as the computing advisors look at them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from advisor_core.api import Scalar, Text
from advisor_core.api.advisors import Reference, Rows, Stack
from advisor_core.api.facts import (
    HOST_EVENTS,
    KERNELS,
    SOURCE_ROW,
    Column,
    Facts,
    Groups,
    Shortening,
    Unavailable,
    fact,
    frames_of,
    kernel_type,
    launches,
    moved_bytes,
    steps,
    work,
)
from advisors.messages import message

SIGNATURE = ("type", "input_shapes", "input_dtypes", "input_formats", "output_shapes", "output_dtypes")

TENSORS = ("input_shapes", "input_dtypes", "output_shapes", "output_dtypes")
"""Columns that tell the tensors which a kernel reads and writes."""

STREAMING = ("elementwise", "cast", "copy")
"""Classes whose kernels do nothing but read and write: what they reach is what the memory gives."""

ON_LISTS = ("Foreach", "aten::_foreach_")
"""Operator types of kernels on lists of tensors begin so."""

LONG_ENOUGH_NS = 20_000
"""A kernel that says something about bandwidth: start and end take 2 to 14 us (measured on two real exports)."""

VECTOR_CORES = ("AI_VECTOR_CORE", "MIX_AIV")

NEXT_TO_NOTHING = 64 * 1024
"""Bytes that take less than a tenth of a microsecond at the bandwidth of any chip that the exports come from."""

EVIDENCE_COLUMNS = ("type", "start_ns", "duration_ns", "input_shapes", "input_dtypes", "output_shapes")
PIPE_COLUMNS = (
    *EVIDENCE_COLUMNS,
    "block_dim",
    "aic_mac_ns",
    "aic_mte1_ns",
    "aic_mte2_ns",
    "aic_fixpipe_ns",
    "aiv_vec_ns",
    "aiv_mte2_ns",
    "aiv_mte3_ns",
)


COLUMNS = (
    *KERNELS.columns,
    SOURCE_ROW,
    Column("row", "int", "", "row of kernels"),
    Column("work", "int", "", "row of work"),
    Column("operator_class", "text", "", "class in the ledger"),
    Column("end_ns", "int", "ns", "end"),
    Column("bytes", "int", "B", "moved at least, -1 unknown"),
    Column("signature", "int", "", "kernels with equal type, shapes, dtypes and formats share one"),
)


@dataclass(frozen=True)
class StepKernels:
    """``frame``: the computing kernels that start inside the steps, in order of stream and start. ``begins``: whether
    another stream or step begins with this kernel; ``breaks``: whether a chain of kernels ends before it, because of
    that or because a collective ran in between. ``wall_ns``: of a step, mean. ``typed``: whether operator types are
    recorded; where they are not, they are told by the names of the kernels (level 0)."""

    frame: pd.DataFrame
    begins: np.ndarray
    breaks: np.ndarray
    steps: int
    wall_ns: float
    typed: bool = True

    def parts(self) -> list[np.ndarray]:
        """The rows of each stream and step."""
        return np.split(np.arange(len(self.frame)), np.flatnonzero(self.begins)[1:])

    @cached_property
    def firsts(self) -> np.ndarray:
        """The row of the first kernel of each signature, by signature."""
        return np.unique(self.frame["signature"].to_numpy(), return_index=True)[1]

    @cached_property
    def goes_on(self) -> np.ndarray:
        """Mask of the kernels that go on with the call of the kernel before: on GPUs, an operator on lists of tensors
        launches several kernels, of which the first one has the tensors of all."""
        return _goes_on(self.frame, self.begins)

    @cached_property
    def kernel_ns(self) -> float:
        """Summed duration of the kernels of a step, mean."""
        return float(self.frame["duration_ns"].sum()) / self.steps

    @cached_property
    def shaped(self) -> bool:
        """Whether any shape is recorded; kernels of a captured graph have a type and no shapes."""
        return bool((self.frame["input_shapes"] != "").any() or (self.frame["output_shapes"] != "").any())

    def require_shapes(self) -> None:
        """Raises `Unavailable` where no shapes are recorded."""
        if not self.shaped:
            raise Unavailable(message("kernels.unshaped"), message("kernels.unshaped.collect"), ("level1",))

    def require_tensors(self) -> None:
        """Raises `Unavailable` where shapes or dtypes of inputs or outputs are not recorded of any kernel: the flow of
        data can then not be followed from one kernel to the next."""
        if not self._flowing:
            raise Unavailable(message("kernels.unflowing"), message("kernels.unshaped.collect"), ("level1",))

    @cached_property
    def _flowing(self) -> bool:
        return all((self.frame[name] != "").any() for name in TENSORS)

    @cached_property
    def bandwidth(self) -> float:
        """B/s that large streaming kernels of this profile reach; NaN if it has none."""
        frame = self.frame
        known = frame["operator_class"].isin(STREAMING) & (frame["bytes"] > 0) & (frame["duration_ns"] > LONG_ENOUGH_NS)
        # Of an operator whose results are not known the inputs may be caches of which it touches a part.
        known &= frame["output_shapes"] != ""
        total = float(frame.loc[known, "duration_ns"].sum())
        return float(frame.loc[known, "bytes"].sum()) / total * 1e9 if total else float("nan")

    @cached_property
    def least_ns(self) -> float:
        """Median duration of a kernel that moves next to nothing, ns; 0 if the profile has none."""
        frame = self.frame
        tiny = frame["core"].isin((*VECTOR_CORES, "")) & (frame["bytes"] > 0) & (frame["bytes"] <= NEXT_TO_NOTHING)
        return float(frame.loc[tiny, "duration_ns"].median()) if tiny.any() else 0.0

    def reached(self, best: Any) -> tuple[Any, float]:
        """The bandwidth of a fused kernel, B/s, and what it takes besides, ns. ``best``: what the best kernel of those
        that it replaces reaches, which counts its start and end; what large kernels reach hides them."""
        return (self.bandwidth, self.least_ns) if np.isfinite(self.bandwidth) else (best, 0.0)

    def best_bandwidth(self, rows: np.ndarray) -> float:
        """B/s that the best of the kernels at these rows reaches; NaN where no bytes are known."""
        part = self.frame.iloc[rows]
        speed = part["bytes"].to_numpy() / np.maximum(part["duration_ns"].to_numpy(), 1) * 1e9
        return float(speed.max()) if len(speed) and speed.max() > 0 else float("nan")

    def shares(self, per_step: pd.Series) -> dict[str, pd.Series]:
        """``share_of_step`` and ``share_of_computing`` of times per step."""
        return {"share_of_step": per_step / self.wall_ns, "share_of_computing": per_step / self.kernel_ns}

    def savings(self, kernels_ns: float, steps_ns: float) -> dict[str, float]:
        """The columns `savings` and `shares` of a finding that saves so much kernel time, and time, of all steps."""
        return {
            "kernel_saving_ns": kernels_ns / self.steps,
            "saving_ns": steps_ns / self.steps,
            "launch_saving_ns": max(steps_ns - kernels_ns, 0.0) / self.steps,
            "share_of_step": steps_ns / self.steps / self.wall_ns,
            "share_of_computing": kernels_ns / self.steps / self.kernel_ns,
        }

    def shorter(self, rows: pd.DataFrame) -> Shortening:
        """The cure that makes these kernels shorter, all together by as much as the rule promises."""
        return Shortening(rows["work"].to_numpy(dtype=np.int64), self.steps)


@fact("named_kernels", needs=(KERNELS, work, steps), frames={"frame": COLUMNS})
def named_kernels(facts: Facts) -> StepKernels:
    """The same with types that the names of the kernels tell, where none are recorded (level 0).

    Only for what follows from types and times. What needs to know which kernels belong to a computation, or which shape
    they have, cannot be answered then: a measurement that leaves it out would say more than it does at level 1."""
    kernels, device, windows = facts[KERNELS], facts[work], facts[steps]
    start, end = int(windows["start_ns"].min()), int(windows["end_ns"].max())
    inside = (device["start_ns"] >= start) & (device["start_ns"] < end)
    own = device[inside & ~device["communication"]].sort_values(["stream", "start_ns", "end_ns"], kind="stable")
    rows = own["row"].to_numpy()
    frame = kernels.iloc[rows].reset_index(drop=True)
    for name in ("type", "core"):
        frame[name] = frame[name].cat.remove_unused_categories()
    if not (typed := bool((frame["type"] != "").any())):
        frame["type"] = _types_of(frame["name"])
    frame["row"], frame["work"] = rows, own.index.to_numpy()
    frame["operator_class"] = own["operator_class"].to_numpy()
    frame["end_ns"] = own["end_ns"].to_numpy()
    begins = _begins(frame, windows)
    frame["bytes"] = _shared(moved_bytes(frame).to_numpy(), frame["duration_ns"].to_numpy(), _goes_on(frame, begins))
    frame["signature"] = Groups(frame, SIGNATURE, sort=False).codes
    wall = float((windows["end_ns"] - windows["start_ns"]).sum()) / len(windows)
    breaks = begins | _behind_collectives(frame, device[device["communication"]])
    return StepKernels(frame, begins, breaks, len(windows), wall, typed)


@fact("step_kernels", needs=(named_kernels,), frames={"frame": COLUMNS})
def step_kernels(facts: Facts) -> StepKernels:
    """The computing kernels of the profiled steps, with class, moved bytes and the borders of chains, where operator
    types are recorded."""
    kernels = facts[named_kernels]
    if not kernels.typed:
        raise Unavailable(message("kernels.untyped"), message("kernels.untyped.collect"), ("level1",))
    return kernels


def _types_of(names: pd.Series) -> pd.Categorical:
    """The types of kernels of which only the names are recorded."""
    names = names.array.remove_unused_categories()
    types = np.array([kernel_type(str(name)) for name in names.categories], dtype=object)
    return pd.Categorical(types[names.codes])


def _begins(frame: pd.DataFrame, windows: pd.DataFrame) -> np.ndarray:
    streams = frame["stream"].to_numpy()
    step = np.searchsorted(windows["start_ns"].to_numpy(), frame["start_ns"].to_numpy(), side="right")
    changed = np.concatenate([[True], (streams[1:] != streams[:-1]) | (step[1:] != step[:-1])])
    return np.asarray(changed[: len(frame)], dtype=np.bool_)


def _goes_on(frame: pd.DataFrame, begins: np.ndarray) -> np.ndarray:
    kinds = frame["type"].array
    on_lists = np.array([str(name).startswith(ON_LISTS) for name in kinds.categories] + [False])[kinds.codes]
    shaped = ((frame["input_shapes"] != "") | (frame["output_shapes"] != "")).to_numpy()
    if not (on_lists & ~shaped).any():
        return np.zeros(len(frame), dtype=np.bool_)
    same = np.concatenate([[False], kinds.codes[1:] == kinds.codes[:-1]])
    may = on_lists & ~shaped & same & ~begins
    first = np.maximum.accumulate(np.where(may, 0, np.arange(len(frame))))
    return np.asarray(may & shaped[first], dtype=np.bool_)


def _shared(moved: np.ndarray, took: np.ndarray, goes_on: np.ndarray) -> np.ndarray:
    """Bytes of each kernel, where the first one of a call has those of all: they share them by their time."""
    if not goes_on.any():
        return moved
    call = np.cumsum(~goes_on) - 1
    first, several = np.flatnonzero(~goes_on), np.bincount(call) > 1
    whole, ns = moved[first].astype(np.float64), np.maximum(np.bincount(call, took), 1.0)
    parts = np.where(whole[call] < 0, -1.0, whole[call] * took / ns[call])
    return np.where(several[call], np.round(parts), moved).astype(np.int64)


def _behind_collectives(frame: pd.DataFrame, collectives: pd.DataFrame) -> np.ndarray:
    starts = frame["start_ns"].to_numpy()
    ended = np.concatenate([[0], frame["end_ns"].to_numpy()[:-1]])
    # A collective that starts after the kernel before and ends before this one lies between them.
    order = np.argsort(collectives["end_ns"].to_numpy(), kind="stable")
    ends = collectives["end_ns"].to_numpy()[order]
    latest = np.concatenate(
        [[np.iinfo(np.int64).min], np.maximum.accumulate(collectives["start_ns"].to_numpy()[order])]
    )
    return np.asarray(latest[np.searchsorted(ends, starts, side="right")] >= ended, dtype=np.bool_)


def kernel_rows(title: Text, frame: pd.DataFrame, columns: Sequence[str] = EVIDENCE_COLUMNS) -> Rows:
    """The kernels as evidence, the longest first."""
    return Rows(title, KERNELS, _longest_first(frame, "row"), tuple(columns))


def _longest_first(frame: pd.DataFrame, column: str) -> np.ndarray:
    """A column of whole numbers of the kernels, the longest kernel first."""
    order = np.argsort(-frame["duration_ns"].to_numpy(), kind="stable")
    return frame[column].to_numpy(dtype=np.int64)[order]


def call_stack(facts: Facts, frame: pd.DataFrame) -> list[Reference]:
    """The Python call stack of the longest of the kernels for which one was recorded."""
    launched, events = facts.get(launches), facts.get(HOST_EVENTS)
    if launched is None or events is None:
        return []
    operators = launched.frame["op_row"].to_numpy()[_longest_first(frame, "work")]
    operators = operators[operators >= 0]
    recorded = operators[(events["call_stack"].iloc[operators] != "").to_numpy()]
    if not len(recorded):
        return []
    row = int(recorded[0])
    frames = frames_of(str(events["call_stack"].iloc[row]))
    return [Stack(message("kernels.stack", operator=str(events["name"].iloc[row])), frames)]


def records(frame: pd.DataFrame) -> list[dict[str, Scalar]]:
    """The rows of a small frame as evidence shows them: plain values, ``None`` where not known."""
    return [{str(name): _plain(value) for name, value in row.items()} for row in frame.to_dict("records")]


def _plain(value: object) -> Scalar:
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, float) and not np.isfinite(plain):
        return None
    return plain if isinstance(plain, bool | int | float | str) or plain is None else str(plain)


FACTS = (named_kernels, step_kernels)
