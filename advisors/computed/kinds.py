"""What each kernel of the steps computes: the shapes of heavy ones, the formulas that several serve, operations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pandas as pd

from advisor_core.api.facts import KINDS_OF_SHAPES, Facts, launches, picked, shapes_of, steps
from advisors.computed.attentions import fused_size, written_out, written_size
from advisors.computed.names import CLIPPING, OPTIMIZER, formula, fused_formula, is_half, operation, serves_formula
from advisors.fusion.chains import fusion_chains
from advisors.fusion.clipping import gradient_clipping
from advisors.fusion.nodes import kernel_nodes
from advisors.layers.blocks import Block, Pass
from advisors.layers.layers import layers
from advisors.layers.marks import Marks, marks_of
from advisors.roofline.convolutions import convolution_size, is_of_autograd
from advisors.roofline.products import product_of
from advisors.roofline.quantities import IMAGE_CHANNELS
from advisors.roofline.work import KernelWork, kernel_work
from advisors.step_kernels import StepKernels, step_kernels

if TYPE_CHECKING:
    import numpy.typing as npt

Ints: TypeAlias = "npt.NDArray[np.int64]"
Floats: TypeAlias = "npt.NDArray[np.float64]"
Texts: TypeAlias = "npt.NDArray[np.object_]"


@dataclass
class Kinds:
    """By row of `StepKernels`: the keys of the row that it counts in; ``call``: what launched it at once, one operator
    or the kernel itself; ``unit``: the computation that it is part of, and ``times``: how many of its kind that is;
    ``part``: of the operations and bytes that shapes tell, those of the kernel."""

    kind: Texts
    what: Texts
    dtype: Texts
    block: Texts
    passes: Texts
    flops: Floats
    part: Floats
    times: Ints
    call: Ints
    unit: Ints

    def put(self, rows: Ints | npt.NDArray[np.bool_], kind: str, what: Any, unit: Any) -> None:
        self.kind[rows], self.what[rows], self.dtype[rows], self.unit[rows] = kind, what, "", unit


def kinds_of(facts: Facts) -> Kinds:
    """What each kernel computes. Asks for `step_kernels`, `kernel_nodes`, `kernel_work`, `fusion_chains`,
    `gradient_clipping` and `steps`, and, wanted, `layers` and `launches`."""
    kernels, nodes, work = facts[step_kernels], facts[kernel_nodes], facts[kernel_work]
    frame, count = kernels.frame, len(kernels.frame)
    signature = frame["signature"].to_numpy(dtype=np.int64)
    call = _calls(facts, kernels)
    heavy = work.table["kind"].isin(KINDS_OF_SHAPES).to_numpy()[signature]
    computed, recorded = (values[signature] for values in _gradients(kernels, work))
    halves = np.array([is_half(str(name)) for name in work.table["operator"]], dtype=np.bool_)[signature]
    told = _of_signatures(kernels, work, [node.operation for node in nodes.nodes])
    kind, what, dtype = (told[name].to_numpy(dtype=object)[signature] for name in ("kind", "what", "dtype"))
    block, passes = _places(facts, nodes.backward)
    kinds = Kinds(
        kind,
        what,
        dtype,
        block,
        passes,
        flops=work.per_kernel(kernels, "flops"),
        part=np.ones(count),
        times=np.where(halves, 0, 1),
        call=call,
        unit=call.copy(),
    )
    _told_together(kinds)
    _share(kinds, computed, recorded)
    free = ~heavy
    step = np.searchsorted(facts[steps]["start_ns"].to_numpy(), frame["start_ns"].to_numpy(), side="right")
    chains = facts[fusion_chains]
    patterns = np.array([formula(name) for name in chains.frame["pattern"]], dtype=object)
    inside = free[chains.members]
    members, chain = chains.members[inside], chains.chain_of[inside]
    # Numbers of chains and of steps are put behind those of calls, so that no two computations have one number.
    kinds.put(members, "computation", patterns[chain], count + chain)
    updates = free & ((kinds.block == Block.OPTIMIZER.key) | (kinds.what == OPTIMIZER))
    kinds.put(updates, "computation", OPTIMIZER, 2 * count + step[updates])
    clipping = facts[gradient_clipping]
    kinds.put(clipping.members, "computation", CLIPPING, 3 * count + clipping.clip_of)
    marks = marks_of(kernels, nodes, chains)
    group = written_out(kernels, marks, np.asarray(kinds.kind == "attention", dtype=np.bool_))
    group = _with_chains(group, members, chain, patterns[chain] == "attention")
    _put_attentions(kinds, kernels, marks, group, work, 4 * count)
    _place_together(kinds, frame["duration_ns"].to_numpy(dtype=np.int64))
    return kinds


def _place_together(kinds: Kinds, ns: Ints) -> None:
    """Give all kernels of one computation the block and the pass of the longest of them: it is in one row then."""
    order = np.lexsort((np.arange(len(ns)), -ns, kinds.unit))
    _, first, place = np.unique(kinds.unit[order], return_index=True, return_inverse=True)
    longest = np.empty(len(ns), dtype=np.int64)
    longest[order] = order[first][place]
    kinds.block, kinds.passes = kinds.block[longest], kinds.passes[longest]


def _with_chains(group: Ints, members: Ints, chain: Ints, of_attention: npt.NDArray[np.bool_]) -> Ints:
    """The same with what the data flow adds to a written-out attention: copies and casts of its inputs."""
    rows, number = members[of_attention], chain[of_attention]
    known = pd.Series(group[rows], index=number)
    of_chain = known[known >= 0].groupby(level=0).first()
    told = of_chain.reindex(number).fillna(-1).to_numpy(dtype=np.int64)
    group = group.copy()
    group[rows] = np.where(group[rows] < 0, told, group[rows])
    return group


def _of_signatures(kernels: StepKernels, work: KernelWork, operations: Sequence[str]) -> pd.DataFrame:
    """``kind``, ``what`` and ``dtype`` of each distinct kernel by itself."""
    names = ("type", "input_shapes", "input_formats", "output_shapes", "output_formats")
    texts = picked(kernels.frame, kernels.firsts, names).astype(str).to_dict("records")
    rows = []
    for text, known, done in zip(texts, work.table.to_dict("records"), operations, strict=True):
        kind = str(known["kind"])
        if kind in KINDS_OF_SHAPES:
            rows.append((kind, _what(kind, text, known), str(known["dtype"])))
        elif name := OPTIMIZER if known["operator_class"] == "optimizer" else fused_formula(text["type"]):
            rows.append(("computation", name, ""))
        else:
            found = operation(done, str(known["operator_class"]))
            rows.append(("computation" if serves_formula(done) else "operation", found, ""))
    return pd.DataFrame(rows, columns=["kind", "what", "dtype"])


def _what(kind: str, text: dict[Any, str], known: dict[Any, Any]) -> str:
    """What a heavy kernel computes. A product and the transposed one are the same work: the shorter of both axes of the
    result comes first."""
    shapes, formats, results = text["input_shapes"], text["input_formats"], text["output_shapes"]
    if kind == "product":
        found = product_of(shapes, formats, results)
        if found is None or not known["work"]:
            return ""
        batch = f"{found.batch} x " if found.batch > 1 else ""
        return f"{batch}{min(found.m, found.n)} x {max(found.m, found.n)} x {found.k}"
    if kind == "grouped":
        return f"{known['work']}, {known['flops'] / 1e9:.4g} GFLOP" if known["work"] else ""
    if kind == "convolution":
        size = convolution_size(text["type"], shapes, formats, results, text["output_formats"])
        return "" if size is None else " x ".join(map(str, size))
    return fused_size(text["type"], shapes, results)


def _gradients(kernels: StepKernels, work: KernelWork) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """How many convolutions an operator of each signature computes, and where that is recorded: that of PyTorch for the
    backward pass computes the gradients of input and weight, as far as they are asked for. Where that is not recorded,
    those of images are not."""
    texts = picked(kernels.frame, kernels.firsts, ("input_shapes", "output_shapes")).astype(str)
    computed, recorded = np.ones(len(texts), dtype=np.int64), np.zeros(len(texts), dtype=np.bool_)
    for place, name in enumerate(work.table["operator"]):
        reads, writes = (shapes_of(texts[column].iloc[place]) for column in ("input_shapes", "output_shapes"))
        if is_of_autograd(str(name)) and len(reads) > 2:
            image, weight = reads[1:3]  # behind the gradient of the result
            recorded[place] = bool(writes)
            if writes:
                computed[place] = max((image in writes) + (weight in writes), 1)
            elif not (len(image) > 1 and image[1] in IMAGE_CHANNELS):
                computed[place] = 2
    return computed, recorded


def _calls(facts: Facts, kernels: StepKernels) -> Ints:
    """The number of the first kernel of those that one operator launched; of its own where that is not known, and
    where a vendor has a kernel per operator."""
    own = np.arange(len(kernels.frame), dtype=np.int64)
    own = np.maximum.accumulate(np.where(kernels.goes_on, 0, own))
    launched = facts.get(launches)
    if launched is None or not facts[kernel_nodes].on_gpu:
        return own
    operator = launched.frame["op_row"].to_numpy()[kernels.frame["work"].to_numpy()]
    rows = pd.DataFrame({"operator": operator, "own": own})
    first = rows.groupby("operator")["own"].transform("min").to_numpy()
    return np.where(operator >= 0, first, own)


def _told_together(kinds: Kinds) -> None:
    """Give the kernels of a product, convolution or attention whose shapes do not tell what they compute the words of
    another kernel of their operator: of several, one has its result."""
    rows = pd.DataFrame({"call": kinds.call, "kind": kinds.kind, "what": kinds.what})
    heavy = rows["kind"].isin(KINDS_OF_SHAPES)
    told = rows[heavy & (rows["what"] != "")].drop_duplicates(["call", "kind"])
    left = rows[heavy & (rows["what"] == "")].reset_index()
    found = left.merge(told.assign(told=told.index)[["call", "kind", "told"]], on=["call", "kind"])
    for name in ("what", "dtype"):
        values = getattr(kinds, name)
        values[found["index"].to_numpy()] = values[found["told"].to_numpy()]


def _share(kinds: Kinds, computed: Ints, recorded: npt.NDArray[np.bool_]) -> None:
    """Set which part of the operations and bytes that shapes tell each kernel has: kernels of one operator that all
    have its shapes compute it together. ``computed``: how many times the shapes tell one computation, ``recorded``:
    where that is sure."""
    heavy = np.isin(kinds.kind, KINDS_OF_SHAPES) & np.isfinite(kinds.flops)
    rows = pd.DataFrame({"call": kinds.call, "sure": np.where(recorded, computed, 0), "else": computed})[heavy]
    together = rows.groupby("call")
    sure, otherwise = together["sure"].transform("max"), together["else"].transform("max")
    times = sure.where(sure > 0, otherwise).to_numpy()
    kinds.part[heavy] = times / together["call"].transform("size").to_numpy()
    kinds.times[heavy] = times


def _places(facts: Facts, backward: npt.NDArray[np.bool_]) -> tuple[Texts, Texts]:
    """Block and pass of each kernel; without layers the block is not known."""
    found = facts.get(layers)
    if found is None:
        passes = np.where(backward, Pass.BACKWARD.key, Pass.FORWARD.key).astype(object)
        return np.full(len(backward), "", dtype=object), passes
    block_keys, pass_keys = ([one.key for one in names] for names in (Block, Pass))
    return np.array(block_keys, dtype=object)[found.blocks], np.array(pass_keys, dtype=object)[found.passes]


def _put_attentions(
    kinds: Kinds, kernels: StepKernels, marks: Marks, group: Ints, work: KernelWork, first: int
) -> None:
    """Mark the kernels of written-out attentions (``group``), whose numbers begin with ``first``."""
    rows = np.flatnonzero(group >= 0)
    if not len(rows):
        return
    frame = kernels.frame
    signature = frame["signature"].to_numpy(dtype=np.int64)
    products, softmax = marks.product[rows], (marks.rare & ~marks.product)[rows]
    dtype = work.table["dtype"].to_numpy(dtype=object)[signature]
    of_softmax = rows[softmax]
    scores = _first_of(group[of_softmax], frame["input_shapes"].astype(str).to_numpy()[of_softmax])
    flops = _first_of(group[rows[products]], kinds.flops[rows[products]])
    types = _first_of(group[rows[products]], dtype[rows[products]])
    words = {number: written_size(str(text), float(flops.get(number, 0.0))) for number, text in scores.items()}
    kinds.put(rows, "attention", [words.get(number, "") for number in group[rows].tolist()], first + group[rows])
    kinds.dtype[rows] = [types.get(number, "") for number in group[rows].tolist()]


def _first_of(numbers: Ints, values: Texts | Floats) -> dict[int, Any]:
    """The first of the values of each number."""
    found: dict[int, Any] = {}
    for number, value in zip(numbers.tolist(), values.tolist(), strict=True):
        found.setdefault(number, value)
    return found
