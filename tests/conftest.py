"""What all tests share: where real profiles are, if they are."""

from __future__ import annotations

import gc
import hashlib
import os
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from advisor_core.result.run import RunResult
from advisor_core.run import kept_ranks
from tests.once import Once, ResultOf

# A run that gates a change must not fail by chance, and not take long: it takes the same few examples each time.
# `make search` looks for others.
settings.register_profile("gate", derandomize=True, deadline=None, max_examples=30)
settings.register_profile("search", deadline=None, max_examples=300)
PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "gate")
settings.load_profile(PROFILE)

# Most of what the collector of cycles looks at is what all tests share, and analyses make few cycles: with its own
# thresholds it took 6 to 12 % of the time of tests that judge recordings.
gc.set_threshold(100_000, 20, 10)

ROOT = Path(__file__).parent.parent
RESULTS_AT_HAND = 2
"""So many results a process keeps in memory; the others are read again."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if PROFILE != "search" and item.get_closest_marker("search"):
            item.add_marker(pytest.mark.skip(reason="a further variant, or many whole runs: `make search` does them"))


def real_profiles() -> Path | None:
    """The folder of real profiles: $NPU_ADVISOR_PROFILES, or ``shared/profiles`` beside the checkout."""
    named = os.environ.get("NPU_ADVISOR_PROFILES")
    folder = Path(named) if named else ROOT.parent / "shared" / "profiles"
    return folder if folder.is_dir() else None


@pytest.fixture(autouse=True)
def _without_cache_of_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests put other functions in place of ours, which what is kept of ranks knows nothing of, and the user's own
    cache is none of theirs."""
    monkeypatch.setattr(kept_ranks, "rank_folder", lambda most_bytes: None)


@pytest.fixture(scope="session")
def profiles() -> Path:
    """Real profiles; the test is skipped, and says so, where there are none."""
    folder = real_profiles()
    if folder is None:
        pytest.skip("no real profiles: set NPU_ADVISOR_PROFILES to the folder that holds ascend/ and kineto/")
    return folder


@pytest.fixture(scope="session")
def once(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Once:
    """Folders that any process of the session makes for all of them."""
    own = tmp_path_factory.getbasetemp()
    return Once((own.parent if hasattr(request.config, "workerinput") else own) / "once")


@pytest.fixture(scope="session")
def shared_sample(once: Once) -> Callable[..., Path]:
    """``shared_sample(scenario, **options)``: the folder of a sample, with the options of `write_sample`; no test
    writes to it. ``scenario``: a name of the catalogue, or one of `tests.sample.small`."""
    from advisor_core.sample import Scenario, write_sample

    def get(scenario: str | Scenario = "transformer-training", **options: Any) -> Path:
        named = f"{scenario.name}-small" if isinstance(scenario, Scenario) else scenario
        name = "-".join([named, *(f"{key}={value}" for key, value in sorted(options.items()))])
        return once(name, lambda folder: write_sample(folder, scenario=scenario, **options))

    return get


@pytest.fixture(scope="session")
def result_of(once: Once) -> ResultOf:
    """``result_of(*paths, **options)``: what a run says of profiles that no test writes to, with the defaults of
    `RunOptions` but for ``options``. Any process of the session makes it for all; nobody changes the result."""
    from advisor_core.run.pipeline import run
    from advisor_core.run.prepared import RunOptions

    def judge(paths: tuple[Path, ...], options: RunOptions, folder: Path) -> None:
        (folder / "report.json").write_text(run(paths, options, jobs=1).model_dump_json(), encoding="utf-8")

    @lru_cache(RESULTS_AT_HAND)
    def get(*paths: Path, **changed: Any) -> RunResult:
        options = RunOptions(**changed)
        asked = os.pathsep.join([*map(str, paths), repr(options)])
        name = f"result-{hashlib.sha256(asked.encode()).hexdigest()[:16]}"
        report = once(name, lambda folder: judge(paths, options, folder)) / "report.json"
        return RunResult.model_validate_json(report.read_text(encoding="utf-8"), strict=True)

    return get


@pytest.fixture(scope="session")
def advisor_sample(shared_sample: Callable[..., Path]) -> Path:
    """As authors of plugins get it, and one for all processes."""
    return shared_sample()


@pytest.fixture(scope="session")
def short_job(advisor_sample: Path, once: Once) -> Path:
    """Two ranks of the sample, cut down to what takes a moment to analyse; tests must not write to it."""
    from tests.robustness.command import shorten

    def cut_down(job: Path) -> None:
        for profile in sorted(advisor_sample.iterdir()):
            shorten(profile, job / profile.name)

    return once("short", cut_down)
