"""Parts that are judged by themselves: what they lose, by plain sums over the kernels of the scene."""

from __future__ import annotations

import pytest

from advisor_core.api.testing import Scene
from advisor_core.facts.ledger.totals import ledger
from advisor_core.facts.steps.judged_parts import judged_parts
from advisor_core.facts.steps.parts import part_ledger
from tests.facts.test_parts import CACHED, DECODE, FEW, HEAD, MANY, PREFILL, WHOLE, scene

Pass = list[tuple[str, str]]


def serving(*passes: tuple[Pass, float, float], begins: float = 0.0) -> Scene:
    """One step of passes, each with the length of its kernels and of the gap before each kernel, us."""
    found, now = Scene(), begins
    for kernels, length, gap in passes:
        for type_, shapes in kernels:
            now += gap
            reads = [f"{shape} BF16" for shape in shapes.split(";")]
            found.tensors(now, length, type_, reads, reads[:1])
            now += length
    return found.step(1, begins, now - begins)


def test_what_each_part_loses() -> None:
    """Seven kernels of 1000 us without gaps; then three passes of seven kernels of 10 us, 30 us before each. The gap
    before the first kernel of decode is the end of prefill."""
    store = serving((PREFILL, 1000, 0), *[(DECODE, 10, 30)] * 3).store()
    prefill, decode = store[judged_parts]
    assert (prefill.name, decode.name) == ("prefill", "decode")
    assert prefill.wall_ns == 7_030_000 and decode.wall_ns == 21 * 40_000 - 30_000
    idle = [part.per_leaf[part.per_leaf.index.str.startswith("idle")].sum() for part in (prefill, decode)]
    assert idle == [30_000, 20 * 30_000]


def test_the_ledgers_of_the_parts_are_those_of_the_steps() -> None:
    store = serving((PREFILL, 100, 5), (DECODE, 10, 30), (PREFILL, 90, 7), (DECODE, 10, 3)).store()
    found = {part.name: part.per_leaf for part in store[judged_parts]}
    told = store[part_ledger].groupby(["part", "path"])["ns"].sum()
    assert {(part, path): ns for part, leaves in found.items() for path, ns in leaves.items()} == told.to_dict()
    assert sum(leaves.sum() for leaves in found.values()) == store[ledger]["ns"].sum()


@pytest.mark.parametrize("passes", [(PREFILL,), (DECODE, DECODE), ([MANY, MANY],)])
def test_a_recording_of_one_part_has_none(passes: tuple[Pass, ...]) -> None:
    assert scene(*passes).store()[judged_parts] == ()


def test_a_part_that_takes_hardly_any_time_is_left_out() -> None:
    store = serving((PREFILL, 10_000, 0), ([FEW, CACHED, FEW, HEAD], 10, 1)).store()
    assert store[judged_parts] == ()


def test_phases_that_are_marked_are_told_apart() -> None:
    found = serving(([MANY, WHOLE] * 3, 100, 10)).event("mstx", "compute_log_prob", 0, 330)
    names = [part.name for part in found.event("mstx", "compute_ref_log_prob", 330, 330).store()[judged_parts]]
    assert names == ["log_probs (log_prob)", "log_probs (ref_log_prob)"]
