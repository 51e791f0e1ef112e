"""Flame graphs as drawings, tables and folded stacks."""

from __future__ import annotations

import re
from types import ModuleType
from typing import Any

import pytest
from pydantic import ValidationError

from advisor_core.api.renderers import Flame, FlameView, RunResult
from advisor_core.text.base import Text
from reports.charts.draw import draw
from reports.folded import FoldedRenderer
from reports.labels import Labels
from reports.view_tables import view_tables

EN, ZH = Labels("en"), Labels("zh")
FRAMES: list[tuple[str, Any]] = [
    ("851", "thread"),
    ("a/main.py(9): main", "python"),
    ("b/model.py(5): forward", "python"),
    ("nn.Module: Linear", "module"),
    ("aten::mm; out", "operator"),
    ("", "left_out"),
]
NODES = [(-1, 0, 1000), (0, 1, 990), (1, 2, 985), (2, 3, 900), (3, 4, 600), (3, 5, 100)]


def view(nodes: list[tuple[int, int, int]] = NODES, rank: int = 3) -> FlameView:
    title = Text(en="stacks", zh="栈")
    data = Flame(of="host", frames=FRAMES, nodes=nodes)
    return FlameView(id=f"host-stacks-rank{rank}", title=title, unit="ns", rank=rank, data=data)


def test_boxes_are_as_wide_as_their_time_and_below_their_callers() -> None:
    svg = str(draw(view(), EN).svg)
    boxes = {
        tip: (float(x), float(y), float(wide))
        for x, y, wide, tip in re.findall(
            r'<rect class="fl[^>]* x="([\d.]+)" y="([\d.]+)" width="([\d.]+)"[^>]*><title>([^<]*)', svg
        )
    }
    thread = next(place for tip, place in boxes.items() if tip.startswith("thread 851"))
    chain = next(place for tip, place in boxes.items() if tip.startswith("b/model.py(5): forward"))
    product = next(place for tip, place in boxes.items() if tip.startswith("aten::mm"))
    assert thread[2] == pytest.approx(940) and product[2] == pytest.approx(0.6 * 940, abs=0.1)
    assert [place[1] / 18 for place in (thread, chain, product)] == [0, 1, 3], "the two Python frames share a box"
    assert "forward model.py(5) (+1)" in svg and ">Linear<" in svg


@pytest.mark.parametrize("labels", [EN, ZH])
def test_a_table_names_the_stacks_with_most_time_of_their_own(labels: Labels) -> None:
    (table,) = view_tables(view(), labels)
    text = str(table)
    assert text.index("600 ns") < text.index("200 ns") < text.index("100 ns")
    assert labels("flame.left_out") in text


@pytest.mark.parametrize(
    "nodes", [[(0, 0, 5)], [(-1, 0, 5), (0, 1, 6)], [(-1, 9, 5)], [(-1, 0, 5), (0, 1, 3), (0, 2, 3)]]
)
def test_what_is_no_tree_of_times_is_refused(nodes: list[tuple[int, int, int]]) -> None:
    with pytest.raises(ValidationError):
        view(nodes)


def test_folded_stacks_add_up_and_are_one_line_each(example: ModuleType) -> None:
    result: RunResult = example.training()
    result = result.model_copy(update={"views": [view(), view([(-1, 2, 70)], rank=4)]})
    lines = FoldedRenderer().render(result, "en").splitlines()
    assert lines[-1] == "rank 4;host;b/model.py(5): forward 70"
    sums: dict[str, int] = {}
    for line in lines:
        stack, _, number = line.rpartition(" ")
        assert all(frame.strip() for frame in stack.split(";"))
        sums[stack.split(";")[0]] = sums.get(stack.split(";")[0], 0) + int(number)
    assert sums == {"rank 3": 1000, "rank 4": 70}
    assert (
        "rank 3;host;thread 851;a/main.py(9): main;b/model.py(5): forward;nn.Module: Linear;aten::mm, out 600" in lines
    )
