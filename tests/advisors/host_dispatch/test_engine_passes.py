"""Passes of an engine: which part of each is its forward pass, and what the host does before and after it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from advisor_core.api.renderers import TableView
from advisor_core.api.testing import GPU, Scene
from advisor_core.loaders.discover import discover
from advisor_core.run.rank import fact_store
from advisors.host_dispatch.engine_passes import engine_passes, passes_of_engine
from tests.advisors.build import host

DECODE = "execute_8_context_0(sq0)_generation_8(sq8)"
PREFILL = "step[EXTEND bs=1 toks=100]"


def found(scene: Scene) -> list[dict[str, Any]]:
    store = scene.store()
    needs = passes_of_engine.needs
    rows = engine_passes(store.view(needs, ())).to_dict("records")
    return [{str(key): us / 1000 if isinstance(us, int) else us for key, us in row.items()} for row in rows]


def served(forward: tuple[str, str] | None, *, kernel: float = 80, mark: str = DECODE, at: float = 0) -> Scene:
    """A pass of 100 us with its inputs (5 us of a kernel), from 20 to 60 a ``forward`` call (category, name) that
    launches ``kernel`` us, and a sampling (10 us of a kernel)."""
    scene = Scene(words=GPU).event("user_annotation", mark, at, 100)
    if forward is not None:
        scene.event(forward[0], forward[1], at + 20, 40)
    scene.kernel(at + 200, 5, "copy", launched=at + 10)
    scene.kernel(at + 220, kernel, "product", launched=at + 40)
    scene.kernel(at + 220 + kernel, 10, "sample", launched=at + 70)
    return scene


@pytest.mark.parametrize(
    ("forward", "told"),
    [
        (("python_function", "nn.Module: Qwen3ForCausalLM_0"), "module"),
        (("user_annotation", "gpu_model_runner: forward"), "mark"),
        (("runtime", "cudaGraphLaunch"), "graph"),
    ],
)
def test_the_forward_pass_is_what_launches_most(forward: tuple[str, str], told: str) -> None:
    (row,) = found(served(forward))
    assert (row["kind"], row["told"]) == ("decode", told)
    assert (row["before"], row["forward"], row["after"]) == (20, 40, 40)
    assert (row["before_device"], row["forward_device"], row["after_device"]) == (5, 80, 10)


def test_a_module_that_launches_little_is_no_forward_pass() -> None:
    """Of a pass whose graph was replayed without a mark only the module behind it is called."""
    scene = served(None)
    scene.event("python_function", "nn.Module: LogitsProcessor_0", 65, 10)
    (row,) = found(scene)
    assert (row["told"], row["before"], row["forward"], row["after"]) == ("", 100, 0, 0)
    assert row["before_device"] == 95


def test_of_several_modules_the_one_with_most_device_time() -> None:
    scene = served(("python_function", "nn.Module: Model_0"))
    scene.event("python_function", "nn.Module: Layer_0", 25, 30)
    scene.event("python_function", "nn.Module: LogitsProcessor_0", 62, 38)
    (row,) = found(scene)
    assert (row["told"], row["forward"]) == ("module", 40)


def test_a_graph_in_pieces_is_one_forward_pass() -> None:
    scene = served(("runtime", "cudaGraphLaunch"))
    scene.event("runtime", "cudaGraphLaunch", 12, 3)
    (row,) = found(scene)
    assert (row["before"], row["forward"]) == (12, 48)


def test_waits_for_the_device_and_the_time_between_passes() -> None:
    scene = served(("python_function", "nn.Module: Model_0"))
    scene.rows["host_events"] += served(("python_function", "nn.Module: Model_0"), at=130).rows["host_events"][:2]
    scene.event("runtime", "cudaStreamSynchronize", 2, 6).event("runtime", "cudaStreamSynchronize", 110, 15)
    first, second = found(scene)
    assert (first["before_waits"], first["between"], first["between_waits"]) == (6, 30, 15)
    assert (second["told"], second["between"]) == ("", pytest.approx(-0.001)), "it launched nothing that was recorded"


def test_marks_within_a_mark_are_one_pass_and_kinds_are_told_apart() -> None:
    mixed = served(("python_function", "nn.Module: M_0"), mark="execute_9_context_1(sq1)_generation_8(sq8)")
    mixed.event("user_annotation", PREFILL, 15, 50)
    assert [row["kind"] for row in found(mixed)] == ["mixed"]
    assert [row["kind"] for row in found(served(None, mark=PREFILL))] == ["prefill"]
    assert found(served(None, mark="my range")) == []


REAL = {
    "vllm-prefill-decode-graph.json.gz": ("mixed", 4_192_969, 21_514_575, 645_897, 4_070),
    "sglang_Qwen3-8B_prefilldecode.json.gz": ("prefill", 494_328_973, 27_971_572, 440_878, 493_292_304),
}
"""Kind of the only pass; start of the mark to the call of the model, that call, and the rest, as read off the traces;
the copies in which the host waits before it."""


@pytest.mark.parametrize("name", REAL)
def test_real_passes(profiles: Path, name: str) -> None:
    loaders = host().loaders
    (source,) = discover(list(loaders.values()), profiles / "kineto" / name)
    store = fact_store(host(), loaders[source.loader].load(source))
    (row,) = engine_passes(store.view(passes_of_engine.needs, ())).to_dict("records")
    assert row["told"] == "module"
    assert (row["kind"], row["before"], row["forward"], row["after"], row["before_waits"]) == REAL[name]
    (view,) = passes_of_engine.draw(store.view(passes_of_engine.needs, ()))
    assert isinstance(view, TableView) and len(view.data.rows) == 3
