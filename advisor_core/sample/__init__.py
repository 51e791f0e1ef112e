"""Writes realistic profiles: the embedded default input, and material for tests and authors.

A small discrete-event simulation of training on Ascend NPUs (:mod:`.job`) records one timeline per
rank; the text export (:mod:`.text`) derives every file from it, so that the files agree exactly.
Nothing in a profile says which problems it contains: that is known only to :data:`SCENARIOS`.

Durations, sizes and formats come from real profiles and published figures; remarks such as
"facts A3" name the section of the project's fact base (``facts.md``) that has the source.
"""

from __future__ import annotations

from pathlib import Path

from .job import simulate
from .scenarios import SCENARIOS, Scenario
from .text import write_text
from .text.fields import NAMES

__all__ = ["SCENARIOS", "Scenario", "write_sample"]

_FORMATS = ("text",)


def write_sample(
    directory: Path, *, scenario: str = "transformer-training", seed: int = 0, format: str = "text"
) -> list[Path]:
    """Write a profile below ``directory`` and return the directories of its ranks.

    The same scenario and seed give the same bytes. Raises :class:`ValueError` for a scenario or a
    format that does not exist.
    """
    if scenario not in SCENARIOS:
        raise ValueError(f"unknown scenario {scenario!r}; known scenarios: {', '.join(SCENARIOS)}")
    if format not in _FORMATS:
        raise ValueError(f"unknown sample format {format!r}; known formats: {', '.join(_FORMATS)}")
    job = SCENARIOS[scenario]
    return [write_text(timeline, directory, NAMES[job.headers]) for timeline in simulate(job, seed)]
