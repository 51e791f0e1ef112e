"""Drawings of two runs that divide a whole by the same rows."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from pydantic import ValidationError

from advisor_core.compare.drawings import drawn_differences
from advisor_core.compare.match import matched
from advisor_core.result.run import RunResult
from advisor_core.result.view import BarRow, Bars, BarsView, Heatmap, HeatmapView, View
from advisor_core.text.base import Text
from tests.compare.results import result, step

TITLE = Text(en="By module", zh="按模块")


def modules(rank: int, *rows: tuple[int, str, int]) -> View:
    """Depth, name and time of each row; a column of the forward pass, which has half of it, stands before the sum."""
    return HeatmapView(
        id=f"modules-rank{rank}",
        purpose="layers",
        title=TITLE,
        unit="ns",
        rank=rank,
        data=Heatmap(
            rows=[name for _, name, _ in rows],
            columns=["forward", "sum"],
            values=[[ns // 2, ns] for _, _, ns in rows],
            total=1,
            depths=[depth for depth, _, _ in rows],
        ),
    )


def drawn(views: Mapping[int, View]) -> RunResult:
    made = result([step({"compute": 100}, rank) for rank in views])
    return made.model_copy(update={"views": list(views.values())})


def test_rows_are_told_apart_by_what_contains_them() -> None:
    before = modules(0, (0, "Model", 90), (1, "Encoder", 60), (2, "Linear", 60), (1, "Head", 30), (2, "Linear", 30))
    after = modules(
        0, (0, "Model", 80), (1, "Head", 35), (2, "Linear", 35), (1, "Encoder", 45), (2, "Linear", 40), (2, "Norm", 5)
    )
    (found,) = drawn_differences(matched(drawn({0: before}), drawn({0: after})), "layers")
    assert (found.kind, found.title, found.unit) == ("modules", TITLE, "ns")
    assert [(part.depth, part.label, part.before, part.after) for part in found.parts] == [
        (0, "Model", 90, 80),
        (1, "Encoder", 60, 45),
        (2, "Linear", 60, 40),
        (2, "Norm", None, 5),
        (1, "Head", 30, 35),
        (2, "Linear", 30, 35),
    ]


def test_values_are_means_of_the_ranks_and_rows_that_all_have() -> None:
    before = {0: modules(0, (0, "A", 10), (0, "B", 6)), 1: modules(1, (0, "A", 30))}
    after = {0: modules(0, (0, "A", 20)), 1: modules(1, (0, "A", 20))}
    (found,) = drawn_differences(matched(drawn(before), drawn(after)), "layers")
    assert [(part.label, part.before, part.after) for part in found.parts] == [("A", 20, 20)]


def test_other_drawings_are_not_compared() -> None:
    own = modules(0, (0, "A", 10))
    assert isinstance(own, HeatmapView)
    no_whole = own.model_copy(update={"data": own.data.model_copy(update={"total": None})})
    assert not drawn_differences(matched(drawn({0: no_whole}), drawn({0: no_whole})), "layers")
    assert not drawn_differences(matched(drawn({0: own}), drawn({0: own})), "memory_peak")
    bars = BarsView(
        id="memory-peak-rank0",
        purpose="memory_peak",
        title=TITLE,
        unit="MiB",
        rank=0,
        data=Bars(rows=[BarRow(label="aten::mm", value=1.5), BarRow(label="aten::mm", value=2.5)]),
    )
    (found,) = drawn_differences(matched(drawn({0: bars}), drawn({0: bars})), "memory_peak")
    assert [(part.label, part.before) for part in found.parts] == [("aten::mm", 4)]


@pytest.mark.parametrize("change", [{"total": 2}, {"depths": [0, 0]}, {"total": -1}], ids=str)
def test_a_heatmap_says_only_what_it_has(change: dict[str, object]) -> None:
    whole = {"rows": ["A"], "columns": ["forward", "sum"], "values": [[1, 2]], "total": 1, "depths": [0]}
    assert Heatmap.model_validate(whole)
    with pytest.raises(ValidationError):
        Heatmap.model_validate({**whole, **change})
