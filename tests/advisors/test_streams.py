"""PB020 and the table of streams: whether it pays that streams compute at once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from advisor_core.api.renderers import TableView
from advisor_core.api.testing import Scene, judge_rule, measure
from advisor_core.facts.store import FactStore
from advisors.pipeline_bound.streams import computing_streams, several_at_once, stream_table, streams
from tests.advisors.real import real_rank

PRODUCT = ["512,512 BF16", "512,512 BF16"]


def pairs(*, beside: float, alone: int = 4, at_once: int = 4, spread: float = 0.0, twins: bool = False) -> Scene:
    """``alone`` products of 100 us on stream 2; then ``at_once`` of ``beside`` us, each with one of stream 3 under all
    of it. ``spread``: each fourth one takes as much less. ``twins``: stream 3 runs the products of stream 2 alone too,
    else vector kernels of other shapes."""
    scene, now = Scene(), 0.0
    other = ("MatMulV3", PRODUCT) if twins else ("Mul", ["4096,4096 BF16", "4096,4096 BF16"])
    for number in range(alone):
        took = 100 - spread * (number % 2)
        scene.tensors(now, took, "MatMulV3", PRODUCT, ["512,512 BF16"])
        now += 110
        scene.tensors(now, took, other[0], other[1], ["512,512 BF16"], stream=3)
        now += 110
    for number in range(at_once):
        took = beside - spread * (number % 2)
        scene.tensors(now, took, "MatMulV3", PRODUCT, ["512,512 BF16"])
        scene.tensors(now, took, other[0], other[1], ["512,512 BF16"], stream=3)
        now += beside + 10
    return scene


def table(store: FactStore) -> TableView | None:
    drawn = stream_table.draw(store.view(stream_table.needs, stream_table.wants))
    assert all(isinstance(view, TableView) for view in drawn)
    return drawn[0] if drawn else None  # type: ignore[return-value]


def test_the_time_that_several_intervals_cover() -> None:
    layer = several_at_once(np.array([0, 5, 20, 30, 31]), np.array([10, 12, 30, 40, 35]))
    assert list(zip(layer.starts.tolist(), layer.ends.tolist(), strict=True)) == [(5, 10), (31, 35)]


@pytest.mark.parametrize(("beside", "state", "lost_us"), [(150, "pass", 0), (250, "fail", 4 * 50), (200, "pass", 0)])
def test_streams_lose_where_kernels_are_slower_by_more_than_they_hide(beside: int, state: str, lost_us: int) -> None:
    """Two kernels of 100 us take 200 one after the other: beside one another they may take as long together."""
    store = pairs(beside=beside).store()
    seen = measure(streams, store).frame.iloc[0]
    assert seen["at_once_ns"] == seen["at_once_saved_ns"] == 4 * beside * 1_000 and seen["known_share"] == 1
    assert seen["slowdown"] == pytest.approx(beside / 100 - 1)
    assert seen["excess_ns"] == 2 * 4 * (beside - 100) * 1_000
    assert seen["won_ns"] == pytest.approx(4 * (200 - beside) * 1_000)
    found = judge_rule("PB020", store)
    assert found.state == state
    if state == "fail":
        assert found.first.impact_ns == lost_us * 1_000
        assert "'beside_streams': 4" in str(found.evidence()[0]) and "'without_streams': 4" in str(found.evidence()[0])


@pytest.mark.parametrize(("beside", "said"), [(150, "it pays"), (250, "it does not pay")])
def test_the_table_says_whether_it_pays(beside: int, said: str) -> None:
    view = table(pairs(beside=beside).store())
    assert view is not None and said in view.title.en and "micro-batches" not in view.title.en
    names = [column.label.en for column in view.data.columns]
    row = dict(zip(names, view.data.rows[0], strict=True))
    assert row["Kernel time"] == 1_000 * 4 * (100 + beside) and row["Beside another stream"] == 1_000 * 4 * beside
    assert row["Longer than alone"] == pytest.approx(beside / 100 - 1)


def test_without_a_pair_it_is_unknown_and_no_guess() -> None:
    store = pairs(beside=250, alone=2).store()
    seen = measure(streams, store).frame.iloc[0]
    assert seen["known_share"] == 0 and np.isnan(seen["won_ns"]) and np.isnan(seen["lost_share"])
    assert judge_rule("PB020", store).state == "cannot_answer"
    view = table(store)
    assert view is not None and "whether it pays is unknown" in view.title.en


def test_durations_that_spread_as_much_as_the_states_differ_count_as_no_slower() -> None:
    seen = measure(streams, pairs(beside=105, spread=40).store()).frame.iloc[0]
    assert seen["excess_ns"] == 0 and seen["won_ns"] == seen["at_once_saved_ns"]


def test_shapes_that_are_not_recorded_make_no_pair() -> None:
    scene = pairs(beside=250)
    for row in scene.rows["kernels"]:
        if row["type"] == "Mul":
            row |= {"input_shapes": "", "input_dtypes": "", "input_formats": ""}
    seen = measure(streams, scene.store()).frame.iloc[0]
    assert seen["known_share"] == pytest.approx(0.5) and seen["excess_ns"] == 4 * 150_000
    # The kernels without shapes are taken to lose as much.
    assert seen["won_ns"] == pytest.approx(4 * (250 - 300) * 1_000)


def test_two_micro_batches_are_two_streams_with_the_same_work() -> None:
    store = pairs(beside=150, twins=True).store()
    assert set(store[computing_streams].twins) == {2, 3}
    view = table(store)
    assert view is not None and "run the same operators on the same shapes" in view.title.en
    assert store[computing_streams].known_share == 1


def test_one_stream_is_no_question() -> None:
    scene = Scene().step(1, 0, 1_000).kernel(0, 100).kernel(120, 100)
    assert judge_rule("PB020", scene.store()).state == "not_applicable"


def test_one_stream_whose_kernels_begin_early_does_not_run_beside_itself() -> None:
    scene = Scene().step(1, 0, 1_000).kernel(0, 100).kernel(90, 100).kernel(500, 100, stream=3)
    store = scene.store()
    assert store[computing_streams].at_once_saved_ns == 0
    assert judge_rule("PB020", store).state == "not_applicable"


def test_a_recorded_gpt_computes_beside_random_bits_and_says_nothing_of_their_price(profiles: Path) -> None:
    """Stream 17 of the file has 7 AI CPU casts and 7 kernels of random bits, 2.962 ms; 1.237 ms of it beside others,
    each of another shape than those that ran alone."""
    store = real_rank(profiles, "gpt3-kernel-details-only_ascend_pt", 0)
    seen = measure(streams, store).frame.iloc[0]
    assert (seen["streams"], seen["at_once_ns"], seen["known_share"]) == (2, 1_236_720, 0)
    assert judge_rule("PB020", store).state == "not_applicable"
    view = table(store)
    assert view is not None and "unknown" in view.title.en
    assert view.data.rows[1][:4] == ["17", 14, 2_961_760, 1_236_720]


def test_a_stream_of_two_small_kernels_is_not_worth_a_table(profiles: Path) -> None:
    assert table(real_rank(profiles, "alexnet-ddp-text-level1", 0)) is None
