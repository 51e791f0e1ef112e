"""The bars of the first screen: where the step of each rank went."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from markupsafe import Markup

from reports.charts.keys import Keys
from reports.charts.svg import GUTTER, SMALL, WIDTH, drawing, el, fit, rect, text, width_of
from reports.labels import Labels
from reports.ledgers import Ledger, Node


def ledger_bars(ledgers: Sequence[Ledger], labels: Labels, names: Sequence[str]) -> Markup:
    """One bar per rank to a common scale: the trunk of the ledger, below it a thin strip with the causes by name."""
    scale = (WIDTH - GUTTER) / max([ledger.wall_ns for ledger in ledgers] + [1])
    keys = Keys(labels)
    out: list[str] = []
    y = 2.0
    for ledger, name in zip(ledgers, names, strict=True):
        out.append(text(fit(name, GUTTER - 28), 0, y + 11, "t-strong"))
        out.append(text(labels.wall(ledger.wall_ns), 0, y + 27, "t-muted"))
        x = float(GUTTER)
        for root in ledger.roots:
            fill = keys.fill(root.path)
            width = root.ns * scale
            value = f"{labels.path(root.path)}{labels('word.colon')}{labels.time(root.ns)} ({labels.share(root.share)})"
            out.append(rect(value, fill, x, y, width, 24))
            label = f"{labels.time(root.ns)} · {labels.share(root.share)}"
            label = label if width_of(label) + 10 < width else labels.share(root.share)
            if width_of(label) + 4 < width:
                middle = x + width / 2
                out.append(_plate(label, middle, y))
            out += _causes(root, fill, x, y + 26, scale, ledger, labels)
            x += width
        y += 62
    return drawing(y - 6, out, labels("first.where"))


def _plate(label: str, middle: float, y: float) -> str:
    """A label on a patterned bar, on a plate of its own so that it reads on any fill."""
    width = width_of(label) + 8
    plate = el("rect", class_="plate", x=middle - width / 2, y=y + 4, width=width, height=16.0, rx=2)
    return plate + text(label, middle, y + 16.5, "t-value", text_anchor="middle")


def _causes(root: Node, fill: str, x: float, y: float, scale: float, ledger: Ledger, labels: Labels) -> Iterator[str]:
    """The strip of causes below a bar. A name is written where it fits under its part of the bar, the largest first;
    all are in the tooltips and in the table."""
    end = x + root.ns * scale
    free = x
    for number, leaf in enumerate(sorted(root.leaves(), key=lambda leaf: (-leaf.ns, leaf.path))):
        width = leaf.ns * scale
        if width < 0.2:
            continue
        name, time = labels.trail(leaf.path), labels.time(leaf.ns)
        tooltip = f"{name}{labels('word.colon')}{time} ({labels.share(ledger.share(leaf.ns))})"
        yield rect(tooltip, f"{fill} cause tint{min(number, 3)}", x, y, width, 6)
        room = (end - x if number == 0 else width) + 4
        wordings = (f"{name} {time}", name, labels.path(leaf.path))
        label = next((label for label in wordings if width_of(label, SMALL) <= room), "")
        if label and x >= free:
            yield text(label, x + 1, y + 19, "t-small")
            free = x + width_of(label, SMALL) + 10
        x += width
