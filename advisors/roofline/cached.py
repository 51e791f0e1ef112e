"""What a kernel reads from the last cache at best: tensors that a kernel shortly before it read or wrote.

Which tensor is which, a recording does not tell: tensors of equal size count as one, so that the bytes from memory are
never too many. The weight of a product is another one in each layer, though its size is the same: it counts as cached
only if a kernel wrote a tensor of its size. Behind a kernel whose results are not known (in traces of GPUs they are
inferred for most operators) anything may be cached but the second operand of a product.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from advisors.roofline.work import KernelWork
from advisors.step_kernels import StepKernels

if TYPE_CHECKING:
    import numpy.typing as npt

Floats: TypeAlias = "npt.NDArray[np.float64]"
Bools: TypeAlias = "npt.NDArray[np.bool_]"
Ints: TypeAlias = "npt.NDArray[np.int64]"

_TOO_SMALL = 1 << 16
"""Bytes of a tensor that takes less than a tenth of a microsecond from any memory: not followed."""


def cached_bytes(own: StepKernels, work: KernelWork, capacity: float) -> Floats:
    """Bytes that each kernel, by row of the frame of `StepKernels`, may read from a cache of ``capacity`` bytes."""
    frame = own.frame
    moved = np.nan_to_num(work.per_kernel(own, "read")) + np.nan_to_num(work.per_kernel(own, "written"))
    order = np.argsort(frame["start_ns"].to_numpy(), kind="stable")
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    behind = np.concatenate([[0.0], np.cumsum(moved[order])])  # bytes moved before each place
    signature = frame["signature"].to_numpy()
    owner, size, number, writes, operand, weight = _tensors(work, signature, place)
    cached = np.zeros(len(frame))
    if not len(owner):
        return cached
    count = len(frame) + 1
    touched = np.sort(number * count + owner)
    written = np.sort((number * count + owner)[writes])
    read = ~writes
    at, key, bytes_read = owner[read], number[read], size[read]
    last = np.where(operand[read], _before(written, key, at, count), _before(touched, key, at, count))
    untold = np.where(weight[read], -1, _last_of(np.sort(place[_writes_unknown(work, signature)]), at))
    last = np.maximum(last, untold)
    near = (last >= 0) & (behind[at] - behind[np.maximum(last, 0) + 1] < capacity)
    sums = np.bincount(at[near], weights=bytes_read[near], minlength=len(frame))
    return np.asarray(np.minimum(sums, capacity)[place], dtype=np.float64)


def _writes_unknown(work: KernelWork, signature: Ints) -> Bools:
    """The kernels of which it is not known what they write."""
    unknown: Bools = np.array(
        [not any(size > 0 for size in traffic.writes) for traffic in work.traffic], dtype=np.bool_
    )[signature]
    return unknown


def _last_of(places: Ints, at: Ints) -> Ints:
    """The last of the sorted ``places`` before ``at``; -1 for none."""
    return np.append(places, -1)[np.searchsorted(places, at, side="left") - 1]


def _before(entries: Ints, key: Ints, at: Ints, count: int) -> Ints:
    """The last place before ``at`` in the sorted ``entries`` (key x count + place) of the same key; -1 for none."""
    if not len(entries):
        return np.full(len(at), -1, dtype=np.int64)
    found = np.searchsorted(entries, key * count + at, side="left") - 1
    entry = entries[np.maximum(found, 0)]
    return np.where((found >= 0) & (entry // count == key), entry % count, -1)


def _tensors(work: KernelWork, signature: Ints, place: Ints) -> tuple[Ints, Floats, Ints, Bools, Bools, Bools]:
    """Every large tensor of every kernel: place of the kernel in order of time, bytes, a number for each size, whether
    it is written, and whether it is an operand of a product, and the second one."""
    product = (work.table["kind"] == "product").to_numpy() | (work.table["kind"] == "grouped").to_numpy()
    rows = [
        (number, size, written, product[number] and not written, product[number] and not written and place == 1)
        for number, traffic in enumerate(work.traffic)
        for written, tensors in ((False, traffic.reads), (True, traffic.writes))
        for place, size in enumerate(tensors)
        if size >= _TOO_SMALL
    ]
    of = np.array([row[0] for row in rows], dtype=np.int64)
    sizes = np.array([row[1] for row in rows], dtype=np.float64)
    marks = [np.array([row[place] for row in rows], dtype=np.bool_) for place in (2, 3, 4)]
    numbers = np.unique(sizes, return_inverse=True)[1].astype(np.int64)
    # every kernel has the tensors of its signature, which stand behind one another
    count = np.bincount(of, minlength=len(work.traffic))
    first = np.concatenate([[0], np.cumsum(count)])[:-1]
    each = count[signature]
    entry = np.repeat(first[signature], each) + _steps(each)
    return np.repeat(place, each), sizes[entry], numbers[entry], marks[0][entry], marks[1][entry], marks[2][entry]


def _steps(counts: Ints) -> Ints:
    """0 to count - 1 for each count, behind one another."""
    ends = np.cumsum(counts)
    return np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - counts, counts)
