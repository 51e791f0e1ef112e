"""What was measured is judged again: the same bytes, nothing read, and read again for what nobody asked for before."""

from __future__ import annotations

import dataclasses
import os
import shutil
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from advisor_core.cache.folder import CacheFolder
from advisor_core.plugins.host import PluginStatus
from advisor_core.result.run import RunResult
from advisor_core.run import kept_ranks, rank
from advisor_core.run.kept_ranks import kept_of, printed
from advisor_core.run.pipeline import run
from advisor_core.run.prepared import RunOptions, installed_host
from advisor_core.run.rank import Compared

FEW = ("HD001", "CO001")
"""A rule of a rank and one of the job; which of them judge makes no difference to what is kept."""
HIGHER = (("HD001.idle_share", 0.98), ("CO001.medium_share", 0.98), ("CO001.high_share", 0.99))
LOWER = (("HD001.idle_share", 0.0001), ("CO001.medium_share", 0.0001), ("CO001.high_share", 0.5))
KEPT = RunOptions(cache_bytes=1 << 30, select=FEW, overrides=HIGHER)
ALL = RunOptions(cache_bytes=1 << 30)


class Kept:
    """Runs on one profile with one cache, and the ranks that the last of them read."""

    def __init__(self, profile: Path, folder: CacheFolder) -> None:
        self.profile = profile
        self.folder = folder
        self.read: list[int] = []

    def run(self, options: RunOptions, jobs: int = 1) -> RunResult:
        self.read = []
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(kept_ranks, "rank_folder", lambda most: self.folder if most else None)
            patched.setattr(rank, "read_rank", self._reading)
            return run([self.profile], options, jobs=jobs)

    def _reading(self, host, source, cache_bytes):  # type: ignore[no-untyped-def]  # as the function it stands for
        self.read.append(source.rank)
        return kept_ranks.read_rank(host, source, cache_bytes)


@pytest.fixture(scope="module")
def kept(short_job: Path, tmp_path_factory: pytest.TempPathFactory) -> Kept:
    """A run on two ranks, whose files are old enough to be kept, has been."""
    above = tmp_path_factory.mktemp("kept")
    shutil.copytree(short_job, above / "job")
    then = time.time() - 60
    for file in above.rglob("*"):
        os.utime(file, (then, then))
    made = Kept(above / "job", CacheFolder(above / "cache" / "ranks", 1 << 30))
    made.run(KEPT)
    assert sorted(made.read) == [0, 1]
    return made


@pytest.fixture(scope="module")
def plain(kept: Kept) -> Callable[..., RunResult]:
    """Runs on the same profile without a cache."""
    return cache(lambda **options: run([kept.profile], RunOptions(**options), jobs=1))


def told(result: RunResult) -> str:
    """All of a report but how long it took."""
    return result.model_copy(update={"timings": {}}).model_dump_json()


def test_the_same_again_has_the_same_bytes_and_reads_nothing(kept: Kept, plain: Callable[..., RunResult]) -> None:
    """With all rules."""
    kept.run(ALL)
    assert sorted(kept.read) == [0, 1]
    again = kept.run(ALL)
    assert kept.read == []
    assert told(again) == told(plain())
    assert again.timings["load_s"] == 0.0


def test_another_threshold_judges_what_was_measured(kept: Kept, plain: Callable[..., RunResult]) -> None:
    """The rows that become findings only now are read for their evidence, once."""
    options = dataclasses.replace(KEPT, overrides=LOWER)
    expected = plain(select=FEW, overrides=LOWER)
    first = kept.run(options)
    assert sorted(set(kept.read)) == [0, 1], "for the evidence"
    again = kept.run(options)
    assert kept.read == []
    assert told(first) == told(again) == told(expected)
    assert len(expected.findings) > len(kept.run(KEPT).findings)


def test_files_that_changed_meanwhile_are_measured_anew(
    kept: Kept, plain: Callable[..., RunResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is read for evidence is never of other files than what was measured."""
    kept.folder.clear()
    kept.run(KEPT)
    options = dataclasses.replace(KEPT, overrides=LOWER)
    before = kept_ranks.read_rank
    monkeypatch.setattr(kept_ranks, "read_rank", lambda *given: dataclasses.replace(before(*given), files=None))
    changed = kept.run(options)
    assert set(kept.read) == {0, 1}
    assert told(changed) == told(plain(select=FEW, overrides=LOWER))
    monkeypatch.undo()
    again = kept.run(options)
    assert set(kept.read) == {0, 1}, "nothing of it was kept"
    assert told(again) == told(changed)


def test_other_rules_measure_what_they_ask_for(kept: Kept, plain: Callable[..., RunResult]) -> None:
    """Facts tell the reader what they meet: which of them were asked is part of what is kept."""
    options = dataclasses.replace(KEPT, select=("HD001",))
    assert told(kept.run(options)) == told(plain(select=("HD001",), overrides=HIGHER))
    assert sorted(kept.read) == [0, 1]
    kept.run(options)
    assert kept.read == []


def test_timings_are_measured(kept: Kept) -> None:
    result = kept.run(dataclasses.replace(KEPT, timings=True))
    assert "fact ledger" in result.timings
    assert sorted(kept.read) == [0, 1]


def test_an_advisor_that_raises_is_asked_again(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(facts: object, params: object) -> None:
        raise ValueError("by mistake")

    host = installed_host()
    failing = dataclasses.replace(host.advisors["host_dispatch.idle"], measure=fails)
    options = dataclasses.replace(KEPT, phase_marks=(("nothing", "rollout"),))  # nothing is kept of this yet
    with monkeypatch.context() as patched:
        patched.setitem(host.advisors._things, failing.name, failing)
        states = {rule.rule: rule.state for rule in kept.run(options).rules}
        assert states["HD001"] == "error"
    states = {rule.rule: rule.state for rule in kept.run(options).rules}
    assert states["HD001"] == "pass"
    assert sorted(kept.read) == [0, 1]


def test_nothing_is_kept_of_what_other_plugins_take_part_in(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    host, source = installed_host(), kept_sources(kept)[0]
    monkeypatch.setattr(kept_ranks, "rank_folder", lambda most: kept.folder)
    assert kept_of(host, source, 1) is not None
    monkeypatch.setattr(host, "plugins", [*host.plugins, PluginStatus("theirs", "their-package", "1")])
    assert kept_of(host, source, 1) is None


def kept_sources(kept: Kept) -> list:  # type: ignore[type-arg]
    from advisor_core.loaders.discover import discover
    from advisor_core.plugins.guarded_loaders import loaders

    return discover(loaders(installed_host()), kept.profile)


def test_all_of_what_the_comparison_told_is_part_of_the_name() -> None:
    one = Compared()
    others = [
        dataclasses.replace(one, ranks=2),
        dataclasses.replace(one, left_out=3),
        dataclasses.replace(one, warming=(1,)),
        dataclasses.replace(one, wanted=None),
        dataclasses.replace(one, waits=one.waits.assign(waited_ns=one.waits["waited_ns"].astype("float64"))),
    ]
    names = [repr(printed(compared)) for compared in (one, *others)]
    assert len(set(names)) == len(names)
    assert repr(printed(Compared())) == names[0]
