"""The table of docs/index.md that says what each kind of recording can answer, held against runs on each kind."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from advisor_core.contracts.profile import InputError
from advisor_core.run.pipeline import run
from advisor_core.run.prepared import RunOptions
from advisor_core.sample import write_sample
from tests.conftest import ROOT
from tests.loaders.kineto.test_kineto_host_only import on_the_host
from tests.loaders.test_cluster_analysis import analysis
from tests.robustness.mutations import training
from tests.sample.small import small

ASKED = {
    "Parts of a step": {"HD001", "GHD001", "GHD013"},
    "Why the device idles": {"HD002", "GHD002"},
    "Kernels and fusion": {"PB017", "NS001", "NS004", "GPB001", "GNS001"},
    "Pipes and shapes": {"PB001", "PB002", "SA001", "GSA001"},
    "Who waits for whom": {"CO002", "CO010", "CO015", "GCO005"},
}
"""Rules that judge what a column is about: one of them with an answer is an answer."""
OPTIONS = RunOptions(select=("DQ", "GDQ", "HD", "GHD", *sorted(set().union(*ASKED.values()))))
"""With the rules that these ask about."""
ON_CONDITIONS = ("with ", "by several")
"""How a cell begins that names what has to be recorded beside."""
ELSEWHERE = {"msprof, `PROF_*`", "MindSpore, graph mode"}
"""What tests/loaders and tests/facts run on real recordings."""
SCENARIO = small("healthy-compact")

Make = Callable[[Path], Path]


def job(format_: str, level: str) -> Make:
    return lambda folder: write_sample(folder, scenario=SCENARIO, format=format_, level=level)[0].parent  # type: ignore[arg-type]


def left(name: str, format_: str = "text") -> Make:
    """A rank of which one file is left."""

    def make(folder: Path) -> Path:
        rank = write_sample(folder, scenario=SCENARIO, format=format_)[0]  # type: ignore[arg-type]
        for path in rank.rglob("*"):
            if path.is_file() and path.name != name:
                path.unlink()
        return rank

    return make


def sums(folder: Path) -> Path:
    """Four ranks, of which one communicates less and idles more."""
    rows = [f"2,rank,{rank},10,{20 - late},1,21,{30 + late},60,0" for rank, late in enumerate((0, 9, 0, 0))]
    return analysis(folder, rows)


KINDS: tuple[tuple[str, Make], ...] = (
    ("`*_ascend_pt`, text or DB, level 1", job("text", "level1")),
    ("`*_ascend_pt`, text or DB, level 1", job("db", "level1")),
    ("the same at level 0", job("text", "level0")),
    ("the same at level none", job("text", "level_none")),
    ("one file of it: `trace_view.json`", left("trace_view.json")),
    ("one file of it: `kernel_details.csv`", left("kernel_details.csv")),
    ("`cluster_analysis_output` alone", sums),
    ("`analysis.db` alone", left("analysis.db", "db")),
    ("Kineto, CUDA and ROCm", lambda folder: training().write(folder / "trace.json")),
    ("Kineto without a device", lambda folder: on_the_host().write(folder / "trace.json")),
)


def table() -> dict[str, dict[str, str]]:
    text = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    part = text[text.index("### What each recording can answer") :]
    lines = re.findall(r"^\|(.*)\|$", part[: part.index("\n\n", part.index("| ---"))], re.MULTILINE)
    head, _, *rows = [[cell.strip() for cell in line.split("|")] for line in lines]
    return {row[0]: dict(zip(head[1:], row[1:], strict=True)) for row in rows}


def test_every_row_is_run() -> None:
    assert {name for name, _ in KINDS} | ELSEWHERE == set(table())
    assert all(set(row) == set(ASKED) for row in table().values())


@pytest.mark.parametrize(("name", "make"), KINDS, ids=[f"{n}-{name}" for n, (name, _) in enumerate(KINDS)])
def test_what_the_table_says_can_be_answered_is(tmp_path: Path, name: str, make: Make) -> None:
    try:
        answered = {
            outcome.rule
            for outcome in run([make(tmp_path)], OPTIONS, jobs=1).rules
            if outcome.state in ("fail", "pass")
        }
    except InputError:
        answered = set()
    for column, rules in ASKED.items():
        cell = table()[name][column]
        if not cell.startswith(ON_CONDITIONS):
            assert bool(answered & rules) == (cell != "" and not cell.startswith("no")), (
                column,
                cell,
                answered & rules,
            )
