"""NS047: adapters of low rank (LoRA): what they take beside the products that they stand beside."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from advisor_core.api.advisors import Column, Observations, Params, Reference, Rows, advisor
from advisor_core.api.facts import HOST_EVENTS, KERNELS, Facts, Merging, NotApplicable, launches, replay
from advisors.columns import savings, shares
from advisors.fusion.adapters import BASE, BESIDE, THIN, Adapters, adapters
from advisors.layers.layers import layers
from advisors.layers.places import PLACES, origin
from advisors.measuring import row
from advisors.messages import message
from advisors.network_structure.memory_bound_chains import series_text
from advisors.step_kernels import EVIDENCE_COLUMNS, StepKernels, kernel_rows, step_kernels

if TYPE_CHECKING:
    import numpy.typing as npt

Floats: TypeAlias = "npt.NDArray[np.float64]"


@advisor(
    "network_structure.adapters",
    needs=(step_kernels, adapters),
    wants=(replay, launches, HOST_EVENTS, layers),
    columns=(
        Column("adapters", "float", "count", "adapters that run forward, per step", zh="适配器数"),
        Column("adapter_rank", "int", "count", "the largest of their ranks", zh="秩"),
        Column("chain", "text", "", "the operator types of one of them in order, in short", zh="算子链"),
        Column("trained", "bool", "", "products that autograd runs for them were seen", zh="训练中"),
        Column("wide", "bool", "", "they compute on more bytes than the products beside them", zh="精度更高"),
        Column("base_ns", "float", "ns", "the products that they stand beside, forward, per step", zh="原矩阵乘"),
        Column("adapter_ns", "float", "ns", "their own products, forward, per step", zh="适配器矩阵乘"),
        Column("sums_ns", "float", "ns", "scales, casts and sums, forward, per step", zh="缩放、转换与相加"),
        Column("backward_ns", "float", "ns", "products that autograd runs for them, with scales and casts", zh="反向"),
        Column("over_base", "float", "ratio", "adapter_ns and sums_ns over base_ns", zh="相对原矩阵乘"),
        Column("kernels", "float", "count", "kernels that could go, per step", zh="kernel 数"),
        Column(
            "fused_ns",
            "float",
            "ns",
            "of what could go: what is left. Trained: one kernel for scale, casts and sum of each, which moves the "
            "two results and the sum; else nothing, as a merged weight needs no adapter",
            zh="融合算子",
        ),
        *savings("kernel time that can be saved, per step"),
        *shares("saving_ns", "kernel_saving_ns"),
    ),
    evidence=PLACES,
)
def adapters_of_low_rank(facts: Facts, params: Params) -> Observations:
    """Adapters of low rank: their time beside that of the products that they stand beside, and what could go of it."""
    own = facts[step_kernels]
    own.require_tensors()
    found = facts[adapters]
    if not len(found.rank):
        raise NotApplicable(message("adapters.none"))
    took = own.frame["duration_ns"].to_numpy(dtype=np.float64)[found.members]
    forward = found.adapter_of >= 0
    trained = bool((~forward).any())
    going = _behind_products(found) if trained else forward & (found.role != BASE)
    merging = _fused(own, found, going) if trained else _merged(own, found, forward)
    kernel_saving = float((merging.before_ns - merging.after_ns).sum())
    replayed = facts.get(replay)
    saving = kernel_saving if replayed is None else float(replayed.saved_by_each([merging])[0])
    base_ns, adapter_ns = (float(took[forward & (found.role == role)].sum()) for role in (BASE, THIN))
    sums_ns = float(took[forward & (found.role == BESIDE)].sum())
    first = own.frame.iloc[found.members[found.adapter_of == int(found.rank.argmax())]]
    result = row(
        adapters=len(found.rank) / own.steps,
        adapter_rank=int(found.rank.max()),
        chain=series_text(first["type"]),
        trained=trained,
        wide=bool(found.wide.mean() > 1 / 2),
        base_ns=base_ns / own.steps,
        adapter_ns=adapter_ns / own.steps,
        sums_ns=sums_ns / own.steps,
        backward_ns=float(took[~forward].sum()) / own.steps,
        over_base=(adapter_ns + sums_ns) / base_ns if base_ns else np.nan,
        kernels=float(going.sum() - (len(found.rank) if trained else 0)) / own.steps,
        fused_ns=(float(took[going].sum()) - kernel_saving) / own.steps,
        **own.savings(kernel_saving, saving),
    )

    def evidence(_: int) -> list[Reference]:
        everything = own.frame.iloc[found.members[found.role != BASE]]
        return [
            Rows(message("adapters.example"), KERNELS, first["row"].to_numpy(dtype=np.int64), EVIDENCE_COLUMNS),
            kernel_rows(message("adapters.rows"), everything),
            *origin(facts, everything),
        ]

    return Observations(result, evidence, cure=lambda _: merging)


def _behind_products(found: Adapters) -> npt.NDArray[np.bool_]:
    """The kernels behind the second product of each adapter: the scale, casts and the sum."""
    thin = (found.role == THIN) & (found.adapter_of >= 0)
    last = np.zeros(len(found.rank), dtype=np.int64)
    np.maximum.at(last, found.adapter_of[thin], found.members[thin])
    return np.asarray((found.role == BESIDE) & (found.adapter_of >= 0) & (found.members > last[found.adapter_of]))


def _fused(own: StepKernels, found: Adapters, going: npt.NDArray[np.bool_]) -> Merging:
    """One kernel for what stands behind the products of each adapter."""
    before, number = _sums(own, found, going)
    bandwidth, begin = own.reached(own.best_bandwidth(found.members[going]))
    after = np.fmin(found.added / bandwidth * 1e9 + begin, before)
    return Merging(own.frame["work"].to_numpy()[found.members[going]], number, before, after)


def _merged(own: StepKernels, found: Adapters, forward: npt.NDArray[np.bool_]) -> Merging:
    """Each adapter in the weight of the product that it stands beside, which takes as long as before."""
    before, number = _sums(own, found, forward)
    base, _ = _sums(own, found, forward & (found.role == BASE))
    return Merging(own.frame["work"].to_numpy()[found.members[forward]], number, before, base)


def _sums(own: StepKernels, found: Adapters, chosen: npt.NDArray[np.bool_]) -> tuple[Floats, npt.NDArray[np.int64]]:
    number = found.adapter_of[chosen]
    took = own.frame["duration_ns"].to_numpy(dtype=np.float64)[found.members[chosen]]
    return np.bincount(number, took, len(found.rank)).astype(np.float64), number
