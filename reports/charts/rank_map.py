"""The map of ranks: a cell for each, as many in a line as a page is wide enough for, stages of the pipeline apart.

The darker a cell, the more; up to `MAX_MARKS` cells say how much in digits where these fit. Where there are more of
them, all of one shade are one mark, and the note names the ranks with most.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from reports.blocks import RankLine, RankMap
from reports.charts.chart import Chart, LegendEntry
from reports.charts.shades import SHADES, cell_text, merged, shade_of
from reports.charts.svg import GUTTER, MAX_MARKS, SMALL, WIDTH, box_path, drawing, fit, rect, text, width_of
from reports.labels import Labels

NAMED = 3
"""Ranks with most that the note names where no digits stand in the cells."""

_CELL, _HIGH = 86.0, 20.0
"""Widest and highest cell."""

_GAP = 5.0
"""Between ranks that share tensors and the next, and between stages."""


def draw_rank_map(ranks: RankMap, title: str, labels: Labels) -> Chart:
    """``title``: of the measure."""
    scale = Scale.of(ranks, labels)
    wide = max(len(line.cells) for line in ranks.lines)
    gaps = (wide - 1) // ranks.together if ranks.together > 1 else 0
    cell = min(_CELL, (WIDTH - GUTTER - gaps * _GAP) / wide)
    cells = [cell for line in ranks.lines for cell in line.cells]
    widest = max(width_of(scale.digits(value), SMALL) for _, value in cells)
    many = len(cells) > MAX_MARKS
    has_digits = not many and widest <= cell - 4
    high = _HIGH if has_digits else min(_HIGH, cell)
    out: list[str] = []
    of_shade: dict[str, str] = {}
    y = 2.0
    for number, line in enumerate(ranks.lines):
        y += _GAP if line.apart and number else 0
        out.append(text(fit(line.label, GUTTER - 12), 0, y + high / 2 + 4, "t-label"))
        for (rank, value), x in zip(line.cells, _places(line, ranks.together, cell), strict=True):
            shade = scale.shade(value)
            if many:
                of_shade[shade] = of_shade.get(shade, "") + box_path(x + 0.5, y, cell - 1, high)
                continue
            tip = f"{labels('word.rank', rank=rank)}{labels('word.colon')}{scale.written(value)}"
            out.append(rect(tip, f"h h{shade}", x + 0.5, y, cell - 1, high))
            if has_digits:
                out.append(cell_text(scale.digits(value), x + cell / 2, y + 14, shade))
        y += high + 2
    out += merged(of_shade)
    ends = ((0, ranks.low), (SHADES, ranks.high))
    return Chart(
        f"{title} ({scale.unit})" if scale.unit else title,
        drawing(y, out, title),
        () if has_digits else tuple(LegendEntry(f"h h{shade}", scale.written(value)) for shade, value in ends),
        "" if has_digits else _most(cells, scale, labels),
    )


@dataclass(frozen=True)
class Scale:
    """The unit, precision and shades of the values of a map."""

    low: float
    high: float
    factor: int
    unit: str
    decimals: int

    @classmethod
    def of(cls, ranks: RankMap, labels: Labels) -> Scale:
        """Three digits of the highest value; two decimals of a ratio."""
        if not ranks.unit:
            return cls(ranks.low, ranks.high, 1, "", 2)
        column = labels.column(round(ranks.high))
        whole = len(str(int(ranks.high / column.factor)))
        return cls(ranks.low, ranks.high, column.factor, column.unit, max(0, 3 - whole) if column.decimals else 0)

    def digits(self, value: float | None) -> str:
        return "–" if value is None else f"{value / self.factor:,.{self.decimals}f}"

    def written(self, value: float | None) -> str:
        return f"{self.digits(value)} {self.unit}".rstrip()

    def shade(self, value: float | None) -> str:
        """The shade of a cell; what is not known has none."""
        if value is None:
            return "none"
        return shade_of((value - self.low) / (self.high - self.low or 1))


def _places(line: RankLine, together: int, cell: float) -> Iterator[float]:
    """The left edge of each cell of a line."""
    for number in range(len(line.cells)):
        yield GUTTER + number * cell + (number // together * _GAP if together > 1 else 0.0)


def _most(cells: list[tuple[int, float | None]], scale: Scale, labels: Labels) -> str:
    """The ranks with most."""
    known = sorted(((value, rank) for rank, value in cells if value is not None), key=lambda one: (-one[0], one[1]))
    named = [
        f"{labels('word.rank', rank=rank)}{labels('word.colon')}{scale.written(value)}" for value, rank in known[:NAMED]
    ]
    return labels("ranks.most", ranks=labels.join(named)) if named else ""
