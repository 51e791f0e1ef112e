"""``advisor what-if`` from outside, on a simulated job whose loader is slow on one rank."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from advisor_core.cli.main import cli
from advisor_core.run import pipeline


@pytest.fixture(scope="module")
def profile(shared_sample: Callable[..., Path]) -> Path:
    return shared_sample("late-rank-and-swiglu")


@pytest.fixture(scope="module", autouse=True)
def analysed_once() -> Iterator[None]:
    """The profile is analysed for the first question; the others are about the same replay."""
    known = cache(lambda request: pipeline.analysed(request, jobs=1))

    def analysed(request: Any, **options: object) -> Any:
        return known(request)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("advisor_core.run.what_if.analysed", analysed)
        yield


def ask(profile: Path, *options: str) -> dict[str, object]:
    found = CliRunner().invoke(cli, ["what-if", str(profile), "--format", "json", *options])
    assert found.exit_code == 0, found.output
    answer = json.loads(found.stdout)
    assert isinstance(answer, dict)
    return answer


def test_several_changes_at_once(profile: Path) -> None:
    answer = ask(profile, "--without", "HD007,NS011", "--scale", "matmul=0.5", "--rank-as", "1=0")
    assert answer["after_ns"] < 0.5 * answer["step_ns"]  # type: ignore[operator]
    assert len(answer["without"]) == 2 and answer["untold"] == []  # type: ignore[arg-type]
    for parts, step in (("parts_before", "step_ns"), ("parts_after", "after_ns")):
        assert sum(answer[parts].values()) == answer[step]  # type: ignore[attr-defined]
    assert answer["scale"] == {"matmul": 0.5} and answer["rank_as"] == {"1": 0}
    saved, (least, most) = answer["step_ns"] - answer["after_ns"], answer["saving_range_ns"]  # type: ignore[operator, misc]
    assert 0 <= least <= saved <= most


def test_a_symptom_is_no_change(profile: Path) -> None:
    answer = ask(profile, "--without", "CO001")
    assert answer["after_ns"] == answer["step_ns"] and answer["untold"]


def test_in_words(profile: Path) -> None:
    changes = CliRunner().invoke(cli, ["what-if", str(profile)])
    assert changes.exit_code == 0 and "wins" in changes.stdout
    told = CliRunner().invoke(cli, ["what-if", str(profile), "--without", "HD007"])
    assert told.exit_code == 0 and "without F" in told.stdout and "less" in told.stdout


def test_each_change_is_named(profile: Path) -> None:
    told = CliRunner().invoke(cli, ["what-if", str(profile), "--scale", "matmul=0.5", "--rank-as", "1=0"]).stdout
    assert "kernels of matmul take 0.5 of their time" in told and "rank 1 takes no longer than rank 0" in told


def test_of_a_doubtful_replay_only_ranges_are_told(profile: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("advisor_core.cli.what_if.TRUSTED_ERROR", -1.0)
    told = CliRunner().invoke(cli, ["what-if", str(profile), "--without", "HD007"]).stdout
    assert "only the ranges count" in told and "between" in told.splitlines()[0]
    assert "compute:" not in told


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--without", "F99"], "no problem, rule or fingerprint"),
        (["--rank-as", "7=0"], "rank 7 is not replayed"),
        (["--rank-as", "x=0"], "takes two ranks"),
        (["--scale", "matmul=fast"], "takes a factor"),
        (["--scale", "matmul"], "takes TYPE=FACTOR"),
        (["--scale", "NoSuchType=0.5"], "no kernel is of the type or class"),
    ],
)
def test_what_cannot_be_asked_is_an_error_of_usage(profile: Path, options: list[str], said: str) -> None:
    found = CliRunner().invoke(cli, ["what-if", str(profile), *options])
    assert found.exit_code == 2 and said in found.stderr
