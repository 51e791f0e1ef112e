"""Ranks over time as a drawing and tables, and what is said of their clocks."""

from __future__ import annotations

import re
from types import ModuleType

import pytest

from advisor_core.result.iteration import Iteration, RoleGap, RoleSpan
from advisor_core.result.side_by_side import Pass, PipelinePasses, RankLane, SideBySide, StagePasses
from reports.blocks import Figure, Section, Times
from reports.charts.svg import MAX_MARKS, WIDTH
from reports.charts.times import draw_times
from reports.labels import Labels
from reports.outline import Outline
from reports.sections.side_by_side import LANES, pass_times, rank_times, side_by_side

EN = Labels("en")
US = 1000


def beside(lanes: int, parts: int = 240, clocks: str = "calls", step: int | None = 11) -> SideBySide:
    """Ranks that compute and wait in turn."""
    keys = ("compute", "communication/wait", "idle/host")
    return SideBySide.model_validate(
        {
            "step": step,
            "clocks": clocks,
            "ranks": 64,
            "lanes": [
                RankLane(
                    rank=rank * 8,
                    reasons=["path", "slowest"] if rank == 0 else [],
                    ahead_ns=rank * 7 * US,
                    start_ns=rank * US,
                    end_ns=(rank + parts) * US,
                    intervals=[((rank + n) * US, (rank + n + 1) * US, keys[n % 3]) for n in range(parts)],
                )
                for rank in range(lanes)
            ],
        }
    )


def passes(micro_batches: int | None = 2) -> PipelinePasses:
    stages = [
        StagePasses(
            stage=stage,
            rank=stage,
            passes=[
                Pass(
                    backward=number > 1,
                    number=number % 2 + 1,
                    start_ns=number * 100 * US,
                    end_ns=number * 100 * US + 90,
                )
                for number in range(4)
            ],
            between_ns=7 * US,
        )
        for stage in range(2)
    ]
    return PipelinePasses(step=11, clocks="none", stages=stages, of_stages=4, micro_batches=micro_batches)


def section(example: ModuleType, t: Labels = EN, **found: object) -> Section:
    alone = {"side_by_side": [], "pipelines": [], "iteration": None, **found}
    (told,) = side_by_side(Outline(example.training().model_copy(update=alone)), t)
    return told


@pytest.mark.parametrize("lanes", [2, 8])
def test_hundreds_of_spans_are_few_marks_within_the_drawing(lanes: int) -> None:
    chart = draw_times(rank_times(beside(lanes), EN), "Ranks", EN)
    assert len(re.findall("<(?:rect|path)", chart.svg)) <= 4 * lanes < MAX_MARKS
    ends = [float(x) + float(wide) for x, wide in re.findall(r"M([\d.]+) [\d.]+h([\d.]+)", chart.svg)]
    assert len(ends) == 240 * lanes and max(ends) <= WIDTH + 0.1
    assert len(chart.legend) == 3


def test_the_picture_says_how_clocks_were_set(example: ModuleType) -> None:
    told = str(section(example, side_by_side=[beside(4)]).blocks)
    assert "the largest shift is 21.0 µs" in told and "4 of 64 ranks side by side, step 11" in told
    assert "awaited most, longest step" in told
    unset = str(section(example, side_by_side=[beside(4, clocks="none", step=None)]).blocks)
    assert "The clocks are not set" in unset and "the whole recording" in unset
    assert "时钟未对齐" in str(section(example, Labels("zh"), side_by_side=[beside(4, clocks="none")]).blocks)


def test_passes_have_their_numbers_where_these_are_known(example: ModuleType) -> None:
    wide = passes().model_copy(update={"stages": [
        one.model_copy(update={"passes": [p.model_copy(update={"end_ns": p.start_ns + 90 * US}) for p in one.passes]})
        for one in passes().stages
    ]})  # fmt: skip
    numbered = draw_times(pass_times(wide, EN), "Passes", EN).svg
    assert numbered.count(">2</text>") == 4
    unknown = wide.model_copy(update={"micro_batches": None})
    assert ">2</text>" not in draw_times(pass_times(unknown, EN), "Passes", EN).svg
    told = str(section(example, pipelines=[unknown]).blocks)
    assert "The stages differ in the number of their passes" in told and "2 of 4 stages were read" in told
    assert "2 forward, 2 backward" in told


def test_nothing_recorded_no_section(example: ModuleType) -> None:
    assert list(side_by_side(Outline(example.launch_blocking()), EN)) == []


def test_roles_are_drawn_on_one_axis_with_their_gaps(example: ModuleType) -> None:
    spans = [
        RoleSpan(role=role, rank=rank, step=1, start_ns=start, end_ns=start + 100 * US)
        for role, start in (("rollout", 0), ("update", 150 * US))
        for rank in range(16)
    ]
    gap = RoleGap(after="rollout", before="update", ns=50 * US, mean_ns=50 * US, last_rank=11)
    told = section(example, iteration=Iteration(spans=spans, gaps=[gap]))
    figure = told.blocks[0]
    assert isinstance(figure, Figure) and isinstance(figure.data, Times)
    assert len(figure.data.rows) == LANES and "rank 11" in [row.name for row in figure.data.rows]
    assert "Roles over time on 8 of 16 ranks" in str(told.blocks) and "50.0 µs" in str(told.blocks)
    apart = section(example, iteration=Iteration(apart_ns=7_200_000_000_000))
    assert "7,200 s apart" in str(apart.blocks) and not any(isinstance(block, Figure) for block in apart.blocks)
