"""The computations of the forward pass of a recorded program, told from its operators and what each of them reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from math import prod

from tests.programs.experts import LONG_AXIS, layers_with_experts
from tests.programs.otherwise import (
    complex_rotaries,
    lengths,
    limited_gates,
    log_probabilities_by_logarithm,
    losses_by_logarithm,
    rotaries_by_parts,
    updates_by_sign,
)
from tests.programs.quantisation import quantised_rows, restored_weights
from tests.programs.streams import CARRYING, PRODUCTS, Operator, Stream, Tensor

SCORES = frozenset({"mul", "div", "add", "sub", "masked_fill", "where", "tanh", "cat", "maximum", *CARRYING})
"""What programs do with the scores of attention between the product and the softmax, and behind it."""

BEHIND_SOFTMAX = SCORES | {"native_dropout", "bernoulli"}

SINGLE = 8
"""Of so few gradients the norms are no clipping of a network: a program of one module has them."""

BEHIND_A_PRODUCT = frozenset({"add", "index", "index_select", "cat", "mul", *CARRYING})
"""What may lie between a product and the gate that reads it: a bias, an adapter, a choice of rows."""

IN_UPDATES = frozenset(
    prefix + name
    for name in ("add", "mul", "div", "sqrt", "lerp", "addcmul", "sub", "neg")
    for prefix in ("", "_foreach_")
)


def _carried(one: Operator) -> bool:
    return one.name in CARRYING


def _chain(stream: Stream, tensor: Tensor, names: Iterable[str]) -> tuple[Operator | None, set[int]]:
    """The operator before a tensor if it is one of these, with the copies in between; else nothing."""
    one, passed = stream.source(tensor, _carried)
    if one is None or one.name not in names:
        return None, set()
    return one, passed | {one.number}


def _reading(stream: Stream, number: int, names: Iterable[str]) -> tuple[Operator | None, set[int]]:
    """The first forward operator of these names that reads what this one wrote, through copies."""
    wanted = frozenset(names)
    for one in stream.behind(number):
        if one.name in wanted:
            return one, {one.number}
    for one in stream.behind(number):
        if one.name in CARRYING:
            further, passed = _reading(stream, one.number, wanted)
            if further is not None:
                return further, passed | {one.number}
    return None, set()


def _of_a_weight(stream: Stream, tensor: Tensor) -> tuple[bool, set[int]]:
    """Whether a tensor is a weight, or one that was cast or had a number added; and the operators for that."""
    one, passed = stream.source(tensor, lambda one: one.name in (*CARRYING, "add") and len(one.reads) == 1)
    return one is None, passed


def _of_a_product(stream: Stream, tensor: Tensor, depth: int = 6) -> bool:
    one = stream.writer(tensor)
    if one is None:
        return False
    if one.name in PRODUCTS:
        return True
    return (
        depth > 0 and one.name in BEHIND_A_PRODUCT and any(_of_a_product(stream, read, depth - 1) for read in one.reads)
    )


def _with_casts(stream: Stream, own: set[int], *, of: Tensor | None = None) -> set[int]:
    """With the cast of the input if nobody else reads it, and the cast of the result if nothing else reads that."""
    if of is not None:
        one = stream.writer(of)
        while one is not None and one.name == "_to_copy" and one.forward:
            own.add(one.number)
            one = stream.writer(one.reads[0])
    last = max(own)
    readers = stream.behind(last)
    if len(readers) == 1 and readers[0].name == "_to_copy":
        own.add(readers[0].number)
    return own


def _rms_norms(stream: Stream) -> Iterator[set[int]]:
    for root in stream.of({"rsqrt"}):
        added, own = _chain(stream, root.reads[0], {"add", "mean"})
        mean, more = (added, set()) if added and added.name == "mean" else (None, set[int]())
        if added is not None and mean is None:
            mean, more = _chain(stream, added.reads[0], {"mean"})
        square, squares = _chain(stream, mean.reads[0], {"pow", "mul", "square"}) if mean else (None, set())
        if square is None:
            continue
        centred, _ = stream.source(square.reads[0], _carried)
        normed, scaling = _reading(stream, root.number, {"mul"})
        if normed is None or (centred is not None and centred.name == "sub"):
            continue
        own |= more | squares | scaling | {root.number}
        weighted, weighing = _reading(stream, normed.number, {"mul"})
        if weighted is not None:
            for tensor in weighted.reads:
                is_weight, passed = _of_a_weight(stream, tensor)
                if is_weight:
                    own |= weighing | passed
        yield _with_casts(stream, own, of=square.reads[0])
    yield from _norms_by_a_root(stream)


def _norms_by_a_root(stream: Stream) -> Iterator[set[int]]:
    """x / sqrt(mean(x * x))."""
    for root in stream.of({"sqrt"}):
        added, own = _chain(stream, root.reads[0], {"add", "mean"})
        mean, more = (added, set()) if added and added.name == "mean" else (None, set[int]())
        if added is not None and mean is None:
            mean, more = _chain(stream, added.reads[0], {"mean"})
        square, squares = _chain(stream, mean.reads[0], {"pow", "mul", "square"}) if mean else (None, set())
        normed, scaling = _reading(stream, root.number, {"div"})
        if square is None or normed is None:
            continue
        centred, _ = stream.source(square.reads[0], _carried)
        if centred is not None and centred.name == "sub":
            continue
        own |= more | squares | scaling | {root.number}
        weighted, weighing = _reading(stream, normed.number, {"mul"})
        if weighted is not None and any(_of_a_weight(stream, tensor)[0] for tensor in weighted.reads):
            own |= weighing
        yield _with_casts(stream, own, of=square.reads[0])


def _rotaries(stream: Stream) -> Iterator[set[int]]:
    for turned in stream.of({"neg"}):
        joined, own = _reading(stream, turned.number, {"cat", "stack"})
        if joined is None or not all(
            tensor.storage in {read.storage for read in turned.reads} or tensor.writer in own | {turned.number}
            for tensor in joined.reads
        ):
            continue
        scaled, scaling = _reading(stream, joined.number, {"mul"})
        added, adding = _reading(stream, scaled.number, {"add"}) if scaled else (None, set())
        if added is None:
            continue
        for tensor in added.reads:
            _, passed = _chain(stream, tensor, {"mul"})
            own |= passed
        yield _with_casts(stream, own | scaling | adding | {turned.number})
    for difference in stream.of({"sub"}):
        joined, own = _reading(stream, difference.number, {"cat", "stack"})
        if joined is None:
            continue
        parts = [_chain(stream, tensor, {"add", "sub"}) for tensor in joined.reads]
        products = [_chain(stream, tensor, {"mul"}) for part, _ in parts if part is not None for tensor in part.reads]
        storages = [{read.storage for read in part.reads} for part, _ in products if part is not None]
        if {part.name for part, _ in parts if part} != {"add", "sub"} or len(storages) != 4:
            continue
        for _, passed in (*parts, *products):
            own |= passed
        yield own


def _activations(stream: Stream, activation: str) -> Iterator[tuple[Operator, Operator, set[int]]]:
    """Where a gate begins and ends, and the operators of both: SiLU is also written as x * sigmoid(x)."""
    yield from ((gate, gate, {gate.number}) for gate in stream.of({activation}))
    if activation != "silu":
        return
    for bend in stream.of({"sigmoid"}):
        result, own = _reading(stream, bend.number, {"mul"})
        read = stream.source(bend.reads[0], _carried)[0]
        inputs = [tensor for tensor in result.reads if tensor.writer not in own | {bend.number}] if result else []
        sources = [stream.source(tensor, _carried)[0] for tensor in inputs]
        if result is None or read is None or len(inputs) != 1 or sources != [read]:
            continue
        # Both read the same part of it.
        if (inputs[0].shape, inputs[0].dtype) == (bend.reads[0].shape, bend.reads[0].dtype):
            yield bend, result, own | {bend.number}


def _gates(stream: Stream, activation: str) -> Iterator[set[int]]:
    for first, gate, activating in _activations(stream, activation):
        gated, own = _reading(stream, gate.number, {"mul"})
        if gated is None or len(gated.reads) < 2:
            continue
        own |= activating
        others = [tensor for tensor in gated.reads if tensor.writer not in own | {gate.number}]
        if len(others) != 1 or others[0].shape != gated.writes[0].shape:
            continue
        offset, passed = _chain(stream, others[0], {"add"})
        if offset is not None and len(offset.reads) == 1:  # an offset of nothing
            own |= passed
        if not gate.writes[0].bytes:  # an expert without rows
            continue
        for tensor in (first.reads[0], others[0]):
            cast = stream.writer(tensor)
            if cast is None or cast.name != "_to_copy" or len(stream.behind(cast.number)) != 1:
                continue
            # What casts the sum of a product and its adapter belongs to the adapter.
            summed = stream.writer(cast.reads[0])
            if summed is None or summed.name != "add" or len(summed.reads) != 2:
                own.add(cast.number)
        if _of_a_product(stream, first.reads[0]) and _of_a_product(stream, others[0]):
            yield own | {gate.number}


def _tanh_gelus(stream: Stream) -> Iterator[set[int]]:
    for bend in stream.of({"tanh"}):
        scaled, own = _chain(stream, bend.reads[0], {"mul"})
        summed, more = _chain(stream, scaled.reads[0], {"add"}) if scaled else (None, set())
        if summed is None or len(summed.reads) != 2:
            continue
        cubes = [_chain(stream, tensor, {"mul"}) for tensor in summed.reads]
        powers = [_chain(stream, cube.reads[0], {"pow"}) for cube, _ in cubes if cube is not None]
        one_more, adding = _reading(stream, bend.number, {"add"})
        result, multiplying = _reading(stream, one_more.number, {"mul"}) if one_more else (None, set())
        if result is None or not any(power for power, _ in powers):
            continue
        halves = [_chain(stream, tensor, {"mul"}) for tensor in result.reads]
        for _, passed in (*cubes, *powers, *halves):
            own |= passed
        yield own | more | adding | multiplying | {bend.number}


def _erf_gelus(stream: Stream) -> Iterator[set[int]]:
    for bend in stream.of({"erf"}):
        scaled, own = _chain(stream, bend.reads[0], {"mul", "div"})
        one_more, adding = _reading(stream, bend.number, {"add"})
        result, multiplying = _reading(stream, one_more.number, {"mul"}) if one_more else (None, set())
        if result is not None and len(result.reads) == 1:  # the half
            result, further = _reading(stream, result.number, {"mul"})
            multiplying |= further
        if scaled is None or one_more is None or result is None:
            continue
        ones = [stream.writer(tensor) for tensor in one_more.reads]
        own |= {one.number for one in ones if one is not None and one.name in ("ones_like", "ones")}
        halves = [_chain(stream, tensor, {"mul"}) for tensor in result.reads]
        # The half of the input itself; a tensor that some other product wrote is an input like any other.
        for half, passed in halves:
            if half is not None and half.reads[0].storage == scaled.reads[0].storage:
                own |= passed
        inputs = {tensor.storage for tensor in result.reads}
        inputs |= {half.reads[0].storage for half, _ in halves if half is not None}
        if scaled.reads[0].storage in inputs:
            yield own | adding | multiplying | {bend.number}


def _quick_gelus(stream: Stream) -> Iterator[set[int]]:
    limited = set[int]().union(*limited_gates(stream))
    for bend in stream.of({"sigmoid"}):
        if bend.number in limited:
            continue
        scaled, own = _chain(stream, bend.reads[0], {"mul"})
        if scaled is None or len(scaled.reads) != 1:
            continue
        result, multiplying = _reading(stream, bend.number, {"mul"})
        if result is not None and scaled.reads[0].storage in {tensor.storage for tensor in result.reads}:
            yield own | multiplying | {bend.number}


def _bias_additions(stream: Stream) -> Iterator[set[int]]:
    """A row that is a weight, added to what a product gave and no collective has changed in between."""
    for summed in stream.of({"add"}):
        if len(summed.reads) != 2:
            continue
        for result, bias in (summed.reads, summed.reads[::-1]):
            product, own = _chain(stream, result, {"mm"})
            is_row = len(bias.shape) == 1 and bias.shape == result.shape[-1:] and len(result.shape) > 1
            of_weight, casts = _of_a_weight(stream, bias)
            # Of a part of the result, `addmm` adds nothing to the others.
            whole = product is not None and prod(product.writes[0].shape) == prod(result.shape)
            if product is None or not whole or not is_row or not of_weight:
                continue
            reduced = [one for one in stream.behind(product.number) if one.name == "allreduce"]
            if all(one.number > summed.number for one in reduced):
                yield own | casts | {summed.number}


def _attentions(stream: Stream) -> Iterator[set[int]]:
    for weights in stream.of({"_softmax", "_safe_softmax"}):
        product, before = stream.source(weights.reads[0], lambda one: one.name in SCORES)
        if product is None or product.name not in ("bmm", "baddbmm") or len(weights.writes[0].shape) < 3:
            continue
        one, behind = weights, set[int]()
        while True:
            result, passed = _reading(stream, one.number, {"bmm"})
            if result is not None:
                yield before | behind | passed | {product.number, weights.number}
                break
            following = [reader for reader in stream.behind(one.number) if reader.name in BEHIND_SOFTMAX]
            if not following:
                break
            one = following[0]
            behind.add(one.number)


def _losses(stream: Stream) -> Iterator[set[int]]:
    for log_softmax in stream.of({"_log_softmax"}):
        loss, own = _reading(stream, log_softmax.number, {"nll_loss_forward"})
        if loss is not None:
            yield _with_casts(stream, own | {log_softmax.number}, of=log_softmax.reads[0])


def _log_probabilities(stream: Stream) -> Iterator[set[int]]:
    for chosen in stream.of({"gather"}):
        log_softmax, own = _chain(stream, chosen.reads[0], {"_log_softmax"})
        if log_softmax is not None and log_softmax.writes[0].shape[-1] > LONG_AXIS:
            yield own | {chosen.number}


def _divided_losses(stream: Stream) -> Iterator[set[int]]:
    for exponential in stream.of({"exp"}):
        shifted, own = _chain(stream, exponential.reads[0], {"sub"})
        summed, summing = _reading(stream, exponential.number, {"sum"})
        log, _ = _reading(stream, summed.number, {"log", "cat"}) if summed else (None, set())
        if shifted is None or log is None or exponential.writes[0].shape[-1] <= LONG_AXIS:
            continue
        # The loss is one function of autograd: all its operators have the number of its node.
        yield own | summing | {exponential.number} | set(stream.of_node[exponential.sequence])


def _updates(stream: Stream) -> Iterator[set[int]]:
    """What the optimizer computes for each operator that changes weights."""
    for last in (one for one in stream.operators.values() if one.name in ("addcdiv", "_foreach_addcdiv")):
        yield _of_update(stream, last)


def _updates_of_sgd(stream: Stream) -> Iterator[set[int]]:
    """The operators of the optimizer for each sum that it writes into weights."""
    weights = {tensor.storage for one in stream.operators.values() if one.forward for tensor in one.reads}
    for last in stream.operators.values():
        if last.phase != "opt" or last.name not in ("add", "_foreach_add"):
            continue
        # What changes lists of tensors in place is recorded without a result.
        is_in_place = {tensor.storage for tensor in last.writes} <= {tensor.storage for tensor in last.reads}
        of_signs = any(one is not None and one.name == "sign" for one in map(stream.writer, last.reads))
        if is_in_place and last.reads[0].storage in weights and not of_signs:
            yield _of_update(stream, last)


def _of_update(stream: Stream, last: Operator) -> set[int]:
    """The operators of the optimizer that the last one of an update depends on, and itself."""
    return {last.number} | stream.before([last.number], lambda one: one.phase == "opt" and one.name in IN_UPDATES)


def _group_norms(stream: Stream) -> Iterator[set[int]]:
    for norm in stream.of({"native_group_norm"}):
        result, own = _reading(stream, norm.number, {"silu"})
        if result is not None and len(stream.behind(norm.number)) == 1:
            yield own | {norm.number}


def _entropies(stream: Stream) -> Iterator[set[int]]:
    """Of the log-softmax l the sum of exp(l) * l; of the logits x what the sum of softmax(x) * x is less than the
    logarithm of the sum of exp(x)."""
    for exponential in stream.of({"exp"}):
        log_softmax, own = _chain(stream, exponential.reads[0], {"_log_softmax"})
        summed, summing = _summed(stream, exponential, log_softmax.writes[0]) if log_softmax else (None, set())
        if summed is not None:
            _, negating = _reading(stream, summed.number, {"neg"})
            yield own | summing | negating | {exponential.number}
    for softmax in stream.of({"_softmax"}):
        summed, own = _summed(stream, softmax, softmax.reads[0])
        entropy, more = _reading(stream, summed.number, {"sub"}) if summed else (None, set())
        logarithms = [_chain(stream, tensor, {"logsumexp"}) for tensor in entropy.reads] if entropy else []
        if any(one for one, _ in logarithms):
            own |= more.union(*(passed for _, passed in logarithms)) | {softmax.number}
            yield _with_casts(stream, own, of=softmax.reads[0])


def _summed(stream: Stream, probabilities: Operator, of: Tensor) -> tuple[Operator | None, set[int]]:
    """The sum of the product of the two."""
    weighted, weighing = _reading(stream, probabilities.number, {"mul"})
    if weighted is None or of.storage not in {tensor.storage for tensor in weighted.reads}:
        return None, set()
    summed, summing = _reading(stream, weighted.number, {"sum"})
    return summed, weighing | summing


def _cache_writes(stream: Stream) -> Iterator[set[int]]:
    """The write of the keys or values of one token beside those of the tokens before it, for attention."""
    for one in stream.of({"cat", "index_copy", "index_put"}):
        whole, row = one.reads[0].shape, one.reads[-1].shape
        different = [axis for axis in range(len(row)) if len(row) == len(whole) and row[axis] != whole[axis]]
        is_row = len(row) == 4 and len(different) == 1 and row[different[0]] == 1 and different[0] in (1, 2)
        if is_row and _feeds_attention(stream, one.number):
            yield {one.number}


def _feeds_attention(stream: Stream, number: int, *, projected: bool = False) -> bool:
    """Whether attention reads it; latent attention makes keys and values of it by one product."""
    return any(
        one.name in ("fusion_attention", "bmm")
        or (one.name in (*CARRYING, "cat") and _feeds_attention(stream, one.number, projected=projected))
        or (one.name == "mm" and not projected and _feeds_attention(stream, one.number, projected=True))
        for one in stream.behind(number)
    )


def _expert_loops(stream: Stream) -> Iterator[set[int]]:
    yield from (set(layer.inside) for layer in layers_with_experts(stream) if layer.one_by_one)


def _permutations(stream: Stream) -> Iterator[set[int]]:
    yield from (set(layer.taking) for layer in layers_with_experts(stream) if layer.grouped)


def _combinations(stream: Stream) -> Iterator[set[int]]:
    yield from (set(layer.behind) for layer in layers_with_experts(stream) if layer.grouped)


def _samplings(stream: Stream) -> Iterator[set[int]]:
    """What keeps of the logits only those that may be drawn, from a sort on, with the k largest before it."""
    for ordered in stream.of({"sort"}):
        softmax, own = _reading(stream, ordered.number, {"_softmax"})
        summed, more = _reading(stream, softmax.number, {"cumsum"}) if softmax else (None, set())
        if summed is None or ordered.reads[0].shape[-1] <= LONG_AXIS:
            continue
        own |= more | {ordered.number}
        limited, passed = _chain(stream, ordered.reads[0], {"masked_fill"})
        if limited is not None:
            own |= passed
            for tensor in limited.reads:
                below, mask = _chain(stream, tensor, {"lt"})
                for limit in below.reads if below else ():
                    own |= mask | _chain(stream, limit, {"topk"})[1]
        todo = [summed.number]
        while todo:
            for one in stream.behind(todo.pop()):
                if one.name in ("le", "gt", "fill", "scatter", "masked_fill") and one.number not in own:
                    own.add(one.number)
                    if one.name != "masked_fill":
                        todo.append(one.number)
        yield own


def _clippings(stream: Stream) -> Iterator[set[int]]:
    """The norms of gradients, and what scales the gradients."""
    own = {one.number for one in stream.operators.values() if one.phase == "clip"}
    if sum(len(one.reads) for one in stream.operators.values() if one.number in own and "norm" in one.name) > SINGLE:
        yield own


FINDERS: dict[str, Callable[[Stream], Iterator[set[int]]]] = {
    "rms_norm": _rms_norms,
    "l2_norm": lengths,
    "rotary": lambda stream: chain(_rotaries(stream), complex_rotaries(stream), rotaries_by_parts(stream)),
    "swiglu": lambda stream: _gates(stream, "silu"),
    "geglu": lambda stream: _gates(stream, "gelu"),
    "tanh_gelu": _tanh_gelus,
    "erf_gelu": _erf_gelus,
    "quick_gelu": _quick_gelus,
    "limited_swiglu": limited_gates,
    "bias_add": _bias_additions,
    "attention": _attentions,
    "cross_entropy": lambda stream: chain(_losses(stream), losses_by_logarithm(stream)),
    "log_probs": lambda stream: chain(_log_probabilities(stream), log_probabilities_by_logarithm(stream)),
    "vocab_parallel_cross_entropy": _divided_losses,
    "entropy": _entropies,
    "group_norm_silu": _group_norms,
    "top_k_top_p": _samplings,
    "moe_routing": lambda stream: (set(layer.routing) for layer in layers_with_experts(stream)),
    "moe_expert_loop": _expert_loops,
    "moe_token_permute": _permutations,
    "moe_token_unpermute": _combinations,
    "dynamic_quant": quantised_rows,
    "weight_dequant": restored_weights,
    "kv_cache_write": _cache_writes,
    "gradient_clipping": _clippings,
    "adam": _updates,
    "sgd": _updates_of_sgd,
    "lion": updates_by_sign,
}
"""Each gives the operators of one occurrence after another."""
