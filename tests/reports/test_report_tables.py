"""Evidence as tables, charts as marks: values in readable units, aggregation that keeps what it stands for."""

from __future__ import annotations

import re
from types import ModuleType

import pytest
from pydantic import TypeAdapter, ValidationError

from advisor_core.result.evidence import Evidence, Source
from advisor_core.result.view import CurveView, HeatmapView, TableView, View
from advisor_core.text.base import Text
from reports import tables
from reports.blocks import Code, line
from reports.charts.curve import CURVE_HEIGHT
from reports.charts.draw import draw
from reports.charts.heatmap import _shrink
from reports.charts.keys import Keys
from reports.charts.strip import _shares
from reports.charts.svg import GUTTER, MAX_MARKS, WIDTH
from reports.labels import Labels
from reports.view_tables import written
from tests.report_fixtures import HOSTILE

EN = Labels("en")
TITLE = Text(en="idle gap", zh="空闲")


def start_of_step(example: ModuleType, rank: int, number: int) -> int:
    return next(s.start_ns for s in example.training().profile.steps if (s.rank, s.step) == (rank, number))


def test_moments_are_told_from_the_start_of_their_step(example: ModuleType) -> None:
    begin = start_of_step(example, 0, 11)
    rows = [{"line": 7, "start_ns": begin + 24_100_000, "duration_ns": 1_500, "stream": 3, "note": None}]
    item = Evidence(
        kind="rows",
        title=TITLE,
        rank=0,
        source=Source(file="kernel_details.csv", table="kernels", line=7),
        units={"start_ns": "ns", "duration_ns": "ns"},
        rows=rows,
    )
    (table,) = tables.evidence([item], example.training(), EN)
    assert table.columns == ("line", "start", "duration", "stream", "note")
    assert table.rows == (("7", "24.1 ms into step 11", "1.50 µs", "3", "–"),)
    assert table.title == "Idle gap"
    assert table.place == "rank 0, kernel_details.csv"


def test_a_moment_before_every_step_is_shown_as_recorded(example: ModuleType) -> None:
    begin = start_of_step(example, 0, 10)
    item = Evidence(kind="interval", title=TITLE, rank=0, start_ns=begin - 5, end_ns=begin + 5)
    (table,) = tables.evidence([item], example.training(), EN)
    assert f"{begin - 5} ns" in table.rows[0]


def test_intervals_of_one_kind_share_a_table(example: ModuleType) -> None:
    begin = start_of_step(example, 0, 10)
    gaps = [
        Evidence(kind="interval", title=TITLE, rank=0, lane="device", start_ns=begin + n, end_ns=begin + 2 * n)
        for n in (1_000_000, 2_000_000)
    ]
    other = gaps[0].model_copy(update={"lane": "host"})
    found = tables.evidence([*gaps, other], example.training(), EN)
    assert [len(table.rows) for table in found] == [2, 1]
    assert [row[1] for row in found[0].rows] == ["1.00 ms", "2.00 ms"]


def test_settings_of_one_place_share_a_table(example: ModuleType) -> None:
    options = [
        Evidence(kind="setting", title=TITLE, rank=0, rows=[{"name": name, "value": True}])
        for name in ("stack", "shapes")
    ]
    other = options[0].model_copy(update={"rank": 1})
    found = tables.evidence([*options, other], example.training(), EN)
    assert [[row[0] for row in table.rows] for table in found] == [["stack", "shapes"], ["stack"]]


@pytest.mark.parametrize("bins", [1, 7, 24, 128])
def test_a_dense_lane_keeps_its_time(bins: int) -> None:
    span = 1_000_000
    intervals = [(at, at + 370, "ab"[at // 1_000 % 2]) for at in range(0, span, 1_000)]
    blocks = _shares(intervals, span, bins)
    for key in "ab":
        area = sum((end - start) * (high - low) for start, end, name, low, high in blocks if name == key)
        assert area == pytest.approx(sum(b - a for a, b, name in intervals if name == key))
    assert all(0 <= low <= high <= 1 for *_, low, high in blocks)


def ranks_of(count: int) -> dict[str, dict[str, object]]:
    """Views of so many ranks, kernels and operators that they need more marks than a chart may have: views of simulated
    jobs stay below that, and none has links."""
    parts = [
        [(key, 1_000 * (1 + (r + i) % 5)) for i, key in enumerate(("computing", "idle", "x"))] for r in range(count)
    ]
    stacks = [{"label": f"rank {r}", "parts": [{"key": k, "value": v} for k, v in of]} for r, of in enumerate(parts)]
    intervals = [[i * 40, i * 40 + 25, "computing" if i % 3 else "communication"] for i in range(3_000)]
    names = [str(r) for r in range(64)]
    links = [[float((r * c) % 29) for c in range(64)] for r in range(64)]
    return {
        "stacked_bar": {"rows": stacks},
        "strip": {"start": 0, "end": 120_000, "lanes": [{"label": "device", "intervals": intervals}]},
        "heatmap": {"rows": names, "columns": names, "values": links},
        "bars": {"rows": [{"label": f"op{i}", "value": 1_000_000 // (i + 1)} for i in range(400)]},
        "flame": {
            "of": "host",
            "frames": [["1", "thread"], *([f"aten::op{i}", "operator"] for i in range(400))],
            "nodes": [[-1, 0, 800_000], *([0, i + 1, 2_000] for i in range(400))],
        },
    }


@pytest.mark.parametrize("kind", ["stacked_bar", "strip", "heatmap", "bars", "flame"])
def test_no_chart_has_more_marks_than_a_reader_can_use(kind: str) -> None:
    fields = {"id": "x", "kind": kind, "title": TITLE, "unit": "ns", "data": ranks_of(256)[kind]}
    chart = draw(TypeAdapter(View).validate_python(fields), EN)
    assert chart.svg is not None
    assert chart.svg.count("<title>") <= MAX_MARKS
    assert chart.note


HARM = "".join(HOSTILE)
HOSTILE_VIEWS: dict[str, dict[str, object]] = {
    "bars": {"rows": [{"label": HARM, "value": 5, "note": HARM}]},
    "strip": {
        "start": 0,
        "end": 10,
        "lanes": [{"label": HARM, "intervals": [[0, 10, HARM]]}],
        "marks": [{"start": 0, "end": 5, "label": {"en": HARM, "zh": HARM}}],
    },
    "heatmap": {"rows": [HARM], "columns": [HARM], "values": [[1.0]]},
    "flame": {"of": "device", "frames": [[HARM, "python"], [HARM, "kernel"]], "nodes": [[-1, 0, 9], [0, 1, 5]]},
    "stacked_bar": {"rows": [{"label": HARM, "parts": [{"key": HARM, "value": 3}]}]},
    "curve": {
        "start": 0,
        "end": 10,
        "times": [0],
        "series": [{"key": HARM, "label": {"en": HARM, "zh": HARM}, "values": [1.0]}],
        "marks": [{"start": 0, "label": {"en": HARM, "zh": HARM}}],
    },
}


@pytest.mark.parametrize("kind", HOSTILE_VIEWS)
def test_hostile_names_stay_text_in_every_chart(kind: str) -> None:
    """Charts of every kind: no simulated job has links or stacks."""
    title = Text(en=HARM, zh=HARM)
    fields = {"id": "x", "kind": kind, "title": title, "unit": "ns", "data": HOSTILE_VIEWS[kind]}
    chart = draw(TypeAdapter(View).validate_python(fields), EN)
    assert chart.svg is not None and "&lt;script&gt;" in chart.svg
    assert not re.search(r"<(?:script|img|svg onload|a )|\x1b|\u202e", chart.svg)


def test_a_joined_heatmap_keeps_its_maximum() -> None:
    values: list[list[float | None]] = [[float(r * 100 + c) for c in range(60)] for r in range(60)]
    values[59][59] = 99_999.0
    rows, columns, small, step = _shrink([str(r) for r in range(60)], [str(c) for c in range(60)], values)
    assert len(rows) * len(columns) <= MAX_MARKS and step != (1, 1)
    assert max(value for line in small for value in line if value is not None) == 99_999.0


CURVE = {
    "start": 0,
    "end": 100,
    "times": [0, 40],
    "series": [
        {"key": "reserved", "label": {"en": "reserved", "zh": "已预留"}, "values": [8.0, 16.0]},
        {"key": "allocated", "label": {"en": "allocated", "zh": "已分配"}, "values": [4.0, 2.0]},
    ],
    "marks": [{"start": at, "label": {"en": f"step {at}", "zh": f"step {at}"}} for at in (0, 50, 51)],
}


def _areas(svg: str) -> list[tuple[str, list[list[float]]]]:
    """Fill and corners of each area."""
    found = re.findall(r'<polygon class="([^"]*)" points="([^"]*)"', svg)
    return [(fill, [[float(at) for at in corner.split(",")] for corner in points.split()]) for fill, points in found]


def test_a_curve_holds_each_value_until_the_next() -> None:
    view = CurveView.model_validate({"id": "x", "title": TITLE, "unit": "GiB", "data": CURVE})
    chart = draw(view, EN)
    assert [entry.label for entry in chart.legend] == ["reserved", "allocated"]
    (behind, reserved), (front, allocated) = _areas(chart.svg)
    assert [behind, front] == [entry.fill for entry in chart.legend] and behind != front
    ground, wide = reserved[0][1], WIDTH - GUTTER
    for corners, values in ((reserved, (8, 16)), (allocated, (4, 2))):
        heights = [ground - y for _, y in corners[1:-1]]
        assert heights == pytest.approx([CURVE_HEIGHT * value / 16 for value in values for _ in "ab"], abs=0.06)
        at = [x - GUTTER for x, _ in corners[1:-1]]
        assert at == pytest.approx([wide * share for share in (0, 0.4, 0.4, 1)], abs=0.06)
    # two steps so near to each other have one name and two lines
    assert chart.svg.count('class="tick"') == 3 and "step 50" in chart.svg and "step 51" not in chart.svg
    assert "已分配" in str(draw(view, Labels("zh")).legend)


@pytest.mark.parametrize("data", [{}, {"rows": 3}, {"rows": [{}]}, {"lanes": [{"label": 1}], "start": 0, "end": "x"}])
@pytest.mark.parametrize("kind", ["stacked_bar", "bars", "strip", "heatmap", "curve", "table"])
def test_data_that_cannot_be_drawn_is_no_view(kind: str, data: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(View).validate_python({"id": "x", "kind": kind, "title": TITLE, "unit": "ns", "data": data})


def test_a_heatmap_and_a_curve_are_whole() -> None:
    heat = {"rows": ["a"], "columns": ["b", "c"], "values": [[1]]}
    with pytest.raises(ValidationError, match="each row and column"):
        HeatmapView.model_validate({"id": "x", "title": TITLE, "unit": "ns", "data": heat})
    with pytest.raises(ValidationError, match="each time"):
        CurveView.model_validate({"id": "x", "title": TITLE, "unit": "GiB", "data": {**CURVE, "times": [0]}})


def test_a_table_has_names_numbers_and_texts() -> None:
    """Names and texts stay text, numbers have the unit of their column, what is not known is told."""
    columns = [{"label": TITLE}, {"label": TITLE, "unit": "ns"}, {"label": TITLE}]
    rows = [[HARM, 1_500, {"en": "late", "zh": "迟"}], ["b", None, ""]]
    fields = {"id": "x", "title": TITLE, "data": {"columns": columns, "rows": rows}}
    table = written(TableView.model_validate(fields), Labels("zh"))
    assert [column.numeric for column in table.columns] == [False, True, False]
    assert table.rows[0].cells == (line(Code(HARM)), line("1.50 µs"), line("迟"))
    assert table.rows[1].cells == (line(Code("b")), line("–"), ())
    with pytest.raises(ValidationError, match="each row"):
        TableView.model_validate({**fields, "data": {"columns": columns, "rows": [["a"]]}})


def test_causes_of_one_family_have_fills_of_their_own() -> None:
    keys = Keys(EN)
    fills = [keys.fill(key) for key in ("idle/host", "idle/sync", "communication/transmit", "other", "idle/host")]
    assert len(set(fills)) == 4 and fills[0] == fills[4]
    assert keys.fill("computing") == keys.fill("compute") == "f f-compute"
