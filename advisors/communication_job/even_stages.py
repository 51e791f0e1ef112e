"""What the stages of a pipeline would compute if its layers were spread evenly over them.

Layers that are alike run the same kernels on every stage: as often as there are layers. So the kernels that all stages
have in common tell how many layers each has, what a layer takes, and how much slower a stage is at the same work. What
a stage has besides, such as an embedding, a head or a loss, stays where it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pandas as pd

from advisors.communication_job.pipelines import Pipeline

if TYPE_CHECKING:
    import numpy.typing as npt

Floats: TypeAlias = "npt.NDArray[np.float64]"
Ints: TypeAlias = "npt.NDArray[np.int64]"

_KIND = ["type", "input_shapes", "input_dtypes"]

_MOST = 0.5
"""Kernels that are less than this part of what a stage computes tell little of the rest of it. A convention."""


@dataclass(frozen=True)
class EvenStages:
    """``slower``: what the same kernels take on each stage, over the mean of all stages; 1 unknown. ``layers``: how
    many each stage has, and ``even`` how many it would have; ``None`` where they cannot be told. ``computing``: ns per
    step of each stage then, each at the speed that it has; ``quickest``: the same if a slow stage got less to do."""

    slower: Floats
    layers: Ints | None
    even: Ints | None
    computing: Floats
    quickest: Floats


def even_stages(pipeline: Pipeline) -> EvenStages:
    """Whole layers are moved where they are known, so that the longest stage gets as short as it can; else work of any
    size, so that all stages have the same. Stages are taken to be equally quick for that: a slow chip is no reason to
    plan the model around it."""
    common = _in_common(pipeline)
    slower = common.slower() if common else np.ones(len(pipeline.stages))
    work = pipeline.computing / slower
    layers = common.layers(pipeline.slots) if common else None
    if common is None or layers is None:
        equal = np.full(len(work), pipeline.computing.mean())
        return EvenStages(slower, None, None, work.mean() * slower, equal)
    of_layer = common.layer_ns(layers, slower)
    rest = np.maximum(work - layers * of_layer, 0.0)
    even, quickest = (_spread(rest * speed, of_layer * speed, layers) for speed in (np.ones(len(work)), slower))
    computing, least = ((rest + each * of_layer) * slower for each in (even, quickest))
    return EvenStages(slower, layers, even, computing, least)


def _spread(rest: Floats, of_layer: Floats, layers: Ints) -> Ints:
    """How many layers each stage gets, one at least, so that the longest takes least: each layer in turn goes to the
    stage that then takes least. As they are where that is no shorter. ``rest``, ``of_layer``: ns by stage."""
    even = np.ones(len(rest), dtype=np.int64)
    for _ in range(int(layers.sum()) - len(rest)):
        even[(rest + (even + 1) * of_layer).argmin()] += 1
    return even if (rest + even * of_layer).max() < (rest + layers * of_layer).max() else layers


@dataclass(frozen=True)
class _InCommon:
    """Kinds of kernels that all stages run, by stage: ``counts`` per step, ``medians`` of what one takes, ns."""

    counts: Floats
    medians: Floats

    def slower(self) -> Floats:
        """Each kind as often as on the stage that has fewest."""
        took = (self.counts.min(axis=1, keepdims=True) * self.medians).sum(axis=0)
        found: Floats = took / took.mean()
        return found

    def layers(self, slots: float) -> Ints | None:
        """Layers of each stage: of the kinds that are those of layers, some run a whole number of times in each
        micro-batch (others once a step, for its optimizer), and one of these once at least. ``None`` where there is
        none."""
        each = self.counts[self._of_layers()] / slots
        whole = np.rint(each)
        times = whole[((whole >= 1) & np.isclose(each, whole)).all(axis=1)]
        return times.min(axis=0).astype(np.int64) if len(times) else None

    def layer_ns(self, layers: Ints, slower: Floats) -> float:
        """What a layer takes per step, at the mean speed of all stages."""
        own = self._of_layers()
        return float(((self.counts[own] * self.medians[own]).sum(axis=0) / layers / slower).mean())

    def _of_layers(self) -> npt.NDArray[np.bool_]:
        """The kinds that are those of layers: of which the stages have the same ratio, that with the longest time."""
        ratios = (self.counts / self.counts.sum(axis=1, keepdims=True)).round(6)
        _, number = np.unique(ratios, axis=0, return_inverse=True)
        time = np.bincount(number.ravel(), (self.counts * self.medians).sum(axis=1))
        found: npt.NDArray[np.bool_] = number.ravel() == time.argmax()
        return found


def _in_common(pipeline: Pipeline) -> _InCommon | None:
    """``None`` where what all have is less than half of what one of the stages computes, which tells little of the
    rest, or where no shapes were recorded."""
    tables = [table.set_index(_KIND) for table in pipeline.kinds]
    both = pd.concat(tables, axis=1, join="inner", keys=range(len(tables)))
    counts, medians = (both.xs(name, axis=1, level=1).to_numpy(np.float64) for name in ("count", "median_ns"))
    enough = ((counts * medians).sum(axis=0) >= _MOST * pipeline.computing).all()
    return _InCommon(counts, medians) if len(both) and enough else None
