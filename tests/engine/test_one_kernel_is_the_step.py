"""A recording in which one kernel takes nearly all of the step has a finding on it, whatever its name, on devices of
every vendor; and so has every operator of the real recordings that takes a large part far below its bound."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from advisor_core.result.run import RunResult
from advisor_core.run.pipeline import run
from advisor_core.run.prepared import RunOptions
from advisor_core.testing import measure
from advisors.pipeline_bound.roofline import roofline
from tests.advisors.real import real_job
from tests.loaders.kineto.build import Recording
from tests.once import ResultOf

FINDS = {"PB016", "PB017", "GPB001"}
SHARE = 0.96


def found(result: RunResult) -> set[str]:
    """The operators that findings of these rules name."""
    return {str(finding.observation["operator"]) for finding in result.findings if finding.rule in FINDS}


def stretched(source: Path, target: Path, type_: str) -> None:
    """A copy of the kernels of a rank in which the longest of a type takes SHARE of the time, and all behind it comes
    later by what it takes more."""
    with source.open(newline="", encoding="utf-8") as file:
        head, *rows = csv.reader(file)
    start, length, kind = (head.index(name) for name in ("Start Time(us)", "Duration(us)", "Type"))
    chosen = max((row for row in rows if row[kind] == type_), key=lambda row: float(row[length]))
    ends = [float(row[start]) + float(row[length]) for row in rows]
    wall = max(ends) - min(float(row[start]) for row in rows)
    begin, more = float(chosen[start]), SHARE / (1 - SHARE) * wall
    for row in rows:
        if float(row[start]) > begin:
            row[start] = f"{float(row[start]) + more:.3f}"
    chosen[length] = f"{float(chosen[length]) + more:.3f}"
    target.parent.mkdir(parents=True)
    with target.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([head, *rows])


@pytest.mark.parametrize("type_", ["MatMul", "ApplyAdamW", "Transpose", "NonZero"])
def test_a_real_step_with_one_kernel_made_long(profiles: Path, tmp_path: Path, type_: str) -> None:
    kernels = Path("ASCEND_PROFILER_OUTPUT") / "kernel_details.csv"
    target = tmp_path / "long_ascend_pt"
    stretched(profiles / "ascend" / "gpt3-kernel-details-only_ascend_pt" / kernels, target / kernels, type_)
    result = run([target], RunOptions(), jobs=1)
    assert type_ in found(result)


@pytest.mark.parametrize(
    ("operator", "named"),
    [("aten::mm", "aten::mm"), ("aten::sort", "aten::sort"), ("mylib::mystery", "some_kernel")],
)
def test_a_gpu_on_which_one_kernel_is_the_step(tmp_path: Path, operator: str, named: str) -> None:
    """An operator that no class is known of is told by the name of its kernel."""
    made = Recording()
    for number, start in enumerate((0.0, 200_000.0, 400_000.0)):
        made.step(number, start, 199_000)
        made.launch("some_kernel", start + 10, start + 30, 192_000, 10 * number + 1, operator)
        made.launch("elementwise_kernel<MulFunctor>", start + 100, start + 192_040, 5_000, 10 * number + 2)
    result = run([made.write(tmp_path / "trace.json")], RunOptions(), jobs=1)
    (finding,) = (finding for finding in result.findings if finding.rule == "GPB001")
    assert finding.observation["operator"] == named
    assert finding.observation["share_of_step"] == pytest.approx(SHARE, abs=0.005)


@pytest.mark.parametrize("name", ["alexnet-ddp-text-level1", "gpt3-kernel-details-only_ascend_pt"])
def test_operators_of_real_recordings_far_below_their_bound_have_a_finding(
    result_of: ResultOf, profiles: Path, name: str
) -> None:
    """Those that the measurement shows are those that the report names, and no others."""
    bad: set[str] = set()
    for facts in real_job(profiles, name).values():
        frame = measure(roofline, facts, bandwidth=8e11).frame
        slow = (frame["reached"] < 0.2) & (frame["share_of_step"] >= 0.2) & (frame["mean_ns"] >= 50_000)
        most = (frame["share_of_step"] >= 0.5) & (frame["reached"] < 0.5) | (frame["share_of_step"] >= 0.9)
        bad |= set(frame.loc[slow | most, "operator"])
    assert found(result_of(profiles / "ascend" / name)) == bad
