"""The search and the bytes against plain references."""

from __future__ import annotations

import random
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from advisor_core.facts.device.shapes import elements
from advisors.fusion.chains import Chains, fusion_chains
from advisors.fusion.patterns import Step, matches, patterns
from advisors.fusion.tensors import Tensors, connected, tensors_of, traffic
from tests.advisors.build import Scene
from tests.advisors.fusion.chains import HALF


def naive(steps: Sequence[Step], types: Sequence[str], at: int) -> int | None:
    """Where a chain that begins at ``at`` ends, taking what may be missing if it is there."""
    if not steps:
        return at
    step, rest = steps[0], steps[1:]
    if at < len(types) and matches(types[at], step.globs):
        end = naive(rest, types, at + 1)
        if end is not None:
            return end
    return naive(rest, types, at) if step.optional else None


@settings(max_examples=50)
@given(st.lists(st.sampled_from(["Slice", "Swish", "Sigmoid", "Mul", "Tanh"]), max_size=24))
def test_search_agrees_with_trying_every_place(types: list[str]) -> None:
    chains = next(p for p in patterns() if p.name == "swiglu" and not p.backward).chains
    expected, at = [], 0
    while at < len(types):
        ends = [end for chain in chains if (end := naive(chain, types, at)) is not None]
        if ends:
            expected.append((at, ends[0]))
        at = ends[0] if ends else at + 1
    scene = Scene().step(1, -10, 2000)
    for number, type_ in enumerate(types):
        scene.tensors(number * 10, 10, type_, (HALF,), (HALF,))
    scene.tensors(len(types) * 10, 10, "Tanh", (HALF,), (HALF,))
    chains_found: Chains = scene.store()[fusion_chains]
    runs = [
        (members[0], members[-1] + 1)
        for n in range(len(chains_found.frame))
        if (members := chains_found.members[chains_found.chain_of == n].tolist())
    ]
    assert sorted(runs) == expected


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


def test_a_kernel_is_connected_by_what_was_written_or_read() -> None:
    def kernel(reads: str, writes: str) -> Tensors:
        dtypes = [";".join(["FLOAT"] * (side.count(";") + 1)) for side in (reads, writes)]
        names = ("type", "input_shapes", "input_dtypes", "output_shapes", "output_dtypes")
        return tensors_of(dict(zip(names, ("Mul", reads, dtypes[0], writes, dtypes[1]), strict=True)))

    first = kernel("8,4;3", "32")
    assert connected([first], kernel("4,8", "1")), "as many elements as were written"
    assert connected([first], kernel("3", "3")), "the same shape was read"
    assert not connected([first], kernel("3,1", "3")), "what was read may be another tensor of that size"
    assert not connected([kernel("1", "1")], kernel("1", "1")), "scalars say nothing"
    assert elements(first.outputs[0][0]) == 32 and first.inputs[0][1] == 128
