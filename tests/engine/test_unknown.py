"""What the ledger could not tell says why, and what would tell it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from advisor_core.api.testing import Scene
from advisor_core.result.run import LedgerEntry, RunResult
from advisor_core.run.why_unknown import why_unknown
from tests.docs.test_ledger_page import of_the_code

Run = Callable[..., RunResult]


def test_every_unknown_leaf_has_a_reason_and_causes_have_none() -> None:
    store = Scene().step(1, -10, 620).kernel(0, 100).collective(200, 100).store()
    unknown = {leaf for leaf in of_the_code() if leaf.endswith("/unknown")}
    assert len(unknown) >= 4
    for leaf in of_the_code():
        reason, _ = why_unknown(leaf, store)
        assert (reason is not None) == (leaf in unknown), leaf


def test_the_reason_is_that_of_the_fact_that_is_missing() -> None:
    store = Scene().step(1, -10, 620).kernel(0, 100).kernel(300, 100).store("flows")
    reason, _ = why_unknown("idle/unknown", store)
    assert reason is not None and "flows is missing" in reason.en


def test_a_profile_without_planes_says_which_level_has_them(profiles: Path, advisor_run: Run) -> None:
    result = advisor_run(profiles / "ascend" / "alexnet-ddp-text-level0")
    (entry,) = [entry for entry in _entries(result) if entry.path == "communication/unknown"]
    assert entry.reason is not None and "waiting and moving data" in entry.reason.en
    assert entry.collect is not None and "level 1" in entry.collect.en
    assert all((entry.reason is None) != entry.path.endswith("/unknown") for entry in _entries(result))


def _entries(result: RunResult) -> list[LedgerEntry]:
    return [entry for step in result.ledger for entry in step.entries]
