"""Shapes that are not the same in every step."""

from __future__ import annotations

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from advisor_core.api.testing import Scene, judge_rule
from advisor_core.facts.store import FactStore
from advisors.shape_changes import compared, varying, varying_share
from tests.facts.test_parts import DECODE, PREFILL

rows = st.lists(
    st.tuples(st.sampled_from("AB"), st.sampled_from(["", "1", "2", "3"]), st.integers(4, 6)), min_size=1, max_size=30
)


@given(rows)
def test_a_kernel_varies_if_a_step_lacks_its_type_with_its_shapes(listed: list[tuple[str, str, int]]) -> None:
    frame = pd.DataFrame(listed, columns=["type", "input_shapes", "step"]).astype(
        {"type": "category", "input_shapes": "category"}
    )
    steps = frame["step"].nunique()
    found = {(kind, shapes): {row[2] for row in listed if row[:2] == (kind, shapes)} for kind, shapes, _ in listed}
    expected = [len(found[row[:2]]) < steps for row in listed]
    assert varying(frame, steps).tolist() == expected
    share = varying_share(frame, steps)
    known = steps > 1 and any(shapes for _, shapes, _ in listed)
    assert share == np.mean(expected) if known else np.isnan(share)


@given(st.lists(st.tuples(st.sampled_from("AB"), st.integers(4, 6), st.sampled_from("pd")), min_size=1, max_size=30))
def test_a_kernel_is_held_against_the_steps_of_its_part(listed: list[tuple[str, int, str]]) -> None:
    frame = pd.DataFrame(listed, columns=["type", "step", "part"]).astype({"type": "category"})
    frame["input_shapes"] = pd.Categorical(["1"] * len(frame))
    part = frame["part"].to_numpy(dtype=object)
    with_part = {name: {step for _, step, other in listed if other == name} for name in "pd"}
    with_kind = {(kind, name): {row[1] for row in listed if row[::2] == (kind, name)} for kind in "AB" for name in "pd"}
    expected = [len(with_kind[kind, name]) < len(with_part[name]) for kind, _, name in listed]
    assert varying(frame, 3, part).tolist() == expected
    held = [len(with_part[name]) > 1 for _, _, name in listed]
    assert compared(frame, part).tolist() == held
    share = varying_share(frame, 3, part)
    assert share == np.mean([varies for varies, own in zip(expected, held, strict=True) if own]) if any(held) else True


def passes(*chosen: list[tuple[str, str]]) -> FactStore:
    """A step for each pass, and ``skip_first`` too short."""
    found = Scene()
    for number, one in enumerate(chosen):
        for place, (type_, shapes) in enumerate(one):
            reads = [f"{shape} BF16" for shape in shapes.split(";")]
            found.tensors(1000 * number + 20 + 11 * place, 10, type_, reads, reads[:1], step=number + 1)
        found.step(number + 1, 1000.0 * number, 1000)
    return found.store(profiler={"schedule.skip_first": 0})


def test_an_engine_in_turns_has_no_dynamic_shapes() -> None:
    """Two steps of prefill and three of decode, each like the others of its kind."""
    store = passes(PREFILL, DECODE, DECODE, PREFILL, DECODE)
    found = judge_rule("DQ008", store)
    assert found.state == "pass" and found.observed is not None
    assert found.observed.frame["varying_share"].tolist() == [0.0]


def test_a_decode_whose_sequences_grow_has() -> None:
    longer = [(type_, shapes.replace("142", "143")) for type_, shapes in DECODE]
    store = passes(PREFILL, DECODE, longer, PREFILL)
    found = judge_rule("DQ008", store)
    assert found.state == "fail"
    assert found.first.observation["varying_share"] == 4 / 28, "two attentions in each of two steps"
