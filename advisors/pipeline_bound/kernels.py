"""PB001 to PB005, PB012, PB013, PB021: which pipe bounds a kernel, and how busy it is."""

from __future__ import annotations

import numpy as np
import pandas as pd

from advisor_core.api.advisors import Column, Metric, Observations, Params, Reference, advisor
from advisor_core.api.facts import (
    HOST_EVENTS,
    Chip,
    Facts,
    Groups,
    NotApplicable,
    chip,
    elements,
    frame_of,
    launches,
    matching,
    narrowed,
    pipes,
    shapes_of,
)
from advisors.columns import KERNELS_PER_STEP, MEAN_NS, OPERATOR_TYPE, TOTAL_NS, shares
from advisors.fused_communication import FUSED_COMMUNICATION
from advisors.fusion.chains import fusion_chains
from advisors.half_precision import reads_fp32, reads_half
from advisors.layers.layers import layers
from advisors.layers.places import PLACES, origin
from advisors.messages import message
from advisors.shape_affinity.rows import DIVIDED_BY_ROWS
from advisors.step_kernels import PIPE_COLUMNS, StepKernels, kernel_rows, step_kernels

PIPES = ("mac", "vec", "mte1", "mte2", "mte3", "fixpipe", "scalar")


_PIPE_COUNTERS = {
    "mac": ("aic_mac",),
    "vec": ("aiv_vec",),
    "mte1": ("aic_mte1",),
    "mte2": ("aic_mte2", "aiv_mte2"),
    "mte3": ("aiv_mte3",),
    "fixpipe": ("aic_fixpipe",),
    "scalar": ("aic_scalar", "aiv_scalar"),
}


_CORES = {"AI_CORE": "cube", "MIX_AIC": "cube", "AI_VECTOR_CORE": "vector", "MIX_AIV": "vector"}
"""The cores that the blocks of a kernel are divided among; a MIX kernel counts those that lead."""


_SHARES = shares("total_ns")


_ABOUT = (
    OPERATOR_TYPE,
    Column("input_shapes", "text", "", "shapes of its inputs", zh="输入 shape"),
    Column("dtypes", "text", "", "dtypes of its inputs", zh="数据类型"),
)


@advisor(
    "pipeline_bound.kernels",
    needs=(step_kernels, pipes),
    wants=(chip, fusion_chains, launches, HOST_EVENTS, layers),
    about=_ABOUT,
    columns=(
        Column("operator_class", "text", "", "its class in the ledger", zh="算子类别"),
        Column("core", "text", "", "the kind of core that it runs on", zh="核类型"),
        Column("shape", "text", "", "shape of the largest input", zh="shape"),
        Column("reads_fp32", "bool", "", "it reads FP32 and no floating-point type of 16 bits", zh="只读 FP32"),
        Column(
            "reads_half",
            "bool",
            "",
            "it reads a floating-point type of 16 bits and no quantised operand",
            zh="读 16 位浮点",
        ),
        Column("communicates", "bool", "", "it communicates with other ranks by itself", zh="自带通信"),
        KERNELS_PER_STEP,
        MEAN_NS,
        TOTAL_NS,
        Column("bound", "text", "", "the busiest pipe: mac, vec, mte1, mte2, mte3, fixpipe or scalar", zh="瓶颈"),
        Column("bound_ratio", "float", "ratio", "how much of the duration that pipe is busy", zh="瓶颈流水占比"),
        *(Column(pipe, "float", "ratio", f"how much of the duration {pipe} is busy", zh=pipe) for pipe in PIPES),
        Column(
            "data_ratio",
            "float",
            "ratio",
            "how busy the busiest pipe is that computes or moves data: not scalar",
            zh="数据搬运占比",
        ),
        Column("bandwidth", "float", "B/s", "inputs and outputs, once, over the duration", zh="带宽"),
        Column(
            "bandwidth_share",
            "float",
            "ratio",
            "of what the long elementwise kernels and copies reach together",
            zh="带宽利用率",
        ),
        Column(
            "in_chain_share", "float", "ratio", "part of its time in chains that a fused kernel replaces", zh="链内占比"
        ),
        Column("blocks", "float", "count", "logical blocks", zh="分块数"),
        Column("cores", "float", "count", "cores of the kind that it runs on", zh="核数"),
        Column("rounds", "float", "count", "how often the cores go round for the blocks", zh="轮数"),
        Column(
            "last_round_idle",
            "float",
            "ratio",
            "part of the cores' time that the last round of blocks leaves idle, at most what their cycles leave",
            zh="末轮空闲",
        ),
        Column("at_work", "float", "ratio", "cycles of the cores over those of all cores in its time", zh="核占用率"),
        Column("by_rows", "bool", "", "it gives whole rows to a core, which are judged by themselves", zh="按行切分"),
        *_SHARES,
    ),
    evidence=(
        *PLACES,
        Column("pipe", "text", "", "pipe of the core", zh="流水"),
        Column("busy", "float", "ratio", "part of the duration in which it is at work", zh="忙碌占比"),
    ),
)
def kernels(facts: Facts, params: Params) -> Observations:
    """Kernels of equal type, shapes and dtypes: which pipe is busiest, and how busy."""
    rank_kernels = facts[step_kernels]
    frame = rank_kernels.frame
    ratios = facts[pipes].iloc[frame["row"].to_numpy()]
    has_ratio = ratios["bound_ratio"].notna().to_numpy()
    duration = frame["duration_ns"].to_numpy(dtype=np.float64)
    busy = {pipe: np.fmax.reduce(narrowed(ratios, names).to_numpy(), axis=1) for pipe, names in _PIPE_COUNTERS.items()}
    weighted = pd.DataFrame(
        {
            **{pipe: share * duration for pipe, share in busy.items()},
            "duration": duration,
            "signature": frame["signature"].to_numpy(),
            "chained": np.where(_in_chain(facts, len(frame)), duration, 0.0),
            "bytes": np.where(frame["bytes"] > 0, frame["bytes"], np.nan),
            "blocks": frame["block_dim"].to_numpy(),
            "cycles": np.fmax(frame["aic_cycles"].to_numpy(), frame["aiv_cycles"].to_numpy()),
        }
    )[has_ratio]
    if weighted.empty:
        raise NotApplicable(message("pipeline_bound.nothing"))
    groups = Groups(weighted, "signature")
    table = _table(weighted, groups, rank_kernels)
    firsts = np.flatnonzero(has_ratio)[groups.firsts]
    table = table.assign(**{name: frame[of].array.take(firsts).astype(str) for name, of in _TEXTS.items()})
    table = table.sort_values("total_ns", ascending=False, kind="stable", ignore_index=True)
    table["shape"] = table["input_shapes"].map(_largest_shape)
    table["reads_fp32"] = table["dtypes"].map(reads_fp32).astype(bool)
    table["reads_half"] = table["dtypes"].map(reads_half).astype(bool)
    table["communicates"] = matching(table["operator"].astype("category"), FUSED_COMMUNICATION)
    table["cores"] = table["core"].map(_core_counts(facts.get(chip)))
    table = table.assign(**_rounds(table, facts.get(chip)))
    table["by_rows"] = matching(table["operator"].astype("category"), DIVIDED_BY_ROWS)
    table = table.assign(**rank_kernels.shares(table["total_ns"]))

    def evidence(row: int) -> list[Reference]:
        rows = frame[frame["signature"] == table["signature"][row]]
        pipe_ratios = [{"pipe": pipe, "busy": _finite_or_none(table[pipe][row])} for pipe in PIPES]
        return [
            kernel_rows(message("pipeline_bound.rows"), rows, PIPE_COLUMNS),
            Metric(message("pipeline_bound.pipes"), pipe_ratios),
            *origin(facts, rows),
        ]

    return Observations(table, evidence)


def _finite_or_none(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _in_chain(facts: Facts, count: int) -> np.ndarray:
    chained = np.zeros(count, dtype=np.bool_)
    chains = facts.get(fusion_chains)
    if chains is not None:
        chained[chains.members] = True
    return chained


def _largest_shape(input_shapes: str) -> str:
    shapes = sorted(shapes_of(input_shapes), key=elements)
    return ",".join(map(str, shapes[-1])) if shapes else ""


_TEXTS = {
    "operator": "type",
    "input_shapes": "input_shapes",
    "dtypes": "input_dtypes",
    "operator_class": "operator_class",
    "core": "core",
}
"""What all kernels of a signature have in common, and the column of the kernels that tells it."""


def _table(kernels: pd.DataFrame, groups: Groups, own: StepKernels) -> pd.DataFrame:
    """How busy the pipes are in the kernels of each signature, and what these take."""
    summed = ["duration", "chained", "bytes", "cycles"]
    sums = kernels.groupby("signature", sort=True)[[*PIPES, *summed]].sum(min_count=1)
    duration, chained, moved, cycles = (sums[name].to_numpy() for name in summed)
    with np.errstate(divide="ignore", invalid="ignore"):
        busy = {pipe: sums[pipe].to_numpy() / duration for pipe in PIPES}
        bandwidth = moved / duration * 1e9
        rates = {"in_chain_share": chained / duration, "cycles_ns": cycles / duration}
    by_pipe = np.column_stack(list(busy.values()))
    by_pipe = np.where(np.isnan(by_pipe), -1.0, by_pipe)
    return frame_of(
        {
            **groups.keys(),
            **busy,
            **rates,
            "bound": np.array(PIPES, dtype=object)[by_pipe.argmax(axis=1)],
            "bound_ratio": by_pipe.max(axis=1),
            "data_ratio": np.fmax.reduce([ratio for pipe, ratio in busy.items() if pipe != "scalar"]),
            "bandwidth": bandwidth,
            "bandwidth_share": bandwidth / own.bandwidth,
            "kernels": groups.sizes / own.steps,
            "mean_ns": duration / groups.sizes,
            "total_ns": duration / own.steps,
            "blocks": groups.of("blocks", "median"),
        },
        len(groups),
    )


def _core_counts(chip: Chip | None) -> dict[str, float]:
    if chip is None:
        return {}
    return {core: float(getattr(chip, f"{kind}_cores")) for core, kind in _CORES.items()}


def _rounds(table: pd.DataFrame, cores: Chip | None) -> dict[str, pd.Series]:
    """Rounds of blocks, and how much of the time of all cores the last one leaves idle: where cycles were counted and
    leave less idle, only so much, since kernels can divide a block further (docs/sources.md#last-round-of-blocks).
    ``table``: with ``cycles_ns``, cycles per ns of its kernels, of the busier kind of cores."""
    rounds = np.ceil(table["blocks"] / table["cores"])
    at_work = table["cycles_ns"] / (table["cores"] * (np.nan if cores is None else cores.mhz / 1e3))
    idle = 1 - table["blocks"] / (rounds * table["cores"])
    measured = (1 - at_work).clip(lower=0.0)
    return {"rounds": rounds, "at_work": at_work, "last_round_idle": np.fmin(idle, measured.where(at_work > 0))}
