"""Profiles to measure on: the embedded sample, and one rank of it over as many steps as it takes to be large."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from advisor_core.sample import SCENARIOS
from advisor_core.sample.export.generation import NAMES
from advisor_core.sample.export.recording import RECORDINGS
from advisor_core.sample.job import simulate
from advisor_core.sample.text import write_text

SCENARIO = "transformer-training"


def write_steps(directory: Path, steps: int) -> Path:
    """Write rank 0 of the embedded sample with so many steps below ``directory``; about 2.5 MB of trace a step."""
    scenario = SCENARIOS[SCENARIO]
    job = replace(scenario.job, training=replace(scenario.job.training, steps=steps))
    timeline = simulate(replace(scenario, job=job), seed=0)[0]
    return write_text(timeline, directory, NAMES[scenario.headers], RECORDINGS["level1"])


def size(profile: Path) -> int:
    """Bytes of all files of a profile."""
    return sum(path.stat().st_size for path in profile.rglob("*") if path.is_file())
