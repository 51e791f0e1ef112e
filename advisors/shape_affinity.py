"""Shapes that do not suit the chip: tails that load slowly, rows that do not divide among its cores."""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt
import pandas as pd

from advisor_core.api.advisors import Column, Metric, Observations, Params, Reference, advisor
from advisor_core.api.facts import (
    HOST_EVENTS,
    Facts,
    NotApplicable,
    chip,
    elements,
    launches,
    matching,
    per_text,
    pipes,
    shapes_of,
)
from advisors.fewer_kernels import Merging, step_replay
from advisors.messages import message
from advisors.products import BASE_N, TILED, balance, best_balance, matrix_products, tiles
from advisors.step_kernels import PIPE_COLUMNS, StepKernels, call_stack, kernel_rows, records, step_kernels

LINE = 512
"""Bytes that the loads of the cube cores come in: a tail axis should be a multiple (docs/sources.md#tail-axis)."""
STRIDE = 16 * 1024
"""Bytes that a tail axis should not be a multiple of (docs/sources.md#tail-axis)."""

_BY_ROWS = re.compile(r"RmsNorm|LayerNorm|AddNorm|Softmax(V2)?$|DynamicQuant", re.I)
"""Operators that reduce along the last axis and so give whole rows to a core (docs/sources.md#rows-per-core). Not
quantisation with fixed scales, which divides anywhere, nor GroupNorm, whose shapes do not tell the groups."""
_DECODE_ATTENTION = re.compile(r"IncreFlashAttention|PagedAttention|FusedInferAttentionScore", re.I)
_TRANSDATA = re.compile(r"TransData", re.I)
_VECTOR = ("AI_VECTOR_CORE", "MIX_AIV")

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_SHARES = (
    Column("share_of_step", "float", "ratio", "gain_ns over the step"),
    Column("share_of_computing", "float", "ratio", "gain_ns over the kernel time of the step"),
)


def good_tail(length: int, element_bytes: int) -> int:
    """The nearest length of a tail axis, from ``length`` up, that is a multiple of 512 B and not of 16 KB.

    >>> good_tail(50257, 2), good_tail(151936, 2), good_tail(8192, 2), good_tail(4096, 2)
    (50432, 152064, 8448, 4096)
    """
    step = max(LINE // element_bytes, 1)
    found = -(-length // step) * step
    return found + step if found * element_bytes % STRIDE == 0 else found


@advisor(
    "shape_affinity.tails",
    needs=(step_kernels, matrix_products),
    wants=(pipes, launches, HOST_EVENTS, step_replay),
    about=(
        Column("axis", "int", "count", "length of the last axis of the operands"),
        Column("dtype", "text", "", "their dtype"),
    ),
    columns=(
        Column("tail_bytes", "int", "B", "bytes of that axis"),
        Column("unaligned", "bool", "", "not a multiple of 512 B"),
        Column("strided", "bool", "", "a multiple of 16 KB"),
        Column("multiple", "int", "count", "elements in 512 B"),
        Column("good", "int", "count", "nearest length that is a multiple of 512 B and not of 16 KB"),
        Column("added_share", "float", "ratio", "how much longer that is"),
        Column("operator", "text", "", "operator type"),
        Column("example", "text", "", "the product that takes most: left x right operand as stored"),
        Column("kernels", "float", "count", "products with such an operand, per step"),
        Column("total_ns", "float", "ns", "their time per step"),
        Column("summed_ns", "float", "ns", "part of it in products that sum along that axis"),
        Column("mixed_ns", "float", "ns", "part of it in kernels that need the vector cores too (MIX_AIC)"),
        Column("conversion_ns", "float", "ns", "TransData of operands with that axis, per step"),
        Column("tflops", "float", "TFLOP/s", "what these products reach"),
        Column(
            "peer_tflops", "float", "TFLOP/s", "what products of similar size with good tails reach in this profile"
        ),
        Column("measured", "bool", "", "there are such products to compare with"),
        Column(
            "gain_ns",
            "float",
            "ns",
            "time saved per step with the good length: at the speed of the others or by the assumed gain, less the "
            "longer axis, and no more than the cube does not compute; and the TransData",
        ),
        Column(
            "saving_ns",
            "float",
            "ns",
            "how much shorter a step is, from a replay of launches and kernels; without launches, gain_ns",
        ),
        Column("share_of_step", "float", "ratio", "saving_ns over the step"),
        Column("share_of_computing", "float", "ratio", "gain_ns over the kernel time of the step"),
    ),
    params=("operand_share", "similar", "assumed_gain"),
)
def tails(facts: Facts, params: Params) -> Observations:
    """Last axes of the operands of matrix products that load badly, by length."""
    own = facts[step_kernels]
    table = facts[matrix_products]
    table = table[table["element_bytes"] > 0].reset_index(drop=True)
    if table.empty:
        raise NotApplicable(message("shape_affinity.no_products"))
    sides = pd.concat([_side(table, side, params["operand_share"]) for side in ("left", "right")], ignore_index=True)
    good = ~table["signature"].isin(sides.loc[sides["bad"], "signature"])
    speed = table["flops"] / table["mean_ns"]
    peer = _peer_speed(table, good.to_numpy(), speed.to_numpy(dtype=np.float64), params["similar"])
    table = table.assign(peer=peer, computing=_computing(facts, table), flops_total=table["flops"] * table["kernels"])
    bad = sides[sides["bad"]].merge(table, on="signature")
    # A product whose two operands are bad counts once, under the axis of the larger one.
    bad = bad.sort_values("bytes", ascending=False, kind="stable").drop_duplicates("signature")
    pairs = zip(bad["tail"], bad["element_bytes"], strict=True)
    bad["good"] = np.array([good_tail(int(tail), int(size)) for tail, size in pairs], dtype=np.int64)
    bad["saved"] = _saved(bad, params["assumed_gain"])
    frame = _by_axis(bad, _conversions(own)) if len(bad) else pd.DataFrame([_good_row()])
    saving = _shorter(facts, own, bad, frame["axis"]) if len(bad) else None
    frame["saving_ns"] = frame["gain_ns"] if saving is None else saving
    frame["share_of_step"] = frame["saving_ns"] / own.wall_ns
    frame["share_of_computing"] = frame["gain_ns"] / own.kernel_ns

    def evidence(row: int) -> list[Reference]:
        mine = bad[(bad["tail"] == frame["axis"][row]) & (bad["dtype"] == frame["dtype"][row])]
        kernels = own.frame[own.frame["signature"].isin(mine["signature"])]
        shown = pd.concat([mine.head(6), table[good].sort_values("total_ns", ascending=False, kind="stable").head(4)])
        shown = shown.assign(tflops=shown["flops"] / shown["mean_ns"] / 1e3, peer_tflops=shown["peer"] / 1e3)
        names = ["left_shape", "right_shape", "core", "kernels", "mean_ns", "tflops", "peer_tflops"]
        units = {"mean_ns": "ns", "tflops": "TFLOP/s", "peer_tflops": "TFLOP/s", "kernels": "count"}
        return [
            Metric(message("shape_affinity.compared"), records(shown[names]), units),
            kernel_rows(message("shape_affinity.product_rows"), kernels, PIPE_COLUMNS),
            *call_stack(facts, kernels),
        ]

    return Observations(frame, evidence)


def _shorter(facts: Facts, own: StepKernels, bad: pd.DataFrame, axes: pd.Series) -> list[float] | None:
    """By how much a step becomes shorter if the products and conversions of each axis take as much less; where the host
    cannot keep up that is little. ``None`` where the launches are not known."""
    replay = facts.get(step_replay)
    if replay is None:
        return None
    frame = own.frame
    took = frame["duration_ns"].to_numpy(dtype=np.float64)
    less = (bad["saved"] / (bad["kernels"] * bad["mean_ns"])).set_axis(bad["signature"])
    share = frame["signature"].map(less).fillna(0.0).to_numpy(dtype=np.float64)
    tails = frame["signature"].map(bad.set_index("signature")["tail"]).fillna(0).to_numpy(dtype=np.int64)
    converted = _conversion_tails(frame).reindex(frame.index, fill_value=0).to_numpy()
    share, tails = np.where(converted > 0, 1.0, share), np.where(converted > 0, converted, tails)
    saving = []
    for axis in axes.to_list():  # an axis or two; a replay is of the whole step
        mine = np.flatnonzero((tails == axis) & (share > 0))
        after = took[mine] * (1 - share[mine])
        quicker = Merging.none(frame["work"].to_numpy()[mine], took[mine], after)
        saving.append(replay.saved_ns(quicker) / own.steps)
    return saving


def _by_axis(bad: pd.DataFrame, conversions: pd.Series) -> pd.DataFrame:
    """The products with a bad tail, by its length and dtype; the one that takes most is the example."""
    ranked = bad.sort_values("total_ns", ascending=False, kind="stable")
    ranked = ranked.assign(
        axis=ranked["tail"],
        example=ranked["left_shape"] + " x " + ranked["right_shape"],
        summed_ns=ranked["total_ns"].where(ranked["summed"], 0.0),
        mixed_ns=ranked["total_ns"].where(ranked["core"] == "MIX_AIC", 0.0),
        known_ns=ranked["total_ns"].where(ranked["peer"].notna(), 0.0),
        peer_work=(ranked["peer"] * ranked["total_ns"]).fillna(0.0),
    )
    grouped = ranked.groupby(["axis", "dtype"], sort=True)
    table = grouped[["operator", "example", "element_bytes", "good"]].first()
    amounts = ["kernels", "total_ns", "summed_ns", "mixed_ns", "known_ns", "peer_work", "flops_total", "saved"]
    table = table.join(grouped[amounts].sum()).reset_index()
    table["tail_bytes"] = table["axis"] * table["element_bytes"]
    table["unaligned"] = table["tail_bytes"] % LINE != 0
    table["strided"] = table["tail_bytes"] % STRIDE == 0
    table["multiple"] = LINE // table["element_bytes"]
    table["added_share"] = table["good"] / table["axis"] - 1
    keys = pd.MultiIndex.from_frame(table[["axis", "dtype"]])
    table["conversion_ns"] = conversions.reindex(keys).fillna(0.0).to_numpy()
    table["tflops"] = table["flops_total"] / table["total_ns"] / 1e3
    table["measured"] = table["known_ns"] > 0
    table["peer_tflops"] = (table["peer_work"] / table["known_ns"].where(table["measured"])) / 1e3
    table["gain_ns"] = table["saved"] + table["conversion_ns"]
    return table.sort_values("gain_ns", ascending=False, kind="stable").reset_index(drop=True)


def _good_row() -> dict[str, object]:
    """What is observed where every tail is good: one row, so that the rules pass."""
    numbers = dict.fromkeys(("axis", "tail_bytes", "multiple", "good"), 0)
    amounts = dict.fromkeys(("added_share", "kernels", "total_ns", "summed_ns", "mixed_ns", "conversion_ns"), 0.0)
    flags = dict.fromkeys(("unaligned", "strided", "measured"), False)
    unknown = {"tflops": np.nan, "peer_tflops": np.nan, "gain_ns": 0.0, "dtype": "", "operator": None, "example": None}
    return {**numbers, **amounts, **flags, **unknown}


def _computing(facts: Facts, table: pd.DataFrame) -> Floats:
    """How much of the duration of each product the cube computes; 0 where that was not recorded."""
    ratios = facts.get(pipes)
    if ratios is None:
        return np.zeros(len(table))
    own = facts[step_kernels]
    busy = ratios["aic_mac"].to_numpy()[own.frame["row"].to_numpy()]
    means = pd.Series(busy).groupby(own.frame["signature"].to_numpy()).mean()
    return table["signature"].map(means).fillna(0.0).to_numpy(dtype=np.float64)


def _saved(bad: pd.DataFrame, assumed_gain: float) -> Floats:
    """ns per step that each product takes less with the good length of its axis, which it then has to compute whole.

    Its speed is then that of its peers or, without peers, higher by the assumed gain; but never more than computing
    leaves: what keeps the cube busy today is not lost in loading."""
    mean, longer = bad["mean_ns"].to_numpy(dtype=np.float64), (bad["good"] / bad["tail"]).to_numpy(dtype=np.float64)
    at_peer = (bad["flops"] / bad["peer"]).to_numpy(dtype=np.float64) * longer
    after = np.where(np.isfinite(at_peer), at_peer, mean * (1 - assumed_gain) * longer)
    after = np.maximum(after, mean * bad["computing"].to_numpy(dtype=np.float64) * longer)
    return np.asarray(np.maximum(mean - after, 0.0) * bad["kernels"], dtype=np.float64)


def _side(table: pd.DataFrame, side: str, least: float) -> pd.DataFrame:
    """One operand of each product: its tail, whether that is bad, and whether the product sums along it (``k``)."""
    tail, size = table[f"{side}_tail"], table["element_bytes"]
    total = tail * size
    matters = table[f"{side}_bytes"] >= least * (table["left_bytes"] + table["right_bytes"])
    stored = table[f"{side}_format"] != TILED
    summed = table[f"{side}_axis"].isin(["k", ""])
    return pd.DataFrame(
        {
            "signature": table["signature"],
            "tail": tail,
            "summed": summed,
            "bytes": table[f"{side}_bytes"],
            "bad": matters & stored & ((total % LINE != 0) | (total % STRIDE == 0)),
        }
    )


def _peer_speed(table: pd.DataFrame, good: npt.NDArray[np.bool_], speed: Floats, similar: float) -> Floats:
    """FLOP/ns that the middle one of the good products reaches, among those of the same dtype whose work and rows are
    within a factor ``similar``; NaN where there is none. Products are few: distinct shapes, not kernels."""
    flops, rows = table["flops"].to_numpy(), (table["m"] * table["batch"]).to_numpy(dtype=np.float64)
    dtype = table["dtype"].to_numpy()
    near = np.abs(np.log(flops[:, None] / flops[None, :])) <= np.log(similar)
    near &= np.abs(np.log(rows[:, None] / rows[None, :])) <= np.log(similar)
    near &= (dtype[:, None] == dtype[None, :]) & good[None, :]
    candidates = np.where(near, speed[None, :], np.nan)
    some = near.any(axis=1)
    result = np.full(len(table), np.nan)
    result[some] = np.nanmedian(candidates[some], axis=1)
    return result


def _conversions(own: StepKernels) -> pd.Series:
    """TransData into the tiled format per step, by last axis and dtype of what they read."""
    tail = _conversion_tails(own.frame)
    mine = own.frame.loc[tail.index]
    return mine["duration_ns"].groupby([tail, mine["input_dtypes"].astype(str)]).sum() / own.steps


def _conversion_tails(frame: pd.DataFrame) -> pd.Series:
    """The last axis of what TransData converts to the tiled format, by row of the kernel."""
    mine = frame[matching(frame["type"], _TRANSDATA) & frame["output_formats"].astype(str).str.startswith(TILED)]
    return per_text(mine["input_shapes"], _tail).astype("int64")


def _tail(text: str) -> int:
    shapes = shapes_of(text)
    return shapes[0][-1] if shapes and shapes[0] else 0


def _size(text: str) -> int:
    shapes = shapes_of(text)
    return elements(shapes[0]) if shapes else 0


@advisor(
    "shape_affinity.rows",
    needs=(step_kernels, chip),
    wants=(launches, HOST_EVENTS),
    about=(
        Column("operator", "text", "", "operator type"),
        Column("rows", "int", "count", "rows that the kernel divides among cores"),
    ),
    columns=(
        Column("cores", "int", "count", "vector cores of the chip"),
        Column("rounds", "int", "count", "how often the cores go round"),
        Column("efficiency", "float", "ratio", "part of the cores' time that is used: rows over rounds x cores"),
        Column("fewer", "int", "count", "the next smaller number of rows that fills all rounds; 0 if there is none"),
        Column("more", "int", "count", "the next larger one"),
        Column("blocks", "float", "count", "blocks that the kernel says it used; more than rows: it divides them too"),
        Column("kernels", "float", "count", "kernels per step"),
        Column("mean_ns", "float", "ns", "mean duration"),
        Column("total_ns", "float", "ns", "time per step"),
        Column("gain_ns", "float", "ns", "time of the idle cores: what the same rows would take less in full rounds"),
        *_SHARES,
    ),
)
def rows_per_core(facts: Facts, params: Params) -> Observations:
    """Kernels that divide rows among vector cores (normalisation, dynamic quantisation): rows against cores."""
    own = facts[step_kernels]
    cores = facts[chip].vector_cores
    frame = own.frame
    mine = frame[matching(frame["type"], _BY_ROWS)]
    if mine.empty:
        raise NotApplicable(message("shape_affinity.no_norms"))
    own.require_shapes()
    counts = per_text(mine["input_shapes"], _row_count).astype("int64")
    mine = mine.assign(operator=mine["type"].astype(str), rows=counts)
    grouped = mine[mine["rows"] > 0].groupby(["operator", "rows"], sort=True)
    table = grouped["duration_ns"].agg(kernels="size", mean_ns="mean", total_ns="sum")
    table = table.join(grouped["block_dim"].median().rename("blocks")).reset_index()
    table["cores"] = cores
    table["rounds"] = -(-table["rows"] // cores)
    table["efficiency"] = balance(table["rows"], cores)
    table["fewer"] = table["rows"] // cores * cores
    table["more"] = table["rounds"] * cores
    for name in ("kernels", "total_ns"):
        table[name] = table[name] / own.steps
    table["gain_ns"] = table["total_ns"] * (1 - table["efficiency"])
    table = table.sort_values("gain_ns", ascending=False, kind="stable").reset_index(drop=True)
    table = table.assign(**own.shares(table["gain_ns"]))

    def evidence(row: int) -> list[Reference]:
        kernels = mine[(mine["operator"] == table["operator"][row]) & (mine["rows"] == table["rows"][row])]
        columns = ("type", "start_ns", "duration_ns", "input_shapes", "block_dim", "aiv_ns")
        return [kernel_rows(message("shape_affinity.row_kernels"), kernels, columns), *call_stack(facts, kernels)]

    return Observations(table, evidence)


def _row_count(text: str) -> int:
    shapes = shapes_of(text)
    return elements(shapes[0]) // max(shapes[0][-1], 1) if shapes and len(shapes[0]) > 1 else 0


@advisor(
    "shape_affinity.blocks",
    needs=(step_kernels, matrix_products, chip),
    wants=(launches, HOST_EVENTS),
    about=(
        Column("m", "int", "count", "rows of the result"),
        Column("n", "int", "count", "columns of the result"),
        Column("k", "int", "count", "length of the sum"),
        Column("dtype", "text", "", "dtype of the operands"),
    ),
    columns=(
        Column("operator", "text", "", "operator type"),
        Column("batch", "int", "count", "products in one kernel"),
        Column("cores", "int", "count", "cube cores of the chip"),
        Column("blocks", "int", "count", "blocks of 128 x 256 or 128 x 128, whichever divides better"),
        Column("rounds", "int", "count", "how often the cores go round"),
        Column("efficiency", "float", "ratio", "part of the cores' time that is used: blocks over rounds x cores"),
        Column("good_m", "int", "count", "nearest larger M, by 128, with which enough of it is used"),
        Column("good_n", "int", "count", "nearest larger N, by 128, with which enough of it is used"),
        Column("recorded_blocks", "float", "count", "blocks that the kernel says it used"),
        Column("row_efficiency", "float", "ratio", "M over M rounded up to 128"),
        Column("tier", "int", "count", "M rounded up to 128: the rows that cost the same"),
        Column("tier_below", "int", "count", "the next cheaper number of rows"),
        Column("kernels", "float", "count", "kernels per step"),
        Column("mean_ns", "float", "ns", "mean duration"),
        Column("total_ns", "float", "ns", "time per step"),
        Column("gain_ns", "float", "ns", "time of the idle cores: what the same work would take less in full rounds"),
        Column("share_of_total", "float", "ratio", "total_ns over the step"),
        *_SHARES,
    ),
    params=("enough",),
)
def blocks(facts: Facts, params: Params) -> Observations:
    """Matrix products: how their blocks divide among the cube cores."""
    own = facts[step_kernels]
    cores = facts[chip].cube_cores
    distinct = facts[matrix_products]
    if distinct.empty:
        raise NotApplicable(message("shape_affinity.no_products"))
    grouped = distinct.groupby(["m", "n", "k", "batch", "dtype"], sort=True)
    table = grouped.agg(
        operator=("operator", "first"),
        kernels=("kernels", "sum"),
        total_ns=("total_ns", "sum"),
        recorded_blocks=("block_dim", "median"),
    ).reset_index()
    table["mean_ns"] = table["total_ns"] / table["kernels"]
    m, n, batch = (table[name].to_numpy() for name in ("m", "n", "batch"))
    counts = np.stack([tiles(m, n, base, batch) for base in BASE_N])
    used = np.stack([balance(count, cores) for count in counts])
    best = used.argmax(axis=0)
    table["cores"] = cores
    table["blocks"] = np.take_along_axis(counts, best[None, :], axis=0)[0].astype(np.int64)
    table["rounds"] = -(-table["blocks"] // cores)
    table["efficiency"] = used.max(axis=0)
    table["good_m"] = _grown(m, n, batch, cores, params["enough"], rows=True)
    table["good_n"] = _grown(m, n, batch, cores, params["enough"], rows=False)
    table["tier"] = -(-table["m"] // 128) * 128
    table["tier_below"] = table["tier"] - 128
    table["row_efficiency"] = table["m"] / table["tier"]
    table["gain_ns"] = table["total_ns"] * (1 - table["efficiency"])
    table["share_of_total"] = table["total_ns"] / own.wall_ns
    table = table.sort_values("gain_ns", ascending=False, kind="stable").reset_index(drop=True)
    table = table.assign(**own.shares(table["gain_ns"]))

    def evidence(row: int) -> list[Reference]:
        alike = distinct
        for name in ("m", "n", "k", "batch", "dtype"):
            alike = alike[alike[name] == table[name][row]]
        kernels = own.frame[own.frame["signature"].isin(alike["signature"])]
        return [
            kernel_rows(message("shape_affinity.product_rows"), kernels, PIPE_COLUMNS),
            *call_stack(facts, kernels),
        ]

    return Observations(table, evidence)


GROWTH = 64
"""How many blocks of 128 an axis may grow in the search for a good size."""


def _grown(m: Ints, n: Ints, batch: Ints, cores: int, enough: float, *, rows: bool) -> npt.NDArray[np.int64]:
    """The next size of an axis, in steps of 128, with which at least ``enough`` of the cores' time is used; the size
    itself where none is found."""
    axis = m if rows else n
    steps = np.arange(1, GROWTH + 1)[:, None] * 128
    sizes = np.concatenate([axis[None, :], (axis // 128)[None, :] * 128 + steps])
    other = np.broadcast_to(n if rows else m, sizes.shape)
    used = best_balance(sizes, other, batch, cores) if rows else best_balance(other, sizes, batch, cores)
    fits = used >= enough
    first = fits.argmax(axis=0)
    return np.asarray(np.take_along_axis(sizes, first[None, :], axis=0)[0], dtype=np.int64)


@advisor(
    "shape_affinity.shared_input",
    needs=(step_kernels, matrix_products, chip),
    wants=(pipes, step_replay, launches, HOST_EVENTS),
    about=(
        Column("input_shape", "text", "", "the operand that the products share"),
        Column("widths", "text", "", "N of each of them"),
        Column("dtype", "text", "", "dtype of the operand"),
    ),
    columns=(
        Column("operator", "text", "", "operator type"),
        Column("products", "int", "count", "products that share an operand"),
        Column("places", "float", "count", "how often per step"),
        Column("rows", "int", "count", "M of the products"),
        Column("k", "int", "count", "length of the sum"),
        Column("together", "int", "count", "N of the product that would replace them"),
        Column("cores", "int", "count", "cube cores of the chip"),
        Column("most_blocks", "int", "count", "blocks of the largest of them"),
        Column("cost_ratio", "float", "ratio", "blocks of the one over those of all of them, by rounds and block size"),
        Column("total_ns", "float", "ns", "time of the products per step"),
        Column(
            "together_ns",
            "float",
            "ns",
            "time if they were one, per step: the largest of them with as many more rounds of blocks, or where "
            "loading takes the time with as many more bytes, spread over more cores",
        ),
        Column("split_ns", "float", "ns", "time to split the result again, per step, by its bytes"),
        Column("gain_ns", "float", "ns", "total_ns less both"),
        Column(
            "saving_ns",
            "float",
            "ns",
            "how much shorter a step is, from a replay of launches and kernels; without launches, gain_ns",
        ),
        Column(
            "launch_saving_ns", "float", "ns", "part of saving_ns beyond gain_ns: the device waits less for launches"
        ),
        Column("share_of_step", "float", "ratio", "saving_ns over the step"),
        Column("share_of_computing", "float", "ratio", "gain_ns over the kernel time of the step"),
    ),
    params=("reach",),
)
def shared_input(facts: Facts, params: Params) -> Observations:
    """Matrix products in a row on the same left operand, which could be one with the weights side by side."""
    own = facts[step_kernels]
    cores = facts[chip].cube_cores
    frame = own.frame
    told = facts[matrix_products].set_index("signature")
    place = np.flatnonzero((frame["operator_class"] == "matmul").to_numpy())
    mine = frame.iloc[place][["signature", "duration_ns"]].join(told, on="signature", how="left")
    mine["place"], mine["chain"] = place, np.cumsum(own.breaks)[place]
    previous = mine.shift(1)
    same = (mine["left_axis"] == "k") & (mine["chain"] == previous["chain"])
    for name in ("left_shape", "left_axis", "left_format", "dtype", "m", "k", "batch"):
        same &= mine[name] == previous[name]
    distance = mine["place"] - previous["place"]
    same &= (distance <= params["reach"] + 1) & ~_overwritten(frame, mine, distance, int(params["reach"]))
    mine["run"] = np.cumsum(~same.to_numpy())
    mine = mine[mine["run"].map(mine["run"].value_counts()) > 1]
    if mine.empty:
        raise NotApplicable(message("shape_affinity.no_shared_input"))
    mine["blocks"], mine["cost"] = _cost(mine["m"], mine["n"], mine["batch"], cores)
    mine["bytes"] = (
        mine["left_bytes"] + mine["right_bytes"] + mine["element_bytes"] * mine["m"] * mine["n"] * mine["batch"]
    )
    mine["mac"], mine["loads"] = _busy(facts, mine["place"].to_numpy())
    mine["width"] = mine["n"].astype("int64").astype(str)
    runs = mine.groupby("run", sort=True).agg(
        input_shape=("left_shape", "first"),
        widths=("width", ", ".join),
        dtype=("dtype", "first"),
        operator=("operator", "first"),
        products=("n", "size"),
        rows=("m", "first"),
        k=("k", "first"),
        batch=("batch", "first"),
        together=("n", "sum"),
        most_blocks=("blocks", "max"),
        apart=("cost", "sum"),
        total_ns=("duration_ns", "sum"),
    )
    merged_blocks, runs["merged"] = _cost(runs["rows"], runs["together"], runs["batch"], cores)
    largest = mine.sort_values(["cost", "blocks", "duration_ns"], kind="stable").drop_duplicates("run", keep="last")
    largest = largest.set_index("run").reindex(runs.index)
    runs["together_ns"] = _merged_ns(largest, runs, np.minimum(merged_blocks, cores), facts)
    bandwidth = own.bandwidth if np.isfinite(own.bandwidth) else _best_bandwidth(facts[matrix_products])
    written = largest["element_bytes"] * runs["rows"] * runs["together"] * runs["batch"]
    runs["split_ns"] = 2 * written / bandwidth * 1e9 + own.least_ns
    grouped = runs.groupby(["input_shape", "widths", "dtype"], sort=True)
    whole = ["products", "rows", "k", "together", "most_blocks"]
    table = grouped[["operator", *whole, "apart", "merged"]].first()
    table = table.join(grouped[["total_ns", "together_ns", "split_ns"]].sum())
    table["places"] = grouped.size()
    table["saved"] = [_replayed(facts, mine, runs.loc[index]) for index in grouped.groups.values()]
    table = table.reset_index().astype(dict.fromkeys(whole, "int64"))
    for name in ("places", "total_ns", "together_ns", "split_ns", "saved"):
        table[name] = table[name] / own.steps
    table["cores"] = cores
    table["cost_ratio"] = np.minimum(table["merged"] / table["apart"], 1.0)
    table["gain_ns"] = np.maximum(table["total_ns"] - table["together_ns"] - table["split_ns"], 0.0)
    table["saving_ns"] = table["saved"].where(table["saved"].notna(), table["gain_ns"])
    table["launch_saving_ns"] = np.maximum(table["saving_ns"] - table["gain_ns"], 0.0)
    table = table.sort_values("saving_ns", ascending=False, kind="stable").reset_index(drop=True)
    table["share_of_step"] = table["saving_ns"] / own.wall_ns
    table["share_of_computing"] = table["gain_ns"] / own.kernel_ns

    def evidence(row: int) -> list[Reference]:
        alike = runs
        for name in ("input_shape", "widths", "dtype"):
            alike = alike[alike[name] == table[name][row]]
        kernels = frame.iloc[mine.loc[mine["run"].isin(alike.index), "place"].to_numpy()]
        return [
            kernel_rows(message("shape_affinity.shared_rows"), kernels, PIPE_COLUMNS),
            *call_stack(facts, kernels),
        ]

    return Observations(table, evidence)


def _busy(facts: Facts, place: Ints) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """Of kernels: the part of the time in which the cube computes, 1 where not recorded; and whether loading is what
    keeps them busiest, no where not recorded."""
    ratios = facts.get(pipes)
    if ratios is None:
        return np.ones(len(place)), np.zeros(len(place), dtype=np.bool_)
    mine = ratios.iloc[facts[step_kernels].frame["row"].to_numpy()[place]]
    mac = mine["aic_mac"].to_numpy(dtype=np.float64)
    return np.where(mac > 0, mac, 1.0), (mine["bound"] == "aic_mte2").to_numpy()


def _best_bandwidth(products: pd.DataFrame) -> float:
    """B/s of the product that loads and writes fastest."""
    written = products["element_bytes"] * products["m"] * products["n"] * products["batch"]
    return float(((products["left_bytes"] + products["right_bytes"] + written) / products["mean_ns"]).max()) * 1e9


def _merged_ns(largest: pd.DataFrame, runs: pd.DataFrame, used: Floats, facts: Facts) -> Floats:
    """What each run of products takes as one, from the largest of them. Where the cube is what is busy, it takes as
    many times as long as it has more rounds of blocks. Where loading is, it moves its bytes with more of the cores,
    each as fast as it does now, all of them no faster than the product of the profile that moves most; and computes
    besides. Never longer than the products apart."""
    cores = facts[chip].cube_cores
    took = largest["duration_ns"].to_numpy(dtype=np.float64)
    rounds = took * (runs["merged"] / largest["cost"]).to_numpy(dtype=np.float64)
    element, rows, batch = largest["element_bytes"], runs["rows"], runs["batch"]
    # The shared operand is read once.
    moved = largest["left_bytes"] + element * batch * runs["together"] * (runs["k"] + rows)
    reached = (largest["bytes"] / took).to_numpy(dtype=np.float64)
    spread = reached * used / np.minimum(largest["blocks"].to_numpy(dtype=np.float64), cores)
    limit = np.maximum(reached, _best_bandwidth(facts[matrix_products]) / 1e9)
    loading = moved.to_numpy(dtype=np.float64) / np.minimum(spread, limit)
    computing = np.where(largest["loads"], largest["mac"] * rounds, rounds)
    together = np.where(largest["loads"], np.maximum(loading, computing), computing)
    return np.asarray(np.minimum(together, runs["total_ns"]), dtype=np.float64)


def _replayed(facts: Facts, mine: pd.DataFrame, runs: pd.DataFrame) -> float:
    """ns by which the profiled steps become shorter if these runs of products are one product and one split each; NaN
    without launches."""
    replay = facts.get(step_replay)
    if replay is None:
        return float("nan")
    members = mine[mine["run"].isin(runs.index)]
    last = (members["run"] != members["run"].shift(-1)).to_numpy()
    number = np.searchsorted(runs.index.to_numpy(), members["run"].to_numpy())
    durations = members["duration_ns"].to_numpy(dtype=np.float64)
    # The kernel of the last product stands for the split.
    split = np.bincount(number[last], weights=durations[last], minlength=len(runs))
    apart = runs["total_ns"].to_numpy(dtype=np.float64) - split
    before, after = np.concatenate([apart, split]), np.concatenate([runs["together_ns"], runs["split_ns"]])
    tasks = facts[step_kernels].frame["work"].to_numpy()[members["place"].to_numpy()]
    return float(replay.saved_ns(Merging(tasks, number + last * len(runs), before, after)))


def _cost(m: pd.Series, n: pd.Series, batch: pd.Series, cores: int) -> tuple[Floats, Floats]:
    """Blocks of products and what they cost, rounds x width of a block, with the cheaper of the two block sizes."""
    counts = np.stack([tiles(m, n, base, batch) for base in BASE_N])
    costs = np.ceil(counts / cores) * np.array(BASE_N)[:, None]
    best, each = costs.argmin(axis=0), np.arange(counts.shape[1])
    return counts[best, each], costs[best, each]


def _overwritten(frame: pd.DataFrame, mine: pd.DataFrame, distance: pd.Series, reach: int) -> pd.Series:
    """Whether a kernel between a product and the one before writes a tensor of the operand's size."""
    sizes = per_text(frame["output_shapes"], _size).to_numpy(dtype=np.int64)
    wanted = per_text(frame["input_shapes"], _size).to_numpy(dtype=np.int64)[mine["place"].to_numpy()]
    result = np.zeros(len(mine), dtype=np.bool_)
    for back in range(1, reach + 1):
        between = (distance > back).to_numpy()
        result |= between & (sizes[np.maximum(mine["place"].to_numpy() - back, 0)] == wanted)
    return pd.Series(result, index=mine.index)


def more_sequences(sequences: pd.Series, heads: np.ndarray, cores: pd.Series) -> pd.Series:
    """As many sequences as fit into the rounds of cores that one sequence more would need; NaN for unknown heads.

    Two sequences of 4 heads on 24 cores: a third needs one round of 24, which 6 fill. Thirty of 1 head: a 31st needs
    two rounds, which 48 fill."""
    rounds = np.ceil((sequences + 1) * heads / cores)
    better: pd.Series = np.floor(rounds * cores / heads)
    return better


@advisor(
    "shape_affinity.attention",
    needs=(step_kernels, chip),
    wants=(launches, HOST_EVENTS),
    about=(
        Column("operator", "text", "", "operator type"),
        Column("input_shapes", "text", "", "shapes of its inputs"),
    ),
    columns=(
        Column("query_shape", "text", "", "shape of the query"),
        Column("sequences", "int", "count", "sequences in a batch; unknown where the shapes do not tell"),
        Column("kv_heads", "float", "count", "heads of key and value; unknown where the shapes do not tell"),
        Column("parallel", "float", "count", "sequences x heads of key and value: what can run at once"),
        Column("cores", "int", "count", "cores of the kind that it runs on"),
        Column("efficiency", "float", "ratio", "part of the cores' time that is used"),
        Column(
            "good_sequences",
            "float",
            "count",
            "the next larger number that fills its rounds of cores",
        ),
        Column("good_efficiency", "float", "ratio", "part of the cores' time that is used with so many sequences"),
        Column("blocks", "float", "count", "logical blocks that the kernel used"),
        Column("kernels", "float", "count", "kernels per step"),
        Column("mean_ns", "float", "ns", "mean duration"),
        Column("total_ns", "float", "ns", "time per step"),
        Column("gain_ns", "float", "ns", "time of the idle cores"),
        *_SHARES,
    ),
)
def attention(facts: Facts, params: Params) -> Observations:
    """Attention over a cache, one token at a time: sequences times heads against cores."""
    own = facts[step_kernels]
    device = facts[chip]
    frame = own.frame
    mine = frame[matching(frame["type"], _DECODE_ATTENTION)]
    if len(mine):
        own.require_shapes()
    told = per_text(mine["input_shapes"], _decode_shape)
    cores = np.where(mine["core"].isin(_VECTOR), device.vector_cores, device.cube_cores)
    texts = mine["input_shapes"].astype(str)
    mine = mine.assign(operator=mine["type"].astype(str), texts=texts, told=told, cores=cores)
    mine = mine[mine["told"].notna()]
    if mine.empty:
        raise NotApplicable(message("shape_affinity.no_decode"))
    grouped = mine.groupby(["operator", "texts"], sort=True)
    table = grouped["duration_ns"].agg(kernels="size", mean_ns="mean", total_ns="sum")
    rest = grouped.agg(blocks=("block_dim", "median"), told=("told", "first"), cores=("cores", "first"))
    table = table.join(rest).reset_index()
    table = table.rename(columns={"texts": "input_shapes"})
    table["query_shape"] = table["input_shapes"].str.split(";").str[0]
    table["sequences"] = [told[0] for told in table["told"]]
    heads = np.array([told[1] if told[1] else np.nan for told in table["told"]], dtype=np.float64)
    table["kv_heads"] = heads
    table["parallel"] = table["sequences"] * heads
    used = balance(table["parallel"].fillna(1), table["cores"])
    table["efficiency"] = np.where(table["parallel"].notna(), used, np.nan)
    table["good_sequences"] = more_sequences(table["sequences"], heads, table["cores"])
    table["good_efficiency"] = balance(table["good_sequences"] * heads, table["cores"])
    for name in ("kernels", "total_ns"):
        table[name] = table[name] / own.steps
    table["gain_ns"] = table["total_ns"] * (1 - table["efficiency"])
    table = table.sort_values("total_ns", ascending=False, kind="stable").reset_index(drop=True)
    table = table.assign(**own.shares(table["gain_ns"]))

    def evidence(row: int) -> list[Reference]:
        kernels = mine[(mine["operator"] == table["operator"][row]) & (mine["texts"] == table["input_shapes"][row])]
        return [
            kernel_rows(message("shape_affinity.attention_rows"), kernels, PIPE_COLUMNS),
            *call_stack(facts, kernels),
        ]

    return Observations(table, evidence)


DECODE_TOKENS = 16
"""More new tokens per sequence than this are no decoding step (speculation adds a few)."""


def _decode_shape(text: str) -> tuple[int, int] | None:
    """(sequences, heads of key and value) of attention over a cache; 0 heads where the layout does not tell them,
    ``None`` for what is not a decoding step.

    Layouts: BNSD and BSND (query ``[8,32,1,128]`` or ``[8,1,32,128]`` with keys of four axes), one row per sequence
    with a paged cache ``[blocks, block size, heads, channels]``, and BSH, which hides the heads.

    >>> _decode_shape("8,32,1,128;8,4,4096,128;8,4,4096,128"), _decode_shape("8,1,32,128;8,4096,4,128")
    ((8, 4), (8, 4))
    >>> _decode_shape("16,32,128;900,128,8,128"), _decode_shape("8,1,4096;8,2048,512")
    ((16, 8), (8, 0))
    >>> _decode_shape("1,32,2048,128;1,4,2048,128") is None
    True
    """
    shapes = shapes_of(text)
    if len(shapes) < 2 or len(shapes[0]) < 3 or not shapes[1]:
        return None
    query, key = shapes[0], shapes[1]
    if len(query) == 4 and len(key) == 4:
        if query[2] <= DECODE_TOKENS < key[2] and query[2] < query[1]:
            return query[0], key[1]
        if query[1] <= DECODE_TOKENS < key[1]:
            return query[0], key[2]
        return None
    if len(query) == 3 and len(key) == 4 and query[2] == key[3]:
        return query[0], key[2]
    if len(query) == 3 and query[1] <= DECODE_TOKENS:
        return query[0], 0
    return None


ADVISORS = (tails, rows_per_core, blocks, shared_input, attention)
