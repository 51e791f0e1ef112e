"""Measures the rows of the table of goals in docs/speed.md and prints it: ``make benchmark``.

Each row is the least of some runs of the command: seconds of CPU of all its processes, wall time, and the largest
memory of one process. The rows take turns, so that what else the machine does meets all of them; a first round, in
which byte code is compiled and the cache is filled, does not count. ``NPU_ADVISOR_PROFILES``: a folder of real
recordings, without which their rows are left out.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from advisor_core.sample import write_sample
from tests.advisors.build import ROOT
from tests.benchmarks.costs import MIB, Cost, cost_of
from tests.benchmarks.material import size, write_steps

ALEXNET, GPT3, BERT = (
    "ascend/alexnet-ddp-text-level1",
    "ascend/gpt3-pp2-2-of-16-ranks",
    "kineto/bert-small-h100.json.gz",
)
STEPS_OF_A_LARGE_TRACE = 40
"""Of the embedded sample: about 100 MB."""

FEW, SOME = 3, 5
"""Rounds of a row of more than some ten seconds, and of any other."""

RANKS = 8
"""Of the job of which the cost of a rank more is taken."""


@dataclass(frozen=True)
class Row:
    """A row of the table: what ``advisor`` is called with, ``goal`` as the issue set it, and in how many rounds.
    ``apart``: how many ranks more it has than the row ``less``, which is taken away from it."""

    case: str
    arguments: tuple[str, ...]
    goal: str = ""
    rounds: int = SOME
    less: str = ""
    apart: int = 1


def rows(folder: Path) -> Iterator[Row]:
    """The rows in the order of the table, their profiles written below ``folder``."""
    yield Row("`advisor --help`", ("--help",), "0.1 s")
    yield Row("`advisor rules show HD001`", ("rules", "show", "HD001"), "0.4 s")
    yield Row("`advisor rules check rulesets/ascend`", ("rules", "check", str(ROOT / "rulesets" / "ascend")), "0.4 s")
    if recordings := os.environ.get("NPU_ADVISOR_PROFILES"):
        alexnet, gpt3, bert = (_copied(Path(recordings) / name, folder) for name in (ALEXNET, GPT3, BERT))
        told = f"AlexNet, two small ranks, {_megabytes(alexnet)}"
        yield Row(f"{told}, one process", _run(alexnet), "1.2 s")
        yield Row(f"{told}, two processes", _run(alexnet, "2"))
        again = "AlexNet again"
        yield Row(f"{again}, in another format too", _run(alexnet, "1", "--format", "html,md", cache=True), "0.8 s")
        yield Row(f"{again}, in Chinese", _run(alexnet, "1", "--lang", "zh", cache=True), "0.8 s")
        yield Row(
            f"{again}, another threshold", _run(alexnet, "1", "--set", "HD001.idle_share=21%", cache=True), "0.8 s"
        )
        yield Row(f"GPT-3, 2 of 16 ranks, {_megabytes(gpt3)}, one process", _run(gpt3), "1.2 s")
        yield Row(f"BERT on one GPU, {_megabytes(bert)}, one process", _run(bert))
    single, sample, eight = folder / "single", folder / "sample", folder / "eight"
    write_sample(single, scenario="healthy-training-single")
    yield Row(f"one small rank (`healthy-training-single`, {_megabytes(single)})", _run(single))
    write_sample(sample)
    yield Row(f"the embedded sample, two ranks, {_megabytes(sample)}, one process", _run(sample), rounds=FEW)
    yield Row("the same, two processes", _run(sample, "2"), rounds=FEW)
    write_sample(eight, scenario="healthy-compact-eight")
    one = folder / "one of eight"
    shutil.copytree(next(path for path in sorted(eight.iterdir()) if path.is_dir()), one / "rank_ascend_pt")
    whole = f"eight ranks (`healthy-compact-eight`, {_megabytes(eight)}), one process"
    yield Row(whole, _run(eight), rounds=FEW)
    yield Row("one of them alone", _run(one), rounds=FEW)
    more = "a rank more in a job: eight less one, by seven"
    yield Row(more, (), "0.15 s", 0, less="one of them alone", apart=RANKS - 1)
    large = write_steps(folder / "large", STEPS_OF_A_LARGE_TRACE)
    yield Row(f"a trace of {_megabytes(large)}, one process", _run(large), "2.4 s, 300 MiB", FEW - 1)


def _run(profile: Path, jobs: str = "1", *options: str, cache: bool = False) -> tuple[str, ...]:
    return ("run", str(profile), "-q", "--jobs", jobs, *options, *(() if cache else ("--no-cache",)))


def _megabytes(profile: Path) -> str:
    return f"{size(profile) / 1e6:.2g} MB" if size(profile) < 1e6 else f"{size(profile) / 1e6:.0f} MB"


def _copied(profile: Path, folder: Path) -> Path:
    """A copy whose files are old enough to be kept from one run to the next."""
    copy = folder / profile.name
    if profile.is_dir():
        shutil.copytree(profile, copy)
    else:
        shutil.copy(profile, copy)
    then = time.time() - 60
    for path in (copy, *copy.rglob("*")):
        os.utime(path, (then, then))
    return copy


def measured(table: Sequence[Row], folder: Path) -> dict[str, Cost]:
    """The least cost of each row, by its case; seconds of CPU and of wall time each for itself."""
    found: dict[str, Cost] = {}
    for turn in range(1 + max(row.rounds for row in table)):
        for row in (row for row in table if row.arguments and turn <= row.rounds):
            _say(f"round {turn} of {row.rounds}: {row.case}")
            out = ("-o", str(folder / "report")) if row.arguments[0] == "run" else ()
            cost = cost_of([sys.executable, "-m", "advisor_core", *row.arguments, *out])
            before = found.get(row.case, cost) if turn > 1 else cost
            found[row.case] = Cost(
                min(cost.seconds, before.seconds),
                min(cost.cpu_seconds, before.cpu_seconds),
                max(cost.peak_bytes, before.peak_bytes),
            )
    return found


def line(row: Row, table: Sequence[Row], costs: dict[str, Cost]) -> str:
    """A row of the table."""
    if not row.less:
        cost = costs[row.case]
        peak = f"{cost.peak_bytes / MIB:.0f} MiB"
        return f"| {row.case} | {cost.cpu_seconds:.2f} s | {cost.seconds:.2f} s | {peak} | {row.goal} |"
    cases = [other.case for other in table]
    whole, part = costs[cases[cases.index(row.less) - 1]], costs[row.less]
    cpu, wall = whole.cpu_seconds - part.cpu_seconds, whole.seconds - part.seconds
    return f"| {row.case} | {cpu / row.apart:.2f} s | {wall / row.apart:.2f} s | | {row.goal} |"


def _say(text: str) -> None:
    sys.stderr.write(f"\r\033[K{text}")
    sys.stderr.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the table of docs/speed.md.")
    parser.add_argument("--rounds", type=int, help="of every row, in place of its own number")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
        table = list(rows(folder))
        if wanted.rounds:
            table = [replace(row, rounds=min(row.rounds, wanted.rounds)) for row in table]
        costs = measured(table, folder)
    _say("")
    sys.stdout.write(
        f"least of {FEW - 1} to {SOME} runs; load {os.getloadavg()[0]:.1f} at the end; {os.cpu_count()} cores; "
    )
    sys.stdout.write(
        f"CPython {sys.version.split()[0]}\n\n| case | CPU | wall | peak memory | goal |\n|---|---|---|---|---|\n"
    )
    sys.stdout.write("\n".join(line(row, table, costs) for row in table) + "\n")


if __name__ == "__main__":
    main()
