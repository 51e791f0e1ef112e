"""Samples, written once per session."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from advisor_core.sample import SCENARIOS, write_sample
from tests.sample.export import Export


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], list[Export]]:
    """The exports of a scenario, written on first use."""
    written: dict[str, list[Export]] = {}

    def get(scenario: str) -> list[Export]:
        if scenario not in written:
            directory = tmp_path_factory.mktemp(scenario)
            written[scenario] = [Export(root) for root in write_sample(directory, scenario=scenario)]
        return written[scenario]

    return get


@pytest.fixture(params=list(SCENARIOS))
def exports(request: pytest.FixtureRequest, sample: Callable[[str], list[Export]]) -> list[Export]:
    """The exports of every scenario in turn."""
    return sample(request.param)
