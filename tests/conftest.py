"""What all tests share: where real profiles are, if they are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

from advisor_core.run import kept_ranks

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
def short_job(advisor_sample: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two ranks of the sample, cut down to what takes a moment to analyse; tests must not write to it."""
    from tests.robustness.command import shorten

    job = tmp_path_factory.mktemp("short")
    for profile in sorted(advisor_sample.iterdir()):
        shorten(profile, job / profile.name)
    return job
