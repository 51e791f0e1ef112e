"""What a command costs: its time from start to end, and the most memory it held."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

MIB = 1 << 20
_LAUNCH = Path(__file__).with_name("launch.py")

Command = Callable[[Path], Sequence[str]]
"""The command line of a tool for a folder that it writes to."""


@dataclass(frozen=True)
class Cost:
    """``seconds``: wall time. ``cpu_seconds``: of all its threads, and of processes that it waited for; hardly changes
    with what else the machine does. ``peak_bytes``: largest resident set of one process."""

    seconds: float
    cpu_seconds: float
    peak_bytes: int


def cost_of(command: Sequence[str]) -> Cost:
    """Run a command to its end. Raises `AssertionError`, with what it wrote to stderr, where it fails."""
    # What is installed has been compiled: a run that may not keep its byte code would compile it every time.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    launched = [sys.executable, "-I", "-S", str(_LAUNCH), *command]
    ran = subprocess.run(launched, capture_output=True, text=True, env=environment, check=True)
    told = json.loads(ran.stdout)
    assert told.pop("code") == 0, f"{' '.join(command)}:\n{ran.stderr[-2_000:]}"
    return Cost(**told)


def compare(tools: Mapping[str, Command], folder: Path, rounds: int) -> dict[str, Cost]:
    """Median times and largest memory of each tool. The tools take turns, so that what else the machine does meets all
    of them; a first round, in which files get into memory and byte code is written, does not count."""
    runs: dict[str, list[Cost]] = {name: [] for name in tools}
    for number in range(rounds + 1):
        for name, command in tools.items():
            cost = cost_of(command(folder / f"{name}-{number}"))
            if number:
                runs[name].append(cost)
    return {
        name: Cost(
            statistics.median(cost.seconds for cost in costs),
            statistics.median(cost.cpu_seconds for cost in costs),
            max(cost.peak_bytes for cost in costs),
        )
        for name, costs in runs.items()
    }
