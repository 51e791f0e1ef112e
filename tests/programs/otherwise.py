"""Computations that programs write in less usual ways: rotary embeddings by complex numbers or into parts of a tensor,
limited gates, rows divided by their length, losses by the logarithm of a sum, updates by signs."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from tests.programs.streams import CARRYING, Operator, Stream, Tensor

COMPLEX = ("c64", "c128")

LONG_AXIS = 2_000
"""No vocabulary of a language model has fewer entries."""

LIMITING = frozenset({"clamp", "clamp_min", "clamp_max", "minimum", "maximum"})

IN_SIGNED_UPDATES = frozenset(prefix + name for name in ("mul", "add", "lerp", "sub") for prefix in ("", "_foreach_"))


def _carried(one: Operator) -> bool:
    return one.name in CARRYING


def _source(stream: Stream, tensor: Tensor, *names: str) -> tuple[Operator | None, set[int]]:
    """The operator of these names before a tensor, and it with the copies in between; else nothing."""
    one, passed = stream.source(tensor, _carried)
    return (one, passed | {one.number}) if one is not None and one.name in names else (None, set())


def _reader(stream: Stream, number: int, *names: str) -> tuple[Operator | None, set[int]]:
    """The first forward operator of these names that reads what this one wrote, through copies."""
    for one in stream.behind(number):
        if one.name in names:
            return one, {one.number}
    for one in stream.behind(number):
        if one.name in CARRYING:
            further, passed = _reader(stream, one.number, *names)
            if further is not None:
                return further, passed | {one.number}
    return None, set()


def _cast_before(stream: Stream, tensor: Tensor) -> set[int]:
    one = stream.writer(tensor)
    return {one.number} if one is not None and one.name == "_to_copy" and one.forward else set()


def _cast_behind(stream: Stream, number: int) -> set[int]:
    readers = stream.behind(number)
    return {readers[0].number} if len(readers) == 1 and readers[0].name == "_to_copy" else set()


def complex_rotaries(stream: Stream) -> Iterator[set[int]]:
    """Pairs of real numbers, taken for complex ones, times numbers that several heads or sequences share."""
    for one in stream.of({"mul"}):
        result = one.writes[0]
        if result.dtype not in COMPLEX or len(one.reads) != 2:
            continue
        turned = [tensor for tensor in one.reads if tensor.shape == result.shape]
        if len(turned) != 1 or one.reads[0].shape[-1] != one.reads[1].shape[-1]:
            continue
        source = stream.writer(turned[0])
        if source is not None and source.writes and source.writes[0].dtype not in COMPLEX:
            yield {one.number} | _cast_before(stream, turned[0]) | _cast_behind(stream, one.number)


def rotaries_by_parts(stream: Stream) -> Iterator[set[int]]:
    """The two turned parts are written one after the other into a tensor that was made for them."""
    for first in stream.of({"sub"}):
        written, own = _reader(stream, first.number, "copy")
        products = [_source(stream, tensor, "mul") for tensor in first.reads]
        if written is None or len(products) != 2 or any(product is None for product, _ in products):
            continue
        read = {tensor.storage for product, _ in products if product is not None for tensor in product.reads}
        for second in stream.of({"add"}):
            others = [_source(stream, tensor, "mul") for tensor in second.reads]
            into, more = _reader(stream, second.number, "copy")
            if into is None or len(others) != 2 or any(product is None for product, _ in others):
                continue
            also = {tensor.storage for product, _ in others if product is not None for tensor in product.reads}
            if also == read and {tensor.storage for tensor in into.writes} == {one.storage for one in written.writes}:
                yield own.union(more, *(passed for _, passed in (*products, *others))) | {first.number, second.number}
                break


def limited_gates(stream: Stream) -> Iterator[set[int]]:
    """(up + 1) * gate * sigmoid(alpha * gate), with limits of both."""
    for bend in stream.of({"sigmoid"}):
        scaled, own = _source(stream, bend.reads[0], "mul")
        if scaled is None or len(scaled.reads) != 1:
            continue
        gated, gating = _reader(stream, bend.number, "mul")
        result, joining = _reader(stream, gated.number, "mul") if gated else (None, set())
        if gated is None or result is None or scaled.reads[0].storage not in {one.storage for one in gated.reads}:
            continue
        own |= gating | joining | {bend.number}
        for tensor in result.reads:
            raised, passed = _source(stream, tensor, "add")
            if raised is not None and len(raised.reads) == 1:
                own |= passed | _limit(stream, raised.reads[0])
                yield own | _limit(stream, scaled.reads[0])
                break


def _limit(stream: Stream, tensor: Tensor) -> set[int]:
    limit, own = _source(stream, tensor, *LIMITING)
    while limit is not None:  # from above and from below may be two
        limit, further = _source(stream, limit.reads[0], *LIMITING)
        own |= further
    return own


def lengths(stream: Stream) -> Iterator[set[int]]:
    """Rows divided by their length: x / |x|, or x * rsqrt(sum of x * x); perhaps scaled by a number and a weight."""
    for norm in stream.of({"linalg_vector_norm", "norm"}):
        if norm.writes and _of_rows(norm):
            own, reciprocal = {norm.number}, norm
            bounded, bounding = _reader(stream, norm.number, *LIMITING, "add")
            if bounded is not None and bounded.writes[0].shape == norm.writes[0].shape:
                own, reciprocal = own | bounding, bounded
            divided, dividing = _reader(stream, reciprocal.number, "div")
            if divided is not None and norm.reads[0].storage in {one.storage for one in divided.reads}:
                yield _scaled(stream, divided, own | dividing) | _cast_before(stream, norm.reads[0])
    for total in stream.of({"sum"}):
        square, own = _source(stream, total.reads[0], "mul", "pow", "square")
        if square is None or len({tensor.storage for tensor in square.reads}) != 1 or not _of_rows(total):
            continue
        own |= {total.number}
        added, adding = _reader(stream, total.number, "add", *LIMITING)
        root, rooting = _reader(stream, (added or total).number, "rsqrt", "sqrt")
        if added is not None and (root is None or added.writes[0].shape != total.writes[0].shape):
            continue
        divided, dividing = _reader(stream, root.number, "mul", "div") if root else (None, set())
        if divided is not None and square.reads[0].storage in {one.storage for one in divided.reads}:
            own |= adding | rooting | dividing
            yield _scaled(stream, divided, own) | _cast_before(stream, square.reads[0])


def _of_rows(one: Operator) -> bool:
    """It reduces the last axis and nothing else."""
    shape, written = one.reads[0].shape, one.writes[0].shape
    return bool(shape) and shape[-1] > 1 and prod(written) * shape[-1] == prod(shape) and shape[:-1] == written[:-1]


def _scaled(stream: Stream, one: Operator, own: set[int]) -> set[int]:
    """With what multiplies it by a number or by a weight, and the casts."""
    while True:
        cast = _cast_behind(stream, one.number)
        readers = stream.behind(max(cast) if cast else one.number)
        following = readers[0] if len(readers) == 1 and readers[0].name == "mul" else None
        if following is None or any(
            tensor.writer >= 0 and tensor.writer not in (*own, *cast, one.number) for tensor in following.reads
        ):
            return own | cast
        own |= cast | {following.number}
        one = following


def losses_by_logarithm(stream: Stream) -> Iterator[set[int]]:
    """The mean over the tokens of the logarithm of the sum of exp(x), less the entry of the target."""
    yield from (own for own, averaged in _by_logarithm(stream) if averaged)


def log_probabilities_by_logarithm(stream: Stream) -> Iterator[set[int]]:
    """The entry of a token less the logarithm of the sum of exp(x), for each token."""
    yield from (own for own, averaged in _by_logarithm(stream) if not averaged)


def _by_logarithm(stream: Stream) -> Iterator[tuple[set[int], bool]]:
    taken = set[int]()
    for logarithm in stream.of({"logsumexp"}):
        logits = logarithm.reads[0]
        if logits.shape[-1] <= LONG_AXIS:
            continue
        # The sequences of a batch may have one each, which are put together.
        joined, joining = _reader(stream, logarithm.number, "stack", "cat")
        whole = joined or logarithm
        difference, own = _reader(stream, whole.number, "sub")
        if difference is None or difference.number in taken:
            continue
        taken.add(difference.number)
        own |= joining | ({tensor.writer for tensor in whole.reads} if joined is not None else {logarithm.number})
        chosen = [_source(stream, tensor, "gather") for tensor in difference.reads]
        if any(one is not None and one.reads[0].storage == logits.storage for one, _ in chosen):
            own = own.union(*(passed for _, passed in chosen)) | _cast_before(stream, logits)
            mean, averaging = _reader(stream, difference.number, "mean", "sum")
            yield own | (averaging if mean is not None else set()), mean is not None


def updates_by_sign(stream: Stream) -> Iterator[set[int]]:
    """What the optimizer computes for each weight that is changed by a sign, and for the momentum behind it."""
    for bend in stream.operators.values():
        if bend.phase != "opt" or bend.name not in ("sign", "_foreach_sign"):
            continue
        own = {bend.number} | stream.before([bend.number], lambda one: one.phase == "opt" and one.name in _ABOVE)
        kept = {tensor.storage for number in own for tensor in stream.operators[number].reads}
        for reader in stream.readers.get(bend.number, ()):
            if stream.operators[reader].phase == "opt":
                own |= {reader} | stream.before([reader], lambda one: one.phase == "opt" and one.name in _ABOVE)
        # The momentum, from what it was before: only the update has read it until then.
        changed = {tensor.storage for number in own for tensor in stream.operators[number].writes}
        weights = {tensor.storage for one in stream.operators.values() if one.forward for tensor in one.reads}
        moving = kept - changed - weights
        for one in stream.operators.values():
            if one.phase == "opt" and one.number > bend.number and one.name in IN_SIGNED_UPDATES:
                written = {tensor.storage for tensor in one.writes or one.reads[:1]}
                own |= {one.number} if written and written <= moving else set()
        yield own


_ABOVE = IN_SIGNED_UPDATES | {"sign", "_foreach_sign"}
