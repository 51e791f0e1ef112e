"""Writes realistic profiles: the embedded default input, and material for tests and authors.

A small discrete-event simulation of jobs on Ascend NPUs (:mod:`.job`) records one timeline per rank: what a rank does
(:mod:`.loops`) around a model (:mod:`.models`) is a :mod:`.program`, which the :mod:`.machine` runs. The exports
(:mod:`.text`, :mod:`.db`) derive every file from the timeline, so that the files agree exactly. Nothing in a profile
says which problems it contains: that is known only to the job that was simulated, which puts together :mod:`.causes`:
one of the catalogue (:data:`SCENARIOS`), or one that a file describes (:mod:`.job_file`).

Durations, sizes and formats come from real profiles and published figures; remarks such as
``docs/sources.md#task-queue`` name the source.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from .db import write_db
from .export.generation import NAMES, Headers
from .export.recording import RECORDINGS, Level
from .job import simulate
from .roles import roles
from .scenarios import SCENARIOS, Scenario, job_from
from .text import write_text

__all__ = ["SCENARIOS", "Scenario", "job_from", "write_sample"]

_WRITERS = {"text": write_text, "db": write_db}


def write_sample(
    directory: Path,
    *,
    scenario: str | Scenario = "transformer-training",
    without: Sequence[str] = (),
    seed: int = 0,
    format: str = "text",
    level: Level = "level1",
    headers: Headers | None = None,
    discrete: bool = False,
) -> list[Path]:
    """Write a profile below ``directory`` and return the directories of its ranks.

    The same arguments give the same bytes; the timeline depends on scenario and seed alone. ``scenario``: a job, or the
    name of one in the catalogue; ``without``: causes of it that are left out (`Scenario.without`). ``level`` is the
    profiler level, ``headers`` the generation of the export, which is the scenario's own unless given. ``discrete``: a
    job of reinforcement learning is profiled role by role, as ``directory/role/*_ascend_pt``. Raises
    :class:`ValueError` for a scenario, cause, format, level or generation that does not exist, and for roles of a job
    that has none.
    """
    if isinstance(scenario, str):
        _known("scenario", scenario, SCENARIOS)
        scenario = SCENARIOS[scenario]
    _known("sample format", format, _WRITERS)
    _known("level", level, RECORDINGS)
    job = scenario.without(without)
    generation = job.headers if headers is None else headers
    _known("headers", generation, NAMES)
    write, names, recording = _WRITERS[format], NAMES[generation], RECORDINGS[level]
    timelines = simulate(job, seed)
    if discrete:
        stages = [stage for timeline in timelines for stage in roles(timeline)]
        return [write(timeline, directory / role, names, recording) for role, timeline in stages]
    return [write(timeline, directory, names, recording) for timeline in timelines]


def _known(what: str, name: str, known: Iterable[str]) -> None:
    if name not in known:
        raise ValueError(f"unknown {what} {name!r}; known: {', '.join(known)}")
