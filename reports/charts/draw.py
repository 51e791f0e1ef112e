"""Drawing of any view."""

from __future__ import annotations

from dataclasses import replace

from advisor_core.api.renderers import BarsView, CurveView, Drawn, FlameView, HeatmapView, StackedBarsView, StripView
from reports.charts.bars import draw_bars
from reports.charts.chart import Chart
from reports.charts.curve import draw_curve
from reports.charts.flame import draw_flame
from reports.charts.heatmap import draw_heatmap
from reports.charts.stacked import draw_stacked
from reports.charts.strip import draw_strip
from reports.labels import Labels


def draw(view: Drawn, labels: Labels) -> Chart:
    """Draw a view."""
    title = labels.of(view.title)
    match view:
        case BarsView():
            chart = draw_bars(view, labels)
        case StackedBarsView():
            chart = draw_stacked(view, labels)
        case StripView():
            chart = draw_strip(view, labels)
        case HeatmapView():
            chart = draw_heatmap(view, labels)
        case CurveView():
            chart = draw_curve(view, labels)
        case FlameView():
            chart = draw_flame(view, labels)
    named = view.rank is not None and labels("word.rank", rank=view.rank) in title
    title = f"{view.role} · {title}" if view.role else title
    return replace(chart, title=title, rank=None if named else view.rank)
