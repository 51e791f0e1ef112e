"""The search in the data flow, the passes of a step, and the bytes against a plain reference."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisors.fusion import search as searching
from advisors.fusion.computations import Computation, computations, vocabulary
from advisors.fusion.dataflow import Node, Window, node_of
from advisors.fusion.expressions import Expression, parse
from advisors.fusion.match import ways
from advisors.fusion.nodes import DESCRIBED
from advisors.fusion.passes import backward_kernels
from advisors.fusion.search import search
from advisors.fusion.sequence import Kernels
from advisors.fusion.tensors import Tensors, traffic
from tests.advisors.fusion.chains import LAYER_NORM, RMS, RMS_BACK, Kernel


def node(type_: str, reads: Sequence[str], writes: Sequence[str]) -> Node:
    """A kernel of tensors such as ``"8,4 FLOAT"``."""
    sides = {"input": reads, "output": writes}
    row = {f"{side}_shapes": ";".join(t.split()[0] for t in tensors) for side, tensors in sides.items()}
    row |= {f"{side}_dtypes": ";".join(t.split()[1] for t in tensors) for side, tensors in sides.items()}
    return node_of({"type": type_, **row}, vocabulary())


def match(window: Window, wanted: Expression, anchor: int) -> frozenset[int] | None:
    """The nearest way to read it."""
    return next(iter(ways(window, wanted, anchor)), None)


def form(name: str, number: int = 0, *, backward: bool = False) -> Expression:
    wanted: Computation = next(c for c in computations() if c.name == name and c.backward == backward)
    return wanted.forms[number]


def test_an_expression_reads_as_it_is_written() -> None:
    read = parse("mul?(add(x, *{mul,div}(@exp|tanh.row)))")
    assert (read.operations, read.optional, len(read.operands)) == (("mul",), True, 1)
    anything, several = read.operands[0].operands
    assert anything.operations == () and several.repeated and several.operations == ("mul", "div")
    assert several.operands[0].operations == ("exp", "tanh") and several.operands[0].role == "row"
    assert [step.operations for step in read.above_anchor()] == [("exp", "tanh"), ("mul", "div"), ("add",), ("mul",)]
    whole = parse("mul(=@cast(weight), x)").operands[0]
    assert whole.whole and whole.anchor and whole.operands[0].given and not whole.given


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("mul(x", "a bracket should close"),
        ("mul(x))", "cannot be read from"),
        ("mul(, x)", "an operation should stand"),
        ("@mul.wide(x)", "no role 'wide'"),
        ("mul(exp)", "0 anchors"),
        ("@mul(@exp)", "2 anchors"),
        ("@mul?(exp, x)", "reads one operand"),
    ],
)
def test_an_expression_that_cannot_be_read_says_where(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        parse(text)


ROTARY = [
    ("Mul", ["40,6 BF16", "1,6 BF16"], ["40,6 BF16"]),
    ("Slice", ["40,6 BF16"], ["40,3 BF16"]),
    ("Neg", ["40,3 BF16"], ["40,3 BF16"]),
    ("Slice", ["40,6 BF16"], ["40,3 BF16"]),
    ("ConcatD", ["40,3 BF16", "40,3 BF16"], ["40,6 BF16"]),
    ("Mul", ["40,6 BF16", "1,6 BF16"], ["40,6 BF16"]),
    ("Add", ["40,6 BF16", "40,6 BF16"], ["40,6 BF16"]),
]
NEEDS: dict[int, list[int]] = {2: [1], 4: [2, 3], 5: [4], 6: [0, 5]}
"""Which kernels of it must have run before."""


@given(st.randoms(use_true_random=False), st.integers(0, 20))
def test_order_and_what_lies_between_do_not_matter(chance: random.Random, others: int) -> None:
    """Any order in which the kernels can run, among kernels on other tensors."""
    order: list[int] = []
    while len(order) < len(ROTARY):
        ready = [n for n in range(len(ROTARY)) if n not in order and all(m in order for m in NEEDS.get(n, []))]
        order.append(chance.choice(ready))
    mixed: list[int | None] = [*order]
    for _ in range(others):
        mixed.insert(chance.randint(0, len(mixed)), None)
    kinds = ["Mul", "Neg", "Add", "ConcatD", "Slice", "MatMulV2"]
    nodes = [
        node(chance.choice(kinds), [f"{7 + n},11 FLOAT"], [f"{7 + n},13 FLOAT"]) if one is None else node(*ROTARY[one])
        for n, one in enumerate(mixed)
    ]
    found = match(Window(nodes), form("rotary"), mixed.index(2))
    wanted = {place for place, one in enumerate(mixed) if one in (0, 2, 4, 5, 6)}
    assert found is not None
    assert found - {mixed.index(1), mixed.index(3)} == wanted, "slices serve it and may come with it"


@given(st.sampled_from([RMS, RMS_BACK, LAYER_NORM]), st.randoms(use_true_random=False))
def test_what_was_absorbed_in_the_same_surroundings_is_absorbed_again(
    computed: list[Kernel], chance: random.Random
) -> None:
    """As if nothing was remembered, of a repeated computation with something else before it each time."""
    kernels = [(name, reads, writes) for name, _, reads, writes in computed]
    others = [("TensorMove", reads[:1], reads[:1]) for _, reads, _ in kernels[:2]]
    others.append(("Neg", ("7,11 FLOAT",), ("7,11 FLOAT",)))
    repeated = [one for _ in range(9) for one in (*chance.choices(others, k=3), *kernels)]
    kinds = list(dict.fromkeys(repeated))
    signature = np.array([kinds.index(one) for one in repeated], dtype=np.int64)
    backward = np.full(len(repeated), computed is RMS_BACK)
    together = np.zeros(len(repeated), dtype=np.int64)
    sequence = Kernels(
        signature, [node(*one) for one in kinds], backward, together, together, np.zeros(len(repeated), dtype=np.bool_)
    )
    with patch.object(searching, "AROUND", 0):
        fresh = search(sequence, computations())
    found = search(sequence, computations())
    assert len(found) >= 9
    assert [(one.name, members.tolist()) for one, members in found] == [
        (one.name, members.tolist()) for one, members in fresh
    ]


def test_the_nearest_way_to_read_an_expression_holds() -> None:
    """Layers repeat: the kernels of one are not taken for those of another."""
    layer = [node("Swish", ["8,4 BF16"], ["8,4 BF16"]), node("Mul", ["8,4 BF16", "8,4 BF16"], ["8,4 BF16"])]
    product = node("MatMulV2", ["8,4 BF16", "4,4 BF16"], ["8,4 BF16"])
    nodes = [product, *layer, product, *layer, product, *layer]
    wanted = form("swiglu_of_two_products")
    assert [match(Window(nodes), wanted, at) for at in (1, 4, 7)] == [{1, 2}, {4, 5}, {7, 8}]


def test_what_has_to_be_there_does_not_belong_to_the_computation() -> None:
    """A gate of two products, of which one went through an adapter; and one that reads no product."""
    product = node("MatMulV2", ["8,4 BF16", "4,4 BF16"], ["8,4 BF16"])
    adapter = node("Add", ["8,4 BF16", "8,4 BF16"], ["8,4 BF16"])
    gate = [node("Swish", ["8,4 BF16"], ["8,4 BF16"]), node("Mul", ["8,4 BF16", "8,4 BF16"], ["8,4 BF16"])]
    wanted = form("swiglu_of_two_products")
    assert match(Window([product, product, adapter, *gate]), wanted, 3) == {3, 4}
    norm = node("LayerNormV3", ["8,4 BF16"], ["8,4 BF16"])
    assert match(Window([norm, adapter, *gate]), wanted, 2) is None


def test_an_expanded_view_is_followed_though_it_is_listed_with_its_full_size() -> None:
    sum_ = node("ReduceSum", ["8,4 FLOAT"], ["8,1 FLOAT"])
    expand = node("BroadcastTo", ["8,4 FLOAT"], ["8,4 FLOAT"])
    divide = node("RealDiv", ["8,4 FLOAT"], ["8,4 FLOAT"])
    assert match(Window([sum_, expand, divide]), parse("div(@sum.row)"), 0) == {0, 1, 2}
    assert match(Window([sum_, divide]), parse("div(@sum.row)"), 0) is None


def test_a_tensor_of_odd_size_has_no_halves() -> None:
    """The counts of 17 experts, and 8 rows that are taken by index."""
    for size, writers in ((17, []), (16, [0])):
        counts = node("ReduceSum", [f"{size},48 INT64"], [f"{size} INT64"])
        counts = replace(counts, views=True, roles=counts.roles | {"halves"})
        taking = node("GatherV2", ["24,256 BF16", "8 INT64"], ["8,256 BF16"])
        assert Window([counts, taking]).writers((8, "INT64"), 1) == writers


def test_a_tensor_of_another_type_is_another_tensor() -> None:
    silu = node("Swish", ["8,4 BF16"], ["8,4 BF16"])
    wanted = parse("mul.equal(@silu, x)")
    assert match(Window([silu, node("Mul", ["8,4 FLOAT"] * 2, ["8,4 FLOAT"])]), wanted, 0) is None
    cast = node("Cast", ["8,4 BF16"], ["8,4 FLOAT"])
    assert match(Window([silu, cast, node("Mul", ["8,4 FLOAT"] * 2, ["8,4 FLOAT"])]), wanted, 0) == {0, 1, 2}


def passes(nodes: Sequence[Node]) -> str:
    distinct = list(dict.fromkeys(nodes))
    signature = np.array([distinct.index(one) for one in nodes], dtype=np.int64)
    return "".join("b" if backward else "f" for backward in backward_kernels(distinct, signature))


def product(rows: int, columns: int, depth: int) -> Node:
    return node("MatMulV2", [f"{rows},{depth} BF16", f"{depth},{columns} BF16"], [f"{rows},{columns} BF16"])


def test_the_backward_pass_begins_with_a_gradient_or_with_weight_gradients() -> None:
    forward = [product(64, 8, 16), product(64, 32, 8)]
    # The gradient of the input, then that of the weight, of each product in turn.
    back = [product(64, 8, 32), product(32, 8, 64), product(64, 16, 8), product(8, 16, 64)]
    assert passes([*forward, *back]) == "ffbbbb"
    gelu = node("GeluGrad", ["64,32 BF16"], ["64,32 BF16"])
    assert passes([*forward, gelu, *back]) == "ffbbbbb"
    assert passes(forward * 5) == "f" * 10, "inference"


def test_what_repeats_the_forward_pass_is_forward_again() -> None:
    """Activations that are computed again, and the next micro-batch."""
    forward = [node("Mul", [f"{n},5 BF16"], [f"{n},5 BF16"]) for n in range(2, 18)]
    gradient = node("GeluGrad", ["3,5 BF16"], ["3,5 BF16"])
    assert passes([*forward, gradient, *forward, gradient]) == "f" * 16 + "b" + "f" * 16 + "b"
    assert passes([*forward, gradient, *forward[:8], gradient]) == "f" * 16 + "b" * 10, "too short to tell"


def test_bytes_of_a_fused_kernel_agree_with_following_each_tensor() -> None:
    """A fused kernel reads every tensor that comes from outside once, and writes the last one."""
    chance = random.Random(3)
    for _ in range(200):
        # Every tensor has its own number of elements, so that its identity can be seen from the shape.
        sizes = iter(chance.sample(range(2, 500), 40))
        outside = [next(sizes) for _ in range(4)]
        written: list[int] = []
        read: set[int] = set()
        chain = []
        for _ in range(chance.randint(1, 6)):
            inputs = chance.sample(outside + written, chance.randint(1, 2))
            out = next(sizes)
            read |= set(inputs)
            chain.append(Tensors(tuple(((n,), 2 * n) for n in inputs), (((out,), 2 * out),)))
            written.append(out)
        assert traffic(chain, 0, wide=False) == sum(2 * n for n in read - set(written)) + 2 * written[-1]
        assert traffic(chain, 3, wide=True) == traffic(chain, 3, wide=False) == 3 * 2 * max(written)


def test_kernels_that_go_on_with_a_call_belong_to_what_it_belongs_to() -> None:
    weights = ["64,32 FLOAT", "64 FLOAT"]
    names = ["mul_", "lerp_", "mul_", "addcmul_", "sqrt", "div_", "add_", "addcdiv_"]
    lists = [1, 2, 1, 3, 1, 1, 1, 3]
    nodes = [node(f"aten::_foreach_{name}", weights * count, weights) for name, count in zip(names, lists, strict=True)]
    nodes.append(node_of({"type": "aten::_foreach_mul_", **dict.fromkeys(DESCRIBED[1:], "")}, vocabulary()))
    # Every call launches three kernels; the first has the tensors of all.
    signature = np.array([one for call in range(8) for one in (call, 8, 8)])
    together = np.zeros(len(signature), dtype=np.int64)
    kernels = Kernels(signature, nodes, together > 0, together, together, signature == 8)
    ((found, members),) = search(kernels, computations())
    assert found.name == "optimizer_adam"
    assert sorted(members.tolist()) == list(range(24))
