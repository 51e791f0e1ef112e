"""How a tensor lies in memory, and which copy makes a plain array of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise

from tests.programs.recording.calls import Seen
from tests.programs.recording.tasks import Operand, Task


def operand_of(seen: Seen) -> Operand:
    return Operand(seen.storage, seen.shape, seen.dtype)


def read_by(kind: str, seen: Seen) -> Operand:
    """The operand of a copy: parts are cut out of the whole tensor, an expanded one is listed as it is in memory."""
    if kind in ("Slice", "StridedSlice", "AsStrided"):
        return Operand(seen.storage, seen.whole, seen.dtype)
    return operand_of(narrow(seen)) if kind == "BroadcastTo" else operand_of(seen)


def _axes(seen: Seen) -> list[tuple[int, int]]:
    """Length and stride of each axis of more than one element."""
    return [(length, stride) for length, stride in zip(seen.shape, seen.strides, strict=True) if length != 1]


def contiguous(seen: Seen) -> bool:
    return _filled(_axes(seen)[::-1])


def _filled(axes: Sequence[tuple[int, int]]) -> bool:
    """The axes, the quickest first, fill their memory."""
    expected = 1
    for length, stride in axes:
        if stride != expected:
            return False
        expected *= length
    return True


def expanded(seen: Seen) -> bool:
    return any(not stride for _, stride in _axes(seen))


def narrow(seen: Seen) -> Seen:
    """An expanded tensor as it is in memory."""
    shape = tuple(1 if not stride else length for length, stride in zip(seen.shape, seen.strides, strict=True))
    return replace(seen, shape=shape)


def turned(seen: Seen) -> bool:
    """It is plain once its last two axes are exchanged, and not without."""
    shape, strides = seen.shape, seen.strides
    turned = replace(seen, shape=(*shape[:-2], shape[-1], shape[-2]), strides=(*strides[:-2], strides[-1], strides[-2]))
    return not contiguous(seen) and contiguous(turned)


def copy_of(seen: Seen) -> str | None:
    """The type of the kernel that makes a plain array of it; none where it is one."""
    axes = _axes(seen)
    if not axes or contiguous(seen):
        return None
    if expanded(seen):
        return "BroadcastTo"
    if _filled(sorted(axes, key=lambda axis: axis[1])):
        return "Transpose"
    if all(first[1] >= second[1] for first, second in pairwise(axes)):
        return "Slice" if axes[-1][1] == 1 else "StridedSlice"
    return "AsStrided"


def plain(seen: Seen, function: str, new: Callable[[], int]) -> tuple[list[Task], Operand]:
    """The tensor as a plain array, with the copy that makes it one, if it is none. ``new`` numbers the memory of it."""
    kind = copy_of(seen)
    if kind is None:
        return [], operand_of(seen)
    copy = Operand(new(), seen.shape, seen.dtype)
    return [Task(kind, function, (read_by(kind, seen),), (copy,))], copy
