"""What one more run costs, by the calls that our code makes: of its own functions, and into pandas, numpy and the rest.

Unlike a time, a count hardly changes with the machine, the interpreter or the release of a library: what a library does
inside is not counted. An advisor more costs some hundred calls; a loop over rows, or a fact that is derived twice, many
thousands. Where a change is worth what it adds, the number here is raised with it.
"""

from __future__ import annotations

import cProfile
from collections.abc import Callable
from pathlib import Path

import pytest

from advisor_core.cli.report_files import chosen_renderers, render_all
from advisor_core.run.pipeline import run
from advisor_core.run.prepared import RunOptions
from tests.advisors.build import ROOT

CALLS = {"healthy-training-single": 306}
"""Of a run of that sample with its three reports, in thousands; CPython 3.11 and 3.13 agree within the room."""

ROOM = 0.1
"""By how much a count may grow, or shrink, before this file is to be changed."""

OURS = tuple(str(ROOT / package) for package in ("advisor_core", "advisors", "reports"))
INLINED = {"<listcomp>", "<dictcomp>", "<setcomp>"}
"""Calls on Python 3.11 only."""


def report(profile: Path) -> None:
    result = run([profile], RunOptions(), jobs=1)
    _, failed = render_all(result, chosen_renderers(()), "en")
    assert result.rules and not failed


def calls_of_ours(profile: Path) -> int:
    """The calls that our code makes in a run that is not the first of its process."""
    report(profile)
    profiler = cProfile.Profile()
    profiler.runcall(report, profile)
    made = 0
    for entry in profiler.getstats():
        if not isinstance(entry.code, str) and entry.code.co_filename.startswith(OURS):
            made += sum(
                callee.callcount
                for callee in entry.calls or ()
                if isinstance(callee.code, str) or callee.code.co_name not in INLINED
            )
    return made


@pytest.mark.parametrize("scenario", CALLS)
def test_a_run_makes_no_more_calls_than_it_did(scenario: str, shared_sample: Callable[..., Path]) -> None:
    made = calls_of_ours(shared_sample(scenario)) / 1000
    assert made == pytest.approx(CALLS[scenario], rel=ROOM), f"{scenario}: {made:.0f} thousand calls"
