"""Waiting between pipeline stages: what the planes of each rank tell, and what both ends of each send and receive tell
once the planes are gone, of one simulated job."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from advisor_core.facts.communication.calls import recorded_calls
from advisor_core.facts.store import FactStore
from advisor_core.loaders.ascend_pytorch.loader import AscendPytorchLoader
from advisor_core.loaders.discover import discover
from advisor_core.result.run import RunResult
from advisor_core.run.pipeline import run
from advisor_core.run.prepared import RunOptions, installed_host
from advisor_core.run.rank import fact_store
from tests.once import ResultOf
from tests.sample.small import small

JOB = "late-rank-in-pipeline"
FEW = RunOptions(select=("DQ002",))
"""The ledger is closed before any rule sees it: one rule is enough."""
PIPELINE = "communication/wait/pipeline"


def without_planes(trace: Path) -> None:
    """Take the tasks of the planes out of a trace, as a profile at level 0 has none."""
    events = json.loads(trace.read_text(encoding="utf-8"))
    threads = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    planes = {lane for lane, name in threads.items() if name.startswith("Plane ")}
    assert planes
    kept = [event for event in events if (event["pid"], event.get("tid")) not in planes]
    trace.write_text(json.dumps(kept), encoding="utf-8")


def communication(result: RunResult) -> dict[int, Counter[str]]:
    booked: dict[int, Counter[str]] = {}
    for step in result.ledger:
        for entry in step.entries:
            if entry.path.startswith("communication/"):
                booked.setdefault(step.rank, Counter())[entry.path] += entry.ns
    return booked


def transfers(stores: dict[int, FactStore]) -> pd.DataFrame:
    """A row per send and receive in a step: its rank, way, uncovered time and what of it its planes call waiting; and
    ``short_ns``, the time of the end that came last."""
    calls = pd.concat([store[recorded_calls].assign(rank=rank) for rank, store in stores.items()])
    calls = calls[(calls["step"] >= 0) & calls["operation"].isin(["send", "receive"])]
    calls["occurrence"] = calls.groupby(["rank", "group", "ranks", "index"]).cumcount()
    ends = calls.groupby(["group", "ranks", "index", "occurrence"])["elapse_ns"]
    assert (ends.transform("size") == 2).all()
    return calls.assign(short_ns=ends.transform("min"))


Told = tuple[dict[int, Counter[str]], dict[int, Counter[str]], pd.DataFrame]


@pytest.fixture(scope="module")
def told(shared_sample: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Told:
    """Communication of each rank by planes, the same without them, and the sends and receives."""
    folder = Path(shutil.copytree(shared_sample(small(JOB)), tmp_path_factory.mktemp("pipeline") / "job"))
    loader = AscendPytorchLoader()
    stores = {one.rank: fact_store(installed_host(), loader.load(one)) for one in discover([loader], folder)}
    by_planes = communication(run([folder], FEW, jobs=1))
    for trace in folder.rglob("trace_view.json"):
        without_planes(trace)
    return by_planes, communication(run([folder], FEW, jobs=1)), transfers(stores)


def test_nothing_is_left_unknown_and_nothing_is_lost(told: Told) -> None:
    by_planes, by_ends, _ = told
    assert sorted(by_planes) == sorted(by_ends) == [0, 1, 2, 3]
    for rank, booked in by_ends.items():
        assert booked.total() == by_planes[rank].total() and "communication/unknown" not in booked


def test_a_receive_waits_as_long_by_both_ends_as_by_its_planes(told: Told) -> None:
    """Its planes wait for the sender and then move the data, which takes as long as a send that comes last."""
    _, _, calls = told
    receives = calls[calls["operation"] == "receive"]
    by_ends = (receives["elapse_ns"] - receives["short_ns"]).clip(upper=receives["uncovered_ns"])
    assert receives["wait_ns"].sum() > 1e8
    assert (receives["wait_ns"] - by_ends).abs().max() < 20_000


def test_what_planes_tell_more_is_the_moving_of_data_by_the_other_end(told: Told) -> None:
    """A rank that sends moves nothing itself: the receiver reads. Its planes wait until that is done; both ends
    together tell this part as transfer."""
    by_planes, by_ends, calls = told
    sends = calls[calls["operation"] == "send"]
    open_transfer = sends["short_ns"].clip(upper=sends["uncovered_ns"]).groupby(sends["rank"]).sum()
    for rank in by_ends:
        more = by_planes[rank][PIPELINE] - by_ends[rank][PIPELINE]
        assert more > 3_000_000
        # at times another collective moves data meanwhile, which planes tell as transfer of the rank
        assert more == pytest.approx(open_transfer[rank], rel=0.06)


def test_one_end_alone_is_not_compared(result_of: ResultOf, profiles: Path) -> None:
    """The real job has the sends of ranks 0 and 1 in detail; their receives, of ranks 8 and 9, are sums only."""
    result = result_of(profiles / "ascend" / "gpt3-pp2-2-of-16-ranks")
    booked = communication(result)
    assert all(not booked[rank][PIPELINE] for rank in range(8)) and all(booked[rank][PIPELINE] for rank in range(8, 16))
