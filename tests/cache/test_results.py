"""A result is kept whole: the same bytes as long as nothing changed that it depends on, and a run as soon as it did."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest

from advisor_core.cache.fingerprint import files_of
from advisor_core.cache.folder import CacheFolder
from advisor_core.contracts.profile import StepError
from advisor_core.plugins.host import PluginStatus
from advisor_core.result.run import Diagnostic, RunResult
from advisor_core.run import kept_ranks, kept_results
from advisor_core.run.kept_results import kept_or_run
from advisor_core.run.pipeline import run
from advisor_core.run.prepared import RunOptions, forget_rules, installed_host
from advisor_core.run.request import Request
from advisor_core.text.base import Text
from tests.cache.rank import write_rank

KEPT = RunOptions(cache_bytes=1 << 30)


class Runs:
    """Runs on one rank with one cache; ``made``: how many of them there were."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.made = 0

    def __call__(
        self, change: Callable[[RunResult], RunResult] = lambda made: made, rank: int | None = None, **options: object
    ) -> RunResult:
        asked = Request((self.path,), dataclasses.replace(KEPT, **options), rank)  # type: ignore[arg-type]

        def made() -> RunResult:
            self.made += 1
            return change(run(asked.paths, asked.options, rank=rank, jobs=1))

        return kept_or_run(asked, made)


@pytest.fixture
def runs(rank: Path, folder: CacheFolder, monkeypatch: pytest.MonkeyPatch) -> Runs:
    for module in (kept_ranks, kept_results):
        monkeypatch.setattr(module, "rank_folder", lambda most: folder if most else None)
    return Runs(rank)


def told(result: RunResult) -> str:
    """All of a report but how long it took."""
    return result.model_copy(update={"timings": {}}).model_dump_json()


def test_the_same_again_has_the_same_bytes_without_a_run(runs: Runs) -> None:
    first, again = runs(), runs()
    assert runs.made == 1
    assert told(first) == told(again)
    assert again.timings.keys() == first.timings.keys()
    assert again.timings["analyse_s"] == 0.0


def test_other_options_are_another_result(runs: Runs) -> None:
    runs()
    assert told(runs(select=("HD",))) == told(run([runs.path], RunOptions(select=("HD",)), jobs=1))
    assert runs.made == 2
    for options in ({"timings": True}, {"cache_bytes": 0}):
        before = runs.made
        runs(**options)
        assert runs.made == before + 1, "measured, or not to be taken from there"


def test_a_changed_file_and_one_more_are_another_result(runs: Runs) -> None:
    runs()
    write_rank(runs.path.parent / "further_ascend_pt")
    runs()
    assert runs.made == 1, "beside the path"
    file = next(file for file in runs.path.rglob("*.csv"))
    file.write_bytes(file.read_bytes())
    runs()
    runs()
    assert runs.made == 3, "and what was written just now is not kept"


def test_a_rule_file_that_changed_is_another_result(runs: Runs, tmp_path: Path) -> None:
    rules = tmp_path / "mine.yaml"
    for number, why in enumerate(("as it is quiet", "as it is loud", "as it is quiet"), start=1):
        rules.write_text(f"override: HD001\nenabled: false\nwhy: {why}\n")
        forget_rules()  # another process
        result = runs(rulesets=(rules,))
        assert why in told(result)
        assert runs.made == min(number, 2), "the third is the first again"


def test_what_the_next_run_may_tell_otherwise_is_not_kept(runs: Runs) -> None:
    def telling(text: str, **more: object) -> Callable[[RunResult], RunResult]:
        said = Diagnostic(severity="info", source="rank 0", message=Text(en=text, zh=text)).model_copy(update=more)
        return lambda made: made.model_copy(update={"diagnostics": [*made.diagnostics, said]})

    changes = (
        telling("it raised", severity="error"),
        telling("a plugin did", about="tool"),
        telling("step_trace_time.csv cannot be read: Permission denied"),
    )
    for number, change in enumerate(changes, start=1):
        runs(change)
        assert runs.made == number


def _growing(ask):  # type: ignore[no-untyped-def]  # as the function that it stands for
    """Files that are others each time they are asked for, as while they are copied."""
    count = iter(range(1000))

    def asked(place):  # type: ignore[no-untyped-def]
        found = ask(place)
        return dataclasses.replace(found, digest=f"{found.digest}{next(count)}")

    return asked


def test_files_that_grow_meanwhile_are_not_kept(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(kept_results, "files_of", _growing(files_of))
        runs()
    runs()
    runs()
    assert runs.made == 2


def test_nothing_is_kept_of_a_rank_that_is_not_kept(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CacheFolder, "holds", lambda folder, name: False)
    runs()
    runs()
    assert runs.made == 2


def test_nothing_is_kept_where_another_plugin_takes_part(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    host = installed_host()
    monkeypatch.setattr(host, "plugins", [*host.plugins, PluginStatus("more", "of-others", "1.0")])
    runs()
    runs()
    assert runs.made == 2


def test_what_is_wrong_with_the_call_is_said_by_the_run(runs: Runs) -> None:
    for _ in range(2):
        with pytest.raises(StepError):
            runs(rank=7)
    assert runs.made == 2
