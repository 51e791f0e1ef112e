"""Sizes of the passes of an engine, and next tokens that wait for new sequences."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from advisor_core.api.facts import HOST_EVENTS, PROFILE
from advisor_core.api.renderers import Cell, TableView, View
from advisor_core.api.testing import GPU, Scene, judge_rule
from advisor_core.loaders.discover import discover
from advisor_core.run.rank import fact_store
from advisors.host_dispatch.pass_sizes import sized_passes, sizes_of_passes
from tests.advisors.build import host

DECODE = "execute_context_0(0)_generation_32(32)"
MIXED = "execute_2048_context_1(sq2016sk2016)_generation_32(sq32sk999)"
PREFILL = "execute_context_2(4096)_generation_0(0)"


def served(*passes: tuple[str, float]) -> Scene:
    """Marks one behind the other, each with the time up to the next, us; the last one is not followed."""
    scene, at = Scene(words=GPU), 0.0
    for name, period in passes:
        scene.event("user_annotation", name, at, period * 0.9)
        at += period
    return scene.kernel(0, at, "product", launched=0)


@pytest.mark.parametrize(
    ("name", "new", "running", "new_tokens", "sequences", "tokens"),
    [
        ("execute_8192_context_9(sq8155sk8430sqsq7475785)_generation_37(sq37sk34489)", 9, 37, 8155, 46, 8192),
        (DECODE, 0, 32, 0, 32, 32),
        ("step[EXTEND bs=15 toks=15360]", 15, np.nan, 15360, 15, 15360),
        ("step[DECODE bs=16]", np.nan, 16, np.nan, 16, np.nan),
        ("step[MIXED bs=2]", np.nan, np.nan, np.nan, 2, np.nan),
    ],
)
def test_what_a_mark_tells(
    name: str, new: float, running: float, new_tokens: float, sequences: float, tokens: float
) -> None:
    store = served((name, 100)).store()
    table = sized_passes(store[HOST_EVENTS], store[PROFILE].vocabulary)
    found = table.loc[0, ["new", "running", "new_tokens", "sequences", "tokens"]].to_numpy(dtype=np.float64)
    np.testing.assert_array_equal(found, [new, running, new_tokens, sequences, tokens])


def view(scene: Scene) -> list[list[object]]:
    (found,) = sizes_of_passes.draw(scene.store().view(sizes_of_passes.needs, ()))
    assert isinstance(found, TableView)
    return [[getattr(cell, "en", cell) for cell in row] for row in found.data.rows]


def test_times_and_tokens_by_kind_and_size() -> None:
    """99 decodes of 32 in 100 us and one of 300, with one of 2 in 50 us and a mixed one in 500 us between them."""
    few = "execute_context_0(0)_generation_2(2)"
    rows = view(served(*[(DECODE, 100)] * 50, (few, 50), (MIXED, 500), (DECODE, 300), *[(DECODE, 100)] * 50))
    mixed = ["prefill and decode", "33", 1, 2048, 450_000, 500_000, 500_000, pytest.approx(2048 / 500e-6)]
    shown = [[cell for cell in row if cell is not None] for row in rows]
    assert shown[0] == ["decode", "2", 1, 2, 45_000, 50_000, 50_000, pytest.approx(2 / 50e-6)]
    # 100 of the 101 passes are followed: one of a hundred takes longer than the 99th value.
    tokens = 32 * 100 / ((99 * 100 + 300) / 1e6)
    times = [pytest.approx(91_782, abs=1), 100_000, 100_000, 100_000, 300_000]
    assert shown[1] == ["decode", "32", 101, 32, *times, pytest.approx(tokens)]
    assert shown[2] == mixed


def test_next_tokens_wait_for_new_sequences() -> None:
    held = judge_rule("GHD016", served(*[(DECODE, 100), (DECODE, 100), (MIXED, 800)] * 6).store())
    seen = held.first.observation
    assert (seen["delayed_passes"], seen["decodes"], seen["slower_times"]) == (5, 12, 8)
    assert (seen["new_tokens"], seen["running"]) == (2016, 32)
    # The last pass is followed by none: 5 x 700 us more than next tokens, of 5 x 1000 + 200.
    assert seen["held_share"] == pytest.approx(3500 / 5200)
    assert held.first.severity == "low"


def test_a_pass_of_new_sequences_alone_holds_up_those_that_run_before_and_behind_it() -> None:
    passes = [(DECODE, 100), (PREFILL, 2000), ("execute_context_0(0)_generation_34(34)", 100)] * 6
    held = judge_rule("GHD016", served(*passes).store())
    seen = held.first.observation
    assert (seen["delayed_passes"], seen["running"], seen["new_tokens"]) == (6, 32, 4096)
    assert held.first.severity == "medium"


@pytest.mark.parametrize(
    ("passes", "state"),
    [
        ([(PREFILL, 2000)] * 8 + [(DECODE, 100)] * 8, "not_applicable"),  # all begin before any next token
        ([(DECODE, 100)] * 20, "not_applicable"),
        ([(DECODE, 100)], "not_applicable"),
        ([("my range", 100)] * 3, "not_applicable"),
        ([(DECODE, 100), (MIXED, 110)] * 8, "pass"),
    ],
)
def test_passes_that_hold_up_nothing(passes: list[tuple[str, float]], state: str) -> None:
    assert judge_rule("GHD016", served(*passes).store()).state == state


REAL = {
    "vllm-prefill-decode-graph.json.gz": (9, 37, 8155, 46, 8192),
    "sglang_Qwen3-8B_prefilldecode.json.gz": (15, 0, 15360, 15, 15360),
}


@pytest.mark.parametrize("name", REAL)
def test_sizes_of_real_passes(profiles: Path, name: str) -> None:
    loaders = host().loaders
    (source,) = discover(list(loaders.values()), profiles / "kineto" / name)
    store = fact_store(host(), loaders[source.loader].load(source))
    table = sized_passes(store[HOST_EVENTS], store[PROFILE].vocabulary)
    assert len(table) == 1
    sizes = table.loc[0, ["new", "running", "new_tokens", "sequences", "tokens"]].fillna(0).to_numpy(dtype=np.float64)
    np.testing.assert_array_equal(sizes, REAL[name])
    assert len(view_of(sizes_of_passes.draw(store.view(sizes_of_passes.needs, ())))) == 1


def test_a_recording_without_marks_has_no_such_table() -> None:
    assert sizes_of_passes.draw(served(("my range", 100)).store().view(sizes_of_passes.needs, ())) == []


def view_of(drawn: Sequence[View]) -> list[list[Cell]]:
    (found,) = drawn
    assert isinstance(found, TableView)
    return found.data.rows
