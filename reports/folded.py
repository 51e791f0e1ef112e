"""``stacks.folded``: time by call stack, a line a stack, for flamegraph.pl, speedscope, inferno and their like.

Source: brendangregg/FlameGraph, README ("Fold stacks"): frames from the outermost on, semicolons between them, a space
and a whole number, here ns of the profiled steps, of memory bytes. The first two frames say what it is of: the rank,
and ``host``, ``device`` or ``memory``.
"""

from __future__ import annotations

from collections.abc import Iterator

from advisor_core.api.renderers import Flame, FlameView, RunResult
from reports.charts.flame import frame_name
from reports.labels import Labels, one_line


class FoldedRenderer:
    """A line for each stack that took time itself, in the order in which the stacks are drawn."""

    def render(self, result: RunResult, lang: str) -> str:
        t = Labels.of_result(result, lang)
        lines = []
        for view in result.views:
            if isinstance(view, FlameView):
                whose = [*([view.role] if view.role else []), t("word.rank", rank=view.rank), view.data.of]
                lines += [";".join((*map(_frame, whose), *stack)) for stack in _stacks(view.data, t)]
        return "".join(f"{line}\n" for line in lines)


def _stacks(flame: Flame, t: Labels) -> Iterator[tuple[str, ...]]:
    """The frames of each stack with its own time, the number behind the last of them."""
    names = [_frame(frame_name(*frame, t)) for frame in flame.frames]
    own = [took for _, _, took in flame.nodes]
    for caller, _, took in flame.nodes:
        if caller >= 0:
            own[caller] -= took
    stacks: list[tuple[str, ...]] = []
    for place, (caller, frame, _) in enumerate(flame.nodes):
        stacks.append((*(stacks[caller] if caller >= 0 else ()), names[frame]))
        if own[place]:
            yield (*stacks[-1][:-1], f"{stacks[-1][-1]} {own[place]}")


def _frame(name: str) -> str:
    """A name that is one frame."""
    return one_line(name).replace(";", ",").strip() or "?"
