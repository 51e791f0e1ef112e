"""The spread over ranks as a drawing and a table."""

from __future__ import annotations

import re
from types import ModuleType

import pytest

from advisor_core.result.spread import RankTime, Spread
from reports.blocks import Details, Figure, Table
from reports.charts.boxes import draw_boxes
from reports.charts.svg import WIDTH
from reports.labels import Labels
from reports.outline import Outline
from reports.sections.spread import boxes, spread

EN = Labels("en")
MS = 1_000_000


def one(kind: str = "part", name: str = "compute", outliers: int = 1, ranks: int = 8) -> Spread:
    return Spread.model_validate(
        {
            "kind": kind,
            "name": name,
            "members": 8 if kind == "collective" else None,
            "ranks": ranks,
            "least": RankTime(rank=2, ns=9 * MS),
            "quartiles": (10 * MS, 11 * MS, 12 * MS) if ranks >= 4 else None,
            "most": RankTime(rank=5, ns=20 * MS),
            "outliers": [RankTime(rank=5 + number, ns=20 * MS) for number in range(outliers)],
        }
    )


@pytest.mark.parametrize(("ranks", "outliers"), [(2, 0), (8, 1), (1024, 16)])
def test_a_box_has_its_ends_and_outliers_within_the_drawing(ranks: int, outliers: int) -> None:
    chart = draw_boxes(boxes([one(ranks=ranks, outliers=outliers)], EN), "Parts", EN)
    assert chart.svg.count('class="box"') == (ranks >= 4)
    places = [float(x) + 4 for x in re.findall(r'cx="([\d.]+)"', chart.svg)]
    assert len(places) == outliers and max(places, default=0.0) <= WIDTH
    assert ("Outliers" in [entry.label for entry in chart.legend]) == (outliers > 0)


def test_the_parts_are_shown_and_operators_stand_behind(example: ModuleType) -> None:
    found = [one(outliers=5), one("operator", "MatMul"), one("collective", "allReduce")]
    result = example.training().model_copy(update={"spread": found})
    (section,) = spread(Outline(result), EN)
    assert sum(isinstance(block, Figure) for block in section.blocks) == 1
    (table,) = [block for block in section.blocks if isinstance(block, Table)]
    assert "2 more" in str(table.rows[0].cells[-1]) and "rank 5 20.0 ms" in str(table.rows[0].cells[-1])
    behind = [block for block in section.blocks if isinstance(block, Details)]
    assert len(behind) == 2 and "allReduce, 8 ranks" in str(behind[1])
    (chinese,) = spread(Outline(result), Labels("zh"))
    assert "allReduce（8 个 rank）" in str(chinese.blocks)


def test_no_ranks_to_compare_no_section(example: ModuleType) -> None:
    assert list(spread(Outline(example.launch_blocking().model_copy(update={"spread": []})), EN)) == []
