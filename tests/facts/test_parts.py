"""Parts of a recording: training, log-probabilities, prefill and decode, by marks and by kernels."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor_core.api.testing import GPU, Scene
from advisor_core.facts.context import context
from advisor_core.facts.device.work import work
from advisor_core.facts.inference import Evidence, Sign
from advisor_core.facts.ledger.totals import ledger
from advisor_core.facts.steps.parts import part_ledger, part_of, parts
from advisor_core.facts.steps.passes import parts_of_inference
from advisor_core.facts.steps.steps import steps
from advisor_core.facts.store import FactStore

WHOLE = ("FlashAttentionScore", "4,8,141,64;4,8,141,64;4,8,141,64")
CACHED = ("FlashAttentionScore", "4,8,1,64;4,8,142,64;4,8,142,64")
MANY = ("MatMulV3", "4096,512;512,512")
FEW = ("MatMulV3", "4,512;512,512")
HEAD = ("MatMulV3", "4,512;512,30000")
GRADIENT = ("SoftmaxGrad", "4,8,141,141;4,8,141,141")

PREFILL = [MANY, WHOLE, MANY, MANY, WHOLE, MANY, HEAD]
DECODE = [FEW, CACHED, FEW, FEW, CACHED, FEW, HEAD]


def scene(*passes: list[tuple[str, str]]) -> Scene:
    """Kernels of 10 us, 1 us apart, with 50 us before each pass."""
    found, now = Scene().step(1, 0, 10_000), 100.0
    for one in passes:
        now += 50
        for type_, shapes in one:
            reads = [f"{shape} BF16" for shape in shapes.split(";")]
            found.tensors(now, 10, type_, reads, reads[:1])
            now += 11
    return found


def told(store: FactStore) -> list[str]:
    return [str(part) for part in store[parts]["part"]]


def kernels_by_part(store: FactStore) -> dict[str, int]:
    """How many kernels start in each part."""
    found = part_of(store[parts], store[work]["start_ns"].to_numpy())
    names, counts = np.unique(found.astype(str), return_counts=True)
    return dict(zip(names.tolist(), counts.tolist(), strict=True))


def test_a_prefill_and_the_tokens_behind_it() -> None:
    store = scene(PREFILL, DECODE, DECODE, PREFILL, DECODE).store()
    assert told(store) == ["prefill", "decode", "prefill", "decode"]
    # The head of a prefill has few rows and belongs to it: the border is where the device idles.
    assert kernels_by_part(store) == {"prefill": 14, "decode": 21}


def test_the_parts_are_all_of_the_steps() -> None:
    store = scene(PREFILL, DECODE).store()
    spans, windows = store[parts], store[steps]
    assert (spans["end_ns"] - spans["start_ns"]).sum() == (windows["end_ns"] - windows["start_ns"]).sum()
    assert store[part_ledger]["ns"].sum() == store[ledger]["ns"].sum()


def test_training_is_one_part_whatever_its_attentions_read() -> None:
    """Cross attention reads more keys than it has queries, as a decode does."""
    assert told(scene([MANY, WHOLE, CACHED, MANY, WHOLE, CACHED, GRADIENT]).store()) == ["training"]


def test_a_rollout_that_nothing_marks_is_no_training() -> None:
    forward = [MANY, WHOLE, MANY, WHOLE]
    store = scene(PREFILL, DECODE, DECODE, forward, [GRADIENT, MANY, GRADIENT]).store()
    assert told(store) == ["prefill", "decode", "training"]
    assert kernels_by_part(store)["decode"] == 14


def test_marks_of_reinforcement_learning() -> None:
    store = (
        scene(PREFILL, DECODE, PREFILL, [*PREFILL, GRADIENT])
        .event("mstx", "generate_sequences", 120, 240)
        .event("mstx", "compute_log_prob", 380, 120)
        .event("mstx", "update_actor", 500, 300)
        .store()
    )
    spans = store[parts]
    marked = spans[spans["phase"] != ""]
    assert list(zip(marked["phase"], marked["part"], strict=True)) == [
        ("rollout", "prefill"),
        ("rollout", "decode"),
        ("log_prob", "log_probs"),
        ("update_actor", "training"),
    ]
    assert dict(store[context])["parts"] == "training log_probs prefill decode"


@pytest.mark.parametrize(
    ("mark", "part"),
    [
        ("execute_8192_context_9(sq8155sk8430sqsq7475785sqsk7671310)_generation_37(sq37sk3)", "mixed"),
        ("execute_15360_context_15(sq15360sk15360)_generation_0(sq0sk0)", "prefill"),
        ("execute_context_0(0)_generation_2(2)", "decode"),
        ("step[EXTEND bs=15 toks=15360]", "prefill"),
        ("step[DECODE bs=16]", "decode"),
        ("step[MIXED bs=2]", "mixed"),
    ],
)
@pytest.mark.parametrize("words", [None, GPU])
def test_marks_of_engines(mark: str, part: str, words: object) -> None:
    """They are told apart by when a kernel was launched: it may run when the host is in the next pass."""
    one = Scene() if words is None else Scene(words=GPU)
    store = one.step(1, 0, 1000).event("user_annotation", mark, 10, 50).kernel(200, 10, launched=20).store()
    assert told(store) == [part]
    assert store[parts]["marked"].all()
    assert dict(store[context])["phase"] == part


def test_nothing_is_made_up() -> None:
    assert told(Scene().step(1, 0, 1000).kernel(100, 10, "Add").store()) == ["unknown"]


signs = st.lists(
    st.sampled_from([Sign.NOTHING, Sign.WHOLE, Sign.TOKEN, Sign.LONG, Sign.SHORT]), min_size=1, max_size=60
)


@given(signs, st.lists(st.integers(0, 50), min_size=60, max_size=60))
def test_every_kernel_has_one_part(drawn: list[Sign], gaps: list[int]) -> None:
    """Attentions of two in succession keep what they tell; nothing but the three words is said."""
    count = len(drawn)
    starts = np.cumsum(np.array(gaps[:count], dtype=np.int64) + 10)
    values = np.array(drawn, dtype=np.int64)
    found = parts_of_inference(Evidence(values, values != Sign.NOTHING), starts, starts + 10)
    assert len(found) == count
    assert set(found.tolist()) <= {"prefill", "decode", "unknown", "mixed"}
    for (left, right), place in zip(pairwise(drawn), range(count), strict=False):
        if left == right == Sign.TOKEN:
            assert set(found[place : place + 2].tolist()) == {"decode"}
        if left == right == Sign.WHOLE:
            assert set(found[place : place + 2].tolist()) == {"prefill"}
