"""View of the kernel time of a step by module, modules of one class and place together."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from advisor_core.api import Text
from advisor_core.api.advisors import Drawing, drawing
from advisor_core.api.facts import PROFILE, Facts
from advisor_core.api.renderers import Heatmap, HeatmapView, View
from advisors.layers.blocks import Pass
from advisors.layers.drawings import PASSES
from advisors.layers.modules import modules
from advisors.messages import message
from advisors.step_kernels import step_kernels

Ints = npt.NDArray[np.int64]

SHOWN = 60
LEAST = 0.002
"""Rows of the view, and the share of the kernel time that one needs; our choice: a module below it is not looked at."""


@drawing("layers.modules", needs=(modules, step_kernels, PROFILE))
def by_module(facts: Facts) -> list[View]:
    """Kernel time per step by module and pass; a module has the time of those that it calls."""
    found, own, rank = facts[modules], facts[step_kernels], facts[PROFILE].rank
    took = own.frame["duration_ns"].to_numpy(dtype=np.float64) / own.steps
    place, places = collapsed(found.table)
    known = found.module >= 0
    passes = [each for each in Pass if (found.passes[known] == each).any()]
    times = np.zeros((len(places), len(passes) + 1))
    at = place[found.module[known]]
    for column, each in enumerate(passes):
        of_pass = found.passes[known] == each
        times[:, column] = np.bincount(at[of_pass], weights=took[known][of_pass], minlength=len(places))
    times[:, -1] = times[:, :-1].sum(axis=1)
    own_times = times[:, -1].copy()
    for row in range(len(places) - 1, -1, -1):  # kinds of modules, callers first
        if (parent := int(places["parent"].iloc[row])) >= 0:
            times[parent] += times[row]
    order = _order(places, times[:, -1], LEAST * own.kernel_ns)[:SHOWN]
    names = [_label(places.iloc[row]) for row in order]
    columns = [message(PASSES[each.key]) for each in passes]
    values = [[*map(round, times[row].tolist()), round(float(own_times[row]))] for row in order]
    share = f"{100 * took[known].sum() / max(own.kernel_ns, 1.0):.0f} %"
    return [
        HeatmapView(
            id=f"modules-rank{rank}",
            purpose="layers",
            title=message("modules.view", rank=rank, share=share, shown=len(order), count=len(places)),
            unit="ns",
            rank=rank,
            data=Heatmap(
                rows=names,
                columns=[*columns, message("layers.sum"), message("modules.own")],
                values=values,
                total=len(columns),
                depths=places["depth"].iloc[order].tolist(),
            ),
        )
    ]


def collapsed(table: pd.DataFrame) -> tuple[Ints, pd.DataFrame]:
    """The place of each module, and the places: modules of one class that are called from one place are one.
    ``instances``: how many modules a place stands for, ``parent``: the place that calls it."""
    place = np.full(len(table), -1, dtype=np.int64)
    numbers: dict[tuple[int, str], int] = {}
    instances: dict[int, set[str]] = {}
    parents, kinds = table["parent"].tolist(), table["kind"].tolist()
    for row, (parent, kind, name) in enumerate(zip(parents, kinds, table["name"].tolist(), strict=True)):
        key = (int(place[parent]) if parent >= 0 else -1, kind)
        place[row] = numbers.setdefault(key, len(numbers))
        instances.setdefault(int(place[row]), set()).add(name)
    depth: list[int] = []
    for parent, _ in numbers:
        depth.append(depth[parent] + 1 if parent >= 0 else 0)
    return place, pd.DataFrame(
        {
            "parent": [parent for parent, _ in numbers],
            "kind": [kind for _, kind in numbers],
            "instances": [len(instances[number]) for number in range(len(numbers))],
            "depth": depth,
        }
    )


def _order(places: pd.DataFrame, times: npt.NDArray[np.float64], least: float) -> list[int]:
    """The places with so much time, each behind the one that calls it, those with most time first."""
    children: dict[int, list[int]] = {}
    for row, parent in enumerate(places["parent"].tolist()):
        if times[row] >= least and times[row] > 0:
            children.setdefault(parent, []).append(row)
    order: list[int] = []
    open_rows = sorted(children.get(-1, []), key=lambda row: times[row])
    while open_rows:
        row = open_rows.pop()
        order.append(row)
        open_rows += sorted(children.get(row, []), key=lambda child: times[child])
    return order


def _label(place: pd.Series) -> Text:
    several = f" ×{place['instances']}" if place["instances"] > 1 else ""
    text = f"{'· ' * int(place['depth'])}{place['kind']}{several}"
    return Text(en=text, zh=text)


DRAWINGS: tuple[Drawing, ...] = (by_module,)
