"""SA011: fused attention over lengths that are no multiple of 128, beside such over lengths that are."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pandas as pd

from advisor_core.api.advisors import Column, Observations, Params, Reference, advisor
from advisor_core.api.facts import HOST_EVENTS, Facts, NotApplicable, Shortening, aggregated, launches, picked
from advisors.columns import KERNELS_PER_STEP, MEAN_NS, OPERATOR_TYPE, TOTAL_NS, shares
from advisors.layers.layers import layers
from advisors.layers.places import PLACES, origin
from advisors.messages import message
from advisors.roofline.attention import attention_of
from advisors.step_kernels import StepKernels, kernel_rows, step_kernels

if TYPE_CHECKING:
    import numpy.typing as npt

Floats: TypeAlias = "npt.NDArray[np.float64]"

ALIGNED = 128
"""Multiple of lengths that the vendor's advisor asks for (docs/sources.md#length-of-attention)."""

ALIKE = 2.0
"""Factor of keys and of queries within which two attentions have about the same share of start and end. Our choice."""


@advisor(
    "shape_affinity.attention_length",
    needs=(step_kernels,),
    wants=(launches, HOST_EVENTS, layers),
    about=(OPERATOR_TYPE, Column("input_shapes", "text", "", "shapes of its inputs", zh="输入 shape")),
    columns=(
        Column("queries", "int", "count", "length of the query", zh="query 长度"),
        Column("keys", "int", "count", "length of the keys", zh="key 长度"),
        KERNELS_PER_STEP,
        MEAN_NS,
        TOTAL_NS,
        Column(
            "aligned_queries",
            "float",
            "count",
            "length of the query of the attention that it is held against; unknown without one",
            zh="对照 query 长度",
        ),
        Column(
            "aligned_keys",
            "float",
            "count",
            "length of the keys of the attention that it is held against; unknown without one",
            zh="对照 key 长度",
        ),
        Column(
            "slower",
            "float",
            "ratio",
            "how much longer an operation takes than in that one; unknown without one",
            zh="每次运算变慢",
        ),
        Column(
            "saving_ns",
            "float",
            "ns",
            "time per step without what they would take at the next multiples, an operation as long as in that one",
            zh="节省",
        ),
        *shares("saving_ns"),
        Column("time_share", "float", "ratio", "total_ns over the step", zh="时间占比"),
    ),
    evidence=PLACES,
)
def attention_length(facts: Facts, params: Params) -> Observations:
    """Attentions whose queries or keys are no multiple of 128: how long an operation takes, against the attention of
    the same operator, data type, batch, channels and mask with the nearest aligned lengths, half to twice as long."""
    own = facts[step_kernels]
    table = _attentions(own)
    unaligned = (table["keys"] % ALIGNED != 0) | (table["queries"] % ALIGNED != 0)
    mine = table[unaligned & (table["queries"] >= ALIGNED)].reset_index(drop=True)
    if mine.empty:
        raise NotApplicable(message("shape_affinity.no_unaligned_attention"))
    aligned = dict(iter(table[~unaligned].groupby(list(_SAME))))
    nearest = [_nearest(line, aligned) for line in mine.to_dict("records")]
    of_nearest = pd.DataFrame([found or {} for found in nearest], columns=["queries", "keys", "ns_per_flop"])
    mine["aligned_queries"], mine["aligned_keys"] = (of_nearest[name].astype("float64") for name in ("queries", "keys"))
    least = of_nearest["ns_per_flop"].to_numpy(dtype=np.float64)
    mine["slower"] = mine["ns_per_flop"].to_numpy() / least - 1
    padded = _padding(mine["queries"]) * _padding(mine["keys"])
    mine["saving_ns"] = mine["total_ns"] * (1 - padded * least / mine["ns_per_flop"].to_numpy()).clip(min=0.0)
    mine["time_share"] = mine["total_ns"] / own.wall_ns
    mine = mine.assign(**own.shares(mine["saving_ns"]))
    mine = mine.sort_values("total_ns", ascending=False, kind="stable", ignore_index=True)

    def kernels_of(row: int) -> pd.DataFrame:
        frame = own.frame
        same = (frame["type"] == mine["operator"][row]) & (frame["input_shapes"] == mine["input_shapes"][row])
        found: pd.DataFrame = frame[same]
        return found

    def evidence(row: int) -> list[Reference]:
        return [kernel_rows(message("shape_affinity.attention_rows"), kernels_of(row)), *origin(facts, kernels_of(row))]

    def cure(row: int) -> Shortening:
        return own.shorter(kernels_of(row))

    return Observations(mine, evidence, cure=cure)


def _padding(lengths: pd.Series) -> Floats:
    """The lengths of the next multiples, over today's."""
    sizes = lengths.to_numpy(dtype=np.float64)
    return np.asarray(np.ceil(sizes / ALIGNED) * ALIGNED / sizes, dtype=np.float64)


_OF_SHAPES = ("operator", "input_shapes", "dtype", "batch", "queries", "keys", "width", "causal", "flops")
_SAME = ("operator", "dtype", "batch", "width", "causal")
"""The properties in common of two attentions that are held against one another."""


def _attentions(own: StepKernels) -> pd.DataFrame:
    """The attentions of the steps by operator and input shapes, where these tell what they compute."""
    attends = ((own.frame["operator_class"] == "attention") & (own.frame["duration_ns"] > 0)).to_numpy()
    frame = picked(own.frame, attends, ("type", "input_shapes", "input_dtypes", "output_shapes", "duration_ns"))
    if len(frame):
        own.require_shapes()
    by = ["type", "input_shapes"]
    firsts = frame.drop_duplicates(by)[[*by, "input_dtypes", "output_shapes"]]
    rows = []
    for row in firsts.itertuples(index=False, name=None):
        operator, inputs, dtypes, outputs = map(str, row)
        found = attention_of(operator, inputs, outputs)
        if found is not None and found.flops > 0:
            sizes = (found.batch, found.queries, found.keys, found.width, found.causal, found.flops)
            rows.append((operator, inputs, dtypes.split(";")[0], *sizes))
    table = pd.DataFrame(rows, columns=list(_OF_SHAPES))
    named = frame[by].astype(str).set_axis(["operator", "input_shapes"], axis=1).assign(ns=frame["duration_ns"])
    by_shape = ["operator", "input_shapes"]
    summed = aggregated(named, by_shape, kernels=("ns", "size"), total_ns=("ns", "sum"), mean_ns=("ns", "mean"))
    result: pd.DataFrame = table.merge(summed, on=by_shape)
    result["ns_per_flop"] = result["mean_ns"] / result["flops"]
    for name in ("kernels", "total_ns"):
        result[name] = result[name] / own.steps
    return result


def _nearest(line: Mapping[Hashable, Any], aligned: Mapping[tuple[Any, ...], pd.DataFrame]) -> dict[str, float] | None:
    """The attention of aligned lengths that is most like this one; ``None`` where none is. ``aligned``: by `_SAME`."""
    alike = aligned.get(tuple(line[name] for name in _SAME))
    if alike is None:
        return None
    keys, queries = (np.abs(np.log2(alike[name].to_numpy() / float(line[name]))) for name in ("keys", "queries"))
    apart = np.maximum(keys, queries)
    place = int(apart.argmin())
    if apart[place] > np.log2(ALIKE):
        return None
    return {name: float(alike[name].iloc[place]) for name in ("queries", "keys", "ns_per_flop")}
