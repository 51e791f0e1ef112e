"""The computations around INT8 of the forward pass of a recorded program, told as those of `finders`."""

from __future__ import annotations

from collections.abc import Iterator

from tests.programs.streams import CARRYING, PRODUCTS, Operator, Stream

LARGEST = frozenset({"amax", "max", "aminmax"})
"""What finds the largest number of a row."""

TO_A_SCALE = LARGEST | {"amin", "abs", "neg", "maximum", "minimum", "clamp", "clamp_min", "clamp_max", "reciprocal"}

TO_INT8 = TO_A_SCALE | CARRYING | {"round", "mul", "div", "add"}
"""What lies between a tensor and its quantised form, with the scale of each row. No `sub`: a scale of the distance
between maximum and minimum has an offset as well."""

TO_A_WEIGHT = CARRYING | {"mul", "sub", "add"}


def quantised_rows(stream: Stream) -> Iterator[set[int]]:
    """What makes INT8 of a tensor by a scale of its own for each row."""
    for last in _casts(stream, "i8", of=False):
        rounded, _ = stream.source(last.reads[0], lambda one: one.name in TO_INT8 and one.name != "round")
        if rounded is None or rounded.name != "round":
            continue
        before = stream.before([last.number], lambda one: one.forward and one.name in TO_INT8 | {"sub"})
        largest = [stream.operators[number] for number in sorted(before) if stream.operators[number].name in LARGEST]
        if not largest:
            continue
        of_row = largest[-1].writes[0].bytes * largest[-1].reads[0].shape[-1] == largest[-1].reads[0].bytes
        # What the largest numbers were taken of, through the magnitude and casts.
        start, passed = stream.source(largest[-1].reads[0], lambda one: one.name in (*CARRYING, "abs"))
        first = start.number if start is not None else -1
        own = {number for number in before | passed if number > first} | {last.number}
        if of_row and all(stream.operators[number].name != "sub" for number in own):
            yield own


def restored_weights(stream: Stream) -> Iterator[set[int]]:
    """What turns a weight in INT8 back for a product, with the product and the scale behind it."""
    for first in _casts(stream, "i8", of=True):
        # What the program wrote is no weight, and what is smaller than a weight is its offset or scale.
        if stream.writer(first.reads[-1]) is not None:
            continue
        own, one = {first.number}, first
        while _product(stream, one) is None:
            readers = [reader for reader in stream.behind(one.number) if reader.name in TO_A_WEIGHT]
            if not readers:
                break
            one = readers[0]
            own.add(one.number)
        product = _product(stream, one)
        if product is None or first.reads[-1].bytes * 2 != one.writes[0].bytes:
            continue
        behind = [reader.number for reader in stream.behind(product.number) if reader.name == "mul"]
        is_scaled = any(stream.operators[number].name == "mul" for number in own)
        if is_scaled or behind:
            yield own | {product.number} | (set() if is_scaled else set(behind[:1]))


def _product(stream: Stream, one: Operator) -> Operator | None:
    return next((reader for reader in stream.behind(one.number) if reader.name in PRODUCTS), None)


def _casts(stream: Stream, dtype: str, *, of: bool) -> Iterator[Operator]:
    """Casts to a type, or ``of`` it."""
    for one in stream.of({"_to_copy", "copy"}):
        read, written = one.reads[-1].dtype, one.writes[0].dtype
        if (read == dtype) != (written == dtype) and (read if of else written) == dtype:
            yield one
