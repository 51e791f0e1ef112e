"""What all tests share: where real profiles are, if they are."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from advisor_core.run import kept_ranks
from tests.once import Once

# A run that gates a change must not fail by chance, and not take long: it takes the same few examples each time.
# `make search` looks for others.
settings.register_profile("gate", derandomize=True, deadline=None, max_examples=30)
settings.register_profile("search", deadline=None, max_examples=300)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "gate"))

ROOT = Path(__file__).parent.parent


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
    writes to it."""
    from advisor_core.sample import write_sample

    def get(scenario: str = "transformer-training", **options: Any) -> Path:
        name = "-".join([scenario, *(f"{key}={value}" for key, value in sorted(options.items()))])
        return once(name, lambda folder: write_sample(folder, scenario=scenario, **options))

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
