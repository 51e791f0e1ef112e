"""NS060, GNS007: layers that take longer than others with the same kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pandas as pd

from advisor_core.api.advisors import Column, Metric, Observations, Params, Reference, advisor
from advisor_core.api.facts import HOST_EVENTS, Facts, NotApplicable, launches, union, work
from advisors.columns import TYPE, shares
from advisors.layers.layers import layers
from advisors.layers.outliers import OperatorTimes, layer_times
from advisors.layers.places import PLACES, origin
from advisors.measuring import LARGEST
from advisors.messages import message
from advisors.step_kernels import StepKernels, kernel_rows, records, step_kernels

if TYPE_CHECKING:
    import numpy.typing as npt

Ints: TypeAlias = "npt.NDArray[np.int64]"


@advisor(
    "network_structure.outlier_layers",
    needs=(step_kernels, layers, work),
    wants=(launches, HOST_EVENTS),
    about=(
        Column("stack", "int", "", "stack of layers, from 0", zh="层组"),
        Column("direction", "text", "", "forward or backward pass over the stack", zh="方向"),
        Column("layer", "int", "", "number of the layer in its stack, from 0", zh="层"),
    ),
    columns=(
        Column("layer_time_ns", "float", "ns", "kernel time of the layer in a pass, median", zh="本层耗时"),
        Column("usual_ns", "float", "ns", "median of the layers with the same kernels in the same pass", zh="常规耗时"),
        Column("excess_per_pass_ns", "float", "ns", "how much longer than them, median of the passes", zh="每次多出"),
        Column("excess_share", "float", "ratio", "excess_per_pass_ns over usual_ns", zh="多出占比"),
        Column("jitter_ns", "float", "ns", "by how much the excess differs from pass to pass", zh="抖动"),
        Column("passes", "int", "count", "passes in which it has layers to compare with", zh="次数"),
        Column("peers", "int", "count", "other layers with the same kernels, at least", zh="同类层数"),
        Column("operator", "text", "", "operator type with most of the excess", zh="算子"),
        Column("operator_share", "float", "ratio", "its part of the excess", zh="算子占比"),
        Column("beside_collectives", "float", "ratio", "part of its kernel time beside collectives", zh="与通信重叠"),
        Column(
            "usual_beside_collectives",
            "float",
            "ratio",
            "the same, of the layers with the same kernels",
            zh="同类层重叠",
        ),
        Column("excess_ns", "float", "ns", "how much longer per step, all passes", zh="多出"),
        *shares("excess_ns", "excess_ns"),
    ),
    evidence=(TYPE, Column("ns", "float", "ns", "kernel time in a pass", zh="耗时"), *PLACES),
)
def outlier_layers(facts: Facts, params: Params) -> Observations:
    """Layers whose kernel time differs from that of layers with the same kernels, pass by pass."""
    own, found = facts[step_kernels], facts[layers]
    own.require_shapes()
    times = layer_times(own, found)
    table = times.by_layer() if len(times.cells) else pd.DataFrame()
    if table.empty:
        raise NotApplicable(message("outlier_layers.none"))
    operators, covered = OperatorTimes(own, found, times), _covered(facts, own)
    rows_of = [layer for _, layer in table.iterrows()]  # layers, of which there are few
    per_type = [operators.by_type(layer) for layer in rows_of]
    beside = [_share(covered, own, operators.kernels(layer)) for layer in rows_of]
    excess = table["excess_sum"] / own.steps
    frame = pd.DataFrame(
        {
            "stack": table["tower"],
            "direction": np.where(table["backward"], "backward", "forward"),
            "layer": table["layer"],
            "layer_time_ns": table["ns"],
            "usual_ns": table["usual_ns"],
            "excess_per_pass_ns": table["excess_ns"],
            "excess_share": table["excess_ns"] / table["usual_ns"],
            "jitter_ns": table["jitter_ns"],
            "passes": table["passes"],
            "peers": table["peers"],
            "operator": [str(types["type"].iloc[0]) for types in per_type],
            "operator_share": [
                float(types["excess_ns"].iloc[0] / total) if total else np.nan
                for types, total in zip(per_type, table["excess_ns"].tolist(), strict=True)
            ],
            "beside_collectives": beside,
            "usual_beside_collectives": pd.Series(beside)
            .groupby([table["tower"], table["backward"]])
            .transform("median"),
            "excess_ns": excess,
            "share_of_step": excess / own.wall_ns,
            "share_of_computing": excess / own.kernel_ns,
        }
    )

    def kernels(row: int) -> pd.DataFrame:
        return own.frame.iloc[operators.kernels(rows_of[row])]

    def evidence(row: int) -> list[Reference]:
        types = per_type[row].head(LARGEST)
        shown = types.rename(columns={"excess_ns": "excess_per_pass_ns"})
        return [
            Metric(message("outlier_layers.types"), records(shown)),
            kernel_rows(message("outlier_layers.rows"), kernels(row)),
            *origin(facts, kernels(row)),
        ]

    return Observations(frame, evidence, cure=lambda row: own.shorter(kernels(row)) if excess[row] > 0 else None)


def _covered(facts: Facts, own: StepKernels) -> Ints:
    """The time that each kernel runs beside collectives, ns."""
    device = facts[work]
    calls = device[device["communication"]]
    busy = union(calls["start_ns"].to_numpy(), calls["end_ns"].to_numpy())
    starts, ends = own.frame["start_ns"].to_numpy(), own.frame["end_ns"].to_numpy()
    return busy.measure(ends) - busy.measure(starts)


def _share(covered: Ints, own: StepKernels, rows: Ints) -> float:
    total = float(own.frame["duration_ns"].to_numpy()[rows].sum())
    return float(covered[rows].sum()) / total if total else float("nan")
