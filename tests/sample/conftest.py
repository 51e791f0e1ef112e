"""Samples, written once for all processes of the session."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import pytest

from advisor_core.sample import SCENARIOS, Scenario
from tests.sample.database import DbExport
from tests.sample.export import Export
from tests.sample.small import small


@pytest.fixture(scope="session")
def written(shared_sample: Callable[..., Path]) -> Callable[..., list[Path]]:
    """The directories of the ranks of a scenario with given options, written on first use."""

    def get(scenario: str | Scenario, **options: Any) -> list[Path]:
        return sorted(shared_sample(scenario, **options).iterdir())

    return get


Rank = TypeVar("Rank")


def ends(scenario: str, ranks: list[Rank]) -> list[Rank]:
    """The first and the last rank of a long scenario, whose others have exports like these; else all ranks."""
    return [ranks[0], ranks[-1]] if scenario in LONG and len(ranks) > 2 else ranks


@pytest.fixture(scope="session")
def sample(written: Callable[..., list[Path]]) -> Callable[..., list[Export]]:
    """The text exports of a scenario."""

    @cache
    def get(scenario: str | Scenario, **options: Any) -> list[Export]:
        return [Export(root) for root in written(scenario, **options)]

    return get


@pytest.fixture(scope="session")
def db_sample(written: Callable[..., list[Path]]) -> Callable[..., list[DbExport]]:
    """The DB exports of a scenario."""

    @cache
    def get(scenario: str | Scenario, **options: Any) -> list[DbExport]:
        return [DbExport(root) for root in written(scenario, format="db", **options)]

    return get


TRANSFORMERS = (
    *("transformer-training", "healthy-training", "healthy-training-single", "slow-link", "allocator-churn"),
    *("task-queue-off", "garbage-collection", "ai-cpu-operator", "late-rank-by-clock"),
    *("late-rank-in-pipeline", "healthy-moe"),
)
"""Training of transformers whose exports differ: ranks, generations of the export, calls."""
WRITTEN = (*TRANSFORMERS, "healthy-cnn", "cnn-format-conversions", "healthy-rl")
"""With other models: their operators, their formats, their stages."""
assert set(WRITTEN) <= set(SCENARIOS)
LONG = ("late-rank-in-pipeline", "late-rank-by-clock", "healthy-moe", "healthy-rl", "slow-link")
"""Of these two steps of a few micro-batches are enough for what their exports have in common with others."""


@pytest.fixture(params=WRITTEN)
def exports(request: pytest.FixtureRequest, sample: Callable[..., list[Export]]) -> list[Export]:
    """The text exports of several scenarios in turn."""
    return ends(request.param, sample(small(request.param) if request.param in LONG else request.param))
