"""Layers that take longer or shorter than the others that compute the same.

Each pass over a stack is looked at by itself: its layers with the same kernels (types, shapes and dtypes, in any order)
are peers, and the excess of a layer is its kernel time less the median of its peers in that pass. So neither shapes
that change from pass to pass nor a slow pass count. A layer is told where its median excess over the passes is more
than the passes differ among themselves; a layer that was slow once is jitter. First and last layers often compute more
than the others: they then have no peers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pandas as pd

from advisor_core.api.facts import Groups, aggregated
from advisors.layers.blocks import Pass
from advisors.layers.layers import Layers
from advisors.step_kernels import StepKernels

if TYPE_CHECKING:
    import numpy.typing as npt

Ints: TypeAlias = "npt.NDArray[np.int64]"
Floats: TypeAlias = "npt.NDArray[np.float64]"

LEAST_PASSES = 3
"""Passes in which a layer has peers: what two of them differ by tells no jitter."""

LEAST_PEERS = 3
"""Other layers with the same kernels, at least: the median of fewer is no measure."""

RESOLUTION_NS = 1_000
"""Older traces of Kineto round times to microseconds (real recordings): a difference of one is none."""

_LAYER = ("tower", "backward", "layer")

TO_DEVIATION = 1.4826
"""Median absolute deviation to standard deviation, of a normal distribution."""


@dataclass(frozen=True)
class LayerTimes:
    """``cells``: one row per pass and layer that has peers: ``tower``, ``backward``, ``layer``, ``run``, ``ns``,
    ``usual_ns`` (median of the peers, itself among them), ``excess_ns`` and ``peers`` (others)."""

    cells: pd.DataFrame

    def by_layer(self) -> pd.DataFrame:
        """One row per layer of a stack and direction: medians over its passes, ``passes``, and ``jitter_ns``, by how
        much its excess usually differs from pass to pass; only of layers with enough passes."""
        layers = Groups(self.cells, _LAYER)
        median = layers.of("excess_ns", "median")[layers.codes]
        cells = self.cells.assign(deviation=(self.cells["excess_ns"] - median).abs())
        table = Groups(cells, _LAYER).table(
            ns=("ns", "median"),
            usual_ns=("usual_ns", "median"),
            excess_ns=("excess_ns", "median"),
            excess_sum=("excess_ns", "sum"),
            passes=("ns", "size"),
            peers=("peers", "min"),
            deviation=("deviation", "median"),
        )
        table = table[table["passes"] >= LEAST_PASSES].reset_index(drop=True)
        # A layer may differ by chance from pass to pass less than the others do: those tell as well.
        stacks = Groups(table, ("tower", "backward"))
        of_stack = stacks.of("deviation", "median")[stacks.codes]
        table["jitter_ns"] = np.maximum(TO_DEVIATION * np.maximum(table["deviation"], of_stack), RESOLUTION_NS)
        return table.drop(columns="deviation")


def layer_times(own: StepKernels, found: Layers) -> LayerTimes:
    """The kernel time of each layer in each pass, beside its peers. Kernels of other streams are left out: they run
    beside a layer, whichever it is."""
    rows = _of_layers(own, found)
    frame = own.frame.iloc[rows]
    cell = pd.DataFrame({"run": found.run[rows], "layer": found.layer[rows]})
    passes = Groups(cell, ("run", "layer"), sort=False)
    code, firsts = passes.codes, passes.firsts
    cells = passes.table()
    # Equal sums of random numbers: equal kernels, in any order.
    random = np.random.default_rng(0).integers(1, 1 << 62, size=int(own.frame["signature"].max()) + 1, dtype=np.uint64)
    content = np.zeros(len(cells), dtype=np.uint64)
    np.add.at(content, code, random[frame["signature"].to_numpy()])
    cells["tower"], cells["content"] = found.tower[rows[firsts]], content
    cells["ns"] = np.bincount(code, weights=frame["duration_ns"].to_numpy(), minlength=len(cells))
    in_backward = np.zeros(int(found.run.max()) + 1, dtype=np.bool_)
    in_backward[found.run[rows[found.passes[rows] == Pass.BACKWARD]]] = True
    cells["backward"] = in_backward[cells["run"].to_numpy()]
    peers = Groups(cells, ("run", "content"))
    cells["usual_ns"], cells["peers"] = peers.of("ns", "median")[peers.codes], peers.sizes[peers.codes] - 1
    cells["excess_ns"] = cells["ns"] - cells["usual_ns"]
    return LayerTimes(cells[cells["peers"] >= LEAST_PEERS].drop(columns="content"))


class OperatorTimes:
    """Times of layers by operator type in a pass, beside the median of the layers of the stack."""

    def __init__(self, own: StepKernels, found: Layers, times: LayerTimes) -> None:
        rows = _of_layers(own, found)
        place = times.cells.set_index(["run", "layer"]).index.get_indexer(
            pd.MultiIndex.from_arrays([found.run[rows], found.layer[rows]])
        )
        self._rows, self._cell = rows[place >= 0], place[place >= 0]
        self._tower, self._backward, self._layer = (times.cells[name].to_numpy() for name in _LAYER)
        types = own.frame["type"].array
        cells = pd.DataFrame(
            {
                "cell": self._cell,
                "type": types.codes[self._rows],
                "ns": own.frame["duration_ns"].to_numpy()[self._rows],
            }
        )
        sums = aggregated(cells, ("cell", "type"), ns=("ns", "sum"))
        at = sums["cell"].to_numpy()
        sums["layer"], sums["run"] = self._layer[at], times.cells["run"].to_numpy()[at]
        sums["tower"], sums["backward"] = self._tower[at], self._backward[at]
        passes = Groups(sums, ("run", "type"))
        sums["usual_ns"] = passes.of("ns", "median")[passes.codes]
        sums["excess_ns"] = sums["ns"] - sums["usual_ns"]
        medians = aggregated(
            sums,
            (*_LAYER, "type"),
            ns=("ns", "median"),
            usual_ns=("usual_ns", "median"),
            excess_ns=("excess_ns", "median"),
        )
        self._of_layer = {name: medians[name].to_numpy() for name in _LAYER}
        types_of = pd.Series(types.categories.to_numpy()[medians["type"].to_numpy()], dtype="str")
        self._medians = medians.assign(type=types_of)[["type", "ns", "usual_ns", "excess_ns"]]

    def by_type(self, layer: pd.Series) -> pd.DataFrame:
        """Of a layer of `LayerTimes.by_layer`, the types with most of its excess first; medians of its passes."""
        chosen = np.flatnonzero(np.logical_and.reduce([self._of_layer[name] == layer[name] for name in _LAYER]))
        excess = self._medians["excess_ns"].to_numpy()[chosen]
        order = np.argsort(-(np.sign(float(layer["excess_ns"])) * excess), kind="stable")
        found: pd.DataFrame = self._medians.take(chosen[order])
        found.index = pd.RangeIndex(len(found))
        return found

    def kernels(self, layer: pd.Series) -> Ints:
        """The kernels of a layer in all its passes, as rows of `StepKernels`."""
        columns = zip((self._tower, self._backward, self._layer), _LAYER, strict=True)
        chosen = np.logical_and.reduce([values == layer[name] for values, name in columns])
        return np.asarray(self._rows[chosen[self._cell]], dtype=np.int64)


def _of_layers(own: StepKernels, found: Layers) -> Ints:
    """The kernels of layers, of the stream that has most of them."""
    inside = np.flatnonzero(found.run >= 0)
    streams, code = np.unique(own.frame["stream"].to_numpy()[inside], return_inverse=True)
    return inside[code == np.bincount(code, minlength=len(streams)).argmax()] if len(inside) else inside
