"""How much time and memory ``advisor run`` takes, beside the vendor's advisor where it is installed.

Not part of the test run: ``make benchmark-size``. A time says more about the machine than about the tool, so what
counts are ratios of commands that took turns in one run.

``NPU_ADVISOR_VENDOR``: the vendor's ``msprof-analyze``, in an environment of its own; otherwise it is looked for on the
PATH. ``NPU_ADVISOR_BENCHMARK_SMALL`` and ``NPU_ADVISOR_BENCHMARK_LARGE``: profiles to measure on instead of written
ones, of the large ones the smallest first, separated as in PATH; two of them show how time grows.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from advisor_core.sample import write_sample
from tests.benchmarks.conftest import Say
from tests.benchmarks.costs import MIB, Command, Cost, compare
from tests.benchmarks.material import size, write_gpu_trace, write_steps

STEPS_BESIDE_A_GPU = 16
"""Of the Ascend profile that traces of a GPU are measured beside: about 40 MB."""

STEPS = (40, 104)
"""Of the written profiles: a trace of 100 MB, and 2.6 times as much."""

ROUNDS_SMALL, ROUNDS_LARGE = 7, 3


def advisor(*arguments: str) -> list[str]:
    """Our command, as installed beside the Python that runs this."""
    return [str(Path(sys.executable).with_name("advisor")), *arguments]


def given(which: str) -> list[Path]:
    """The profiles that the environment names."""
    return [Path(name) for name in os.environ.get(f"NPU_ADVISOR_BENCHMARK_{which}", "").split(os.pathsep) if name]


def tools(profile: Path) -> dict[str, Command]:
    """What is compared on a profile: we, and the vendor's advisor if there is one."""
    found: dict[str, Command] = {"advisor": _run(profile)}
    vendor = os.environ.get("NPU_ADVISOR_VENDOR") or shutil.which("msprof-analyze")
    if vendor:
        found["vendor"] = lambda out: [vendor, "advisor", "all", "-d", str(profile), "-o", str(out)]
    return found


def told(what: str, costs: Mapping[str, Cost]) -> str:
    """One line: each tool's time and memory, and how we compare."""
    parts = [
        f"{name} {cost.seconds:.2f} s ({cost.cpu_seconds:.2f} s of CPU), {cost.peak_bytes / MIB:.0f} MiB"
        for name, cost in costs.items()
    ]
    if "vendor" in costs:
        ours, theirs = costs["advisor"], costs["vendor"]
        faster, lighter = theirs.seconds / ours.seconds, ours.peak_bytes / theirs.peak_bytes
        cpu = theirs.cpu_seconds / ours.cpu_seconds
        parts.append(f"{faster:.1f} times as fast ({cpu:.1f} by CPU) with {lighter:.2f} of the memory")
    return f"{what}: {'; '.join(parts)}"


def test_help(say: Say, tmp_path: Path) -> None:
    cost = compare({"advisor": lambda out: advisor("--help")}, tmp_path, ROUNDS_SMALL)
    say("")
    say(told("advisor --help", cost))


def test_small(say: Say, tmp_path: Path) -> None:
    """The embedded sample, two ranks: most of it is what a run costs before it has read anything."""
    (profile,) = given("SMALL") or [tmp_path / "sample"]
    if not profile.exists():
        write_sample(profile)
    say(told(f"{profile.name}, {size(profile) / 1e6:.0f} MB", compare(tools(profile), tmp_path, ROUNDS_SMALL)))


def test_large(say: Say, tmp_path: Path) -> None:
    """Time grows no faster than the input."""
    profiles = given("LARGE") or [write_steps(tmp_path / f"{steps} steps", steps) for steps in STEPS]
    seconds = []
    for profile in profiles:
        costs = compare(tools(profile), tmp_path, ROUNDS_LARGE)
        seconds.append(costs["advisor"].seconds)
        say(told(f"{profile.parent.name}, {size(profile) / 1e6:.0f} MB", costs))
    bytes_grow = size(profiles[-1]) / size(profiles[0])
    say(f"{bytes_grow:.2f} times the input takes {seconds[-1] / seconds[0]:.2f} times as long")
    assert seconds[-1] / seconds[0] <= bytes_grow or len(profiles) < 2


def test_a_trace_of_a_gpu(say: Say, tmp_path: Path) -> None:
    """Beside an Ascend text export of the same size, plain and compressed: what one costs over the other."""
    ascend = write_steps(tmp_path / "ascend", STEPS_BESIDE_A_GPU)
    profiles = {"ascend": ascend}
    for name, file in (("gpu", "trace.json"), ("gpu, compressed", "trace.json.gz")):
        profiles[name] = write_gpu_trace(tmp_path / file, size(ascend))
    commands = {name: _run(profile) for name, profile in profiles.items()}
    costs = compare(commands, tmp_path / "reports", ROUNDS_LARGE)
    say(told(f"{size(ascend) / 1e6:.0f} MB of each", costs))
    for name in list(profiles)[1:]:
        cpu = costs[name].cpu_seconds / costs["ascend"].cpu_seconds
        memory = costs[name].peak_bytes / costs["ascend"].peak_bytes
        say(f"{name}: {cpu:.2f} of the CPU time and {memory:.2f} of the memory of the Ascend export")


def test_again(say: Say, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same profile in another language and with another threshold, beside a run that keeps nothing."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for profile in (tmp_path / "sample", write_steps(tmp_path / f"{STEPS[0]} steps", STEPS[0])):
        if not profile.exists():
            write_sample(profile)
        then = time.time() - 60
        for file in profile.rglob("*"):
            os.utime(file, (then, then))
        commands = {
            "anew": _run(profile),
            "another language": _run(profile, "--lang", "zh", cache=True),
            "another threshold": _run(profile, "--set", "HD001.idle_share=30%", cache=True),
        }
        costs = compare(commands, tmp_path / f"reports of {profile.parent.name}", ROUNDS_LARGE)
        for name, cost in costs.items():
            say(f"{profile.name}, {size(profile) / 1e6:.0f} MB, {name}: {cost.cpu_seconds:.2f} s of CPU")


def _run(profile: Path, *options: str, cache: bool = False) -> Command:
    """Without the cache, as nobody measures what a tool kept."""
    options = (*options, *(() if cache else ("--no-cache",)))
    return lambda out: advisor("run", str(profile), "-o", str(out), *options)
