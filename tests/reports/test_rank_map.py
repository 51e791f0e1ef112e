"""The ranks side by side: a map that is read at any size, a table behind it, and what their differences cost."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import ModuleType

import pytest

from advisor_core.result.balance import Balance, RankBalance, StageBalance
from advisor_core.result.slack import Slack
from advisor_core.text.base import Text
from reports.blocks import Details, Figure, Paragraph, RankMap, Section, Table, Words
from reports.charts.rank_map import draw_rank_map
from reports.charts.svg import MAX_MARKS, WIDTH
from reports.labels import Labels
from reports.outline import Outline
from reports.sections.ranks import ROWS, rank_map, ranks
from reports.sections.slack import slack

EN = Labels("en")
MS = 1_000_000


def job(count: int, stages: int = 1, tensor: int = 1, slow: Mapping[int, float] | None = None) -> Balance:
    """Rank n computes for 10 ms and n us. ``slow``: slowdown by rank, of those that it is told of."""
    return Balance(
        ranks=[
            RankBalance(
                rank=rank,
                stage=rank * stages // count if stages > 1 else None,
                step_ns=20 * MS,
                computing_ns=10 * MS + rank * 1000,
                communicating_ns=MS,
                waiting_ns=None,
                idle_ns=0,
                slowdown=(slow or {}).get(rank),
            )
            for rank in range(count)
        ],
        tensor_ranks=tensor,
    )


def section(example: ModuleType, found: Balance, t: Labels = EN) -> Section:
    told = ranks(Outline(example.training().model_copy(update={"balance": found})), t)
    assert told is not None
    return told


def first_map(told: Section) -> RankMap:
    figure = told.blocks[0]
    assert isinstance(figure, Figure) and isinstance(figure.data, RankMap)
    return figure.data


def words(told: Section) -> str:
    costs = told.blocks[1]
    assert isinstance(costs, Paragraph)
    return "".join(piece.text for piece in costs.content if isinstance(piece, Words))


def drawn(found: Balance, measure: str = "computing_ns") -> str:
    data = rank_map(found, measure, EN)
    assert data is not None
    return str(draw_rank_map(data, "Computing", EN).svg)


@pytest.mark.parametrize(
    ("count", "stages", "tensor", "lines"),
    [(2, 1, 1, 1), (8, 1, 1, 1), (8, 4, 1, 4), (64, 1, 8, 4), (64, 1, 6, 6), (1024, 8, 8, 16), (1024, 1, 1, 16)],
)
def test_a_line_holds_ranks_of_one_stage_that_fit(count: int, stages: int, tensor: int, lines: int) -> None:
    data = rank_map(job(count, stages, tensor), "computing_ns", EN)
    assert data is not None
    assert len(data.lines) == lines
    assert [rank for line in data.lines for rank, _ in line.cells] == list(range(count))
    assert sum(line.apart for line in data.lines) == stages


@pytest.mark.parametrize(
    ("recorded", "label"),
    [([3], "rank 3"), ([4, 5, 6], "ranks 4–6"), ([0, 4], "ranks 0, 4"), ([0, 1, 8, 9], "ranks 0 … 9")],
)
def test_a_line_says_which_ranks_it_holds(recorded: list[int], label: str) -> None:
    found = job(16)
    data = rank_map(found.model_copy(update={"ranks": [found.ranks[rank] for rank in recorded]}), "computing_ns", EN)
    assert data is not None
    assert [line.label for line in data.lines] == [label]


@pytest.mark.parametrize("count", [2, 8, 64])
def test_few_ranks_have_their_digits_in_cells(count: int) -> None:
    svg = drawn(job(count))
    assert svg.count(">10.0</text>") + svg.count(">10.1</text>") == count
    assert len(re.findall("<rect", svg)) == count


def test_many_ranks_are_a_mark_for_each_shade_and_the_longest_are_named() -> None:
    data = rank_map(job(1024), "computing_ns", EN)
    assert data is not None
    chart = draw_rank_map(data, "Computing", EN)
    assert len(re.findall("<(?:rect|path)", chart.svg)) <= 9 < MAX_MARKS
    assert chart.svg.count("M") == 1024
    assert chart.note == "Most: rank 1023: 11.0 ms, rank 1022: 11.0 ms, rank 1021: 11.0 ms."
    assert [entry.label for entry in chart.legend] == ["0.0 ms", "11.0 ms"]


@pytest.mark.parametrize("tensor", [1, 4, 8])
@pytest.mark.parametrize("count", [2, 64, 1024])
def test_no_cell_lies_beyond_the_drawing(count: int, tensor: int) -> None:
    svg = drawn(job(count, tensor=tensor))
    rects = re.findall(r'<rect [^>]*x="([\d.]+)"[^>]*width="([\d.]+)"', svg)
    paths = re.findall(r"M([\d.]+) [\d.]+h([\d.]+)", svg)
    assert max(float(x) + float(width) for x, width in [*rects, *paths]) <= WIDTH


def test_what_is_not_known_is_a_dash_without_a_shade() -> None:
    svg = drawn(job(4, slow={1: 1.25}), "slowdown")
    assert svg.count(">–</text>") == 3 and svg.count('"h hnone"') == 3
    assert svg.count(">1.25</text>") == 1 and svg.count('"h h8"') == 1
    assert rank_map(job(4), "waiting_ns", EN) is None


def test_a_job_of_even_ranks_is_not_dark() -> None:
    svg = drawn(job(2, slow={0: 1.0, 1: 1.004}), "slowdown")
    assert svg.count('"h h0"') == 2


def test_the_slowdown_is_drawn_first_where_ranks_differ(example: ModuleType) -> None:
    assert first_map(section(example, job(2, slow={0: 1.0, 1: 1.2}))).unit == ""
    assert first_map(section(example, job(2, slow={0: 1.0, 1: 1.004}))).unit == "ns"


def test_what_differences_cost_is_told_in_device_time(example: ModuleType) -> None:
    """12 of 60 ms on 4 ranks: 48 ms of devices in each step, 0.8 of a device all day."""
    costs = {"step_ns": 60 * MS, "ideal_ns": 48 * MS, "slowdown": 1.25, "waste_ns": 48 * MS}
    told = words(section(example, job(4, slow={1: 1.25}).model_copy(update=costs)))
    assert "48.0 ms in place of 60.0 ms (slowdown 1.25)" in told
    assert "48.0 ms of device time in each step: 19.2 device hours in a day" in told


def test_why_it_is_not_known_is_told_and_the_longest_stage(example: ModuleType) -> None:
    stages = [StageBalance(stage=0, ranks=[0], slowdown=1.0), StageBalance(stage=1, ranks=[1], slowdown=1.4)]
    found = job(2, 2).model_copy(update={"unknown": Text(en="too few", zh="太少"), "stages": stages})
    told = words(section(example, found))
    assert told.startswith("What it costs that ranks differ is not known: too few. Of the stages")
    assert "stage 1 computes longest: it alone makes a step 1.40 times" in told
    assert "第 1 级" in words(section(example, found, Labels("zh")))


def test_the_table_has_the_first_rows_and_says_so(example: ModuleType) -> None:
    details = section(example, job(64)).blocks[-1]
    assert isinstance(details, Details)
    table = next(block for block in details.blocks if isinstance(block, Table))
    assert len(table.rows) == ROWS
    assert table.rows[0].cells[0] == (Words("63"),)


def test_one_rank_has_no_map(example: ModuleType) -> None:
    assert ranks(Outline(example.launch_blocking()), EN) is None


def test_what_could_take_longer_is_listed_and_nothing_else(example: ModuleType) -> None:
    rows = [
        Slack(kind="operator", name="Held", ns=MS, on_path_ns=MS, least_ns=0, middle_ns=9 * MS),
        Slack(kind="operator", name="Free", ns=MS, on_path_ns=0, least_ns=7 * MS, middle_ns=9 * MS),
        Slack(kind="collective", name="Last", ns=MS, on_path_ns=0, least_ns=None, middle_ns=None),
    ]
    (details,) = slack(Outline(example.training().model_copy(update={"slack": rows})), EN)
    assert isinstance(details, Details) and isinstance(table := details.blocks[0], Table)
    assert [[piece.text for cell in row.cells for piece in cell] for row in table.rows] == [
        ["Free", "1.00 ms", "7.00 ms", "9.00 ms"],
        ["Last", "1.00 ms", "any time", "any time"],
    ]
    assert not list(slack(Outline(example.training().model_copy(update={"slack": rows[:1]})), EN))


@pytest.mark.parametrize("replayed", [2, 4])
def test_what_differences_cost_names_the_ranks_that_it_leaves_out(example: ModuleType, replayed: int) -> None:
    """Even ranks of which the others are not replayed may all be waiting for one of those."""
    found = job(4)
    own = [rank.model_copy(update={"on_path_ns": 0 if rank.rank < replayed else None}) for rank in found.ranks]
    costs = {"step_ns": 20 * MS, "ideal_ns": 20 * MS, "slowdown": 1.0, "waste_ns": 0}
    said = words(section(example, found.model_copy(update={"ranks": own, **costs})))
    assert "take about equally long" in said
    assert ("told of the 2 ranks of 4 that are replayed" in said) == (replayed < 4)


@pytest.mark.parametrize("absent", [{}, {5: 95 * MS}])
def test_that_ranks_are_even_is_not_told_of_those_that_they_wait_for(
    example: ModuleType, absent: dict[int, int]
) -> None:
    """How many ranks the job has is not recorded, and a rank that was not recorded holds up both."""
    costs = {"step_ns": 20 * MS, "ideal_ns": 20 * MS, "slowdown": 1.0, "waste_ns": 0}
    found = job(2).model_copy(update=costs)
    own = [rank.model_copy(update={"on_path_ns": 0}) for rank in found.ranks]
    result = example.training()
    profile = result.profile.model_copy(update={"world_size": None})
    plan = result.plan.model_copy(update={"absent": absent})
    whole = {"balance": found.model_copy(update={"ranks": own}), "profile": profile, "plan": plan}
    told = ranks(Outline(result.model_copy(update=whole)), EN)
    assert told is not None
    assert ("2 ranks that are replayed, which wait for others" in words(told)) == bool(absent)
