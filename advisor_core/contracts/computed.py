"""Work by what it computes: contract between the plugin that can tell it and the result that keeps it.

Two devices of unlike vendors have no kernel names, operator types and counters in common. They have in common what a
program computes: products of three lengths, convolutions, attentions, and formulas such as a norm. A plugin tells it as
the fact `COMPUTED_WORK`; the host knows the fact by this name, and does without where no plugin brings it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, get_args

import pandas as pd

from advisor_core.contracts.columns import Column

COMPUTED_WORK: Final = "computed_work"
"""The name of the fact, whose value is a `ComputedWork`."""

ComputedKind = Literal["product", "grouped", "convolution", "attention", "computation", "operation"]
"""``product``, ``grouped`` (a product per group of rows), ``convolution``, ``attention``; ``computation``: a formula
that one fused kernel or several small ones compute; ``operation``: anything else, kernel by kernel."""

COMPUTED_KINDS: Final[tuple[ComputedKind, ...]] = get_args(ComputedKind)

KINDS_OF_SHAPES: Final[tuple[ComputedKind, ...]] = ("product", "grouped", "convolution", "attention")
"""Those of which shapes tell what is computed."""

COMPUTED_COLUMNS: Final = (
    Column("kind", "text", "", "one of `ComputedKind`"),
    Column("what", "text", "", "what is computed, in words that no vendor has for itself; '' not told by the shapes"),
    Column("dtype", "text", "", "type of the operands of products, convolutions and attentions; '' of others"),
    Column("block", "text", "", "part of the model: attention, ffn, norm, ...; '' not known"),
    Column("pass", "text", "", "forward, recomputation, backward or optimizer"),
    Column("calls", "int", "count", "how often it is computed, whatever the number of kernels"),
    Column("kernels", "int", "count", "kernels that compute it"),
    Column("ns", "int", "ns", "their time"),
    Column("bounded_ns", "int", "ns", "of it: kernels whose bound on this chip is known"),
    Column("least_ns", "int", "ns", "what these need at least on this chip"),
    Column("computing_ns", "int", "ns", "their operations at the peak for their type"),
    Column("memory_ns", "int", "ns", "their bytes at the bandwidth of the memory"),
    Column("flops", "float", "FLOP", "operations of the matrix unit, known ones"),
)


@dataclass(frozen=True)
class ComputedWork:
    """The computations of all steps of a rank. ``rows``: every computing kernel is in one of them; sums over
    the steps. ``samples``: ``tokens`` and ``images`` that the steps read, where shapes tell. ``peak_flops``: FLOP/s of
    the matrix unit by dtype, ``peak_bytes``: B/s of the memory, of the chip; ``None`` unknown."""

    rows: pd.DataFrame
    samples: Mapping[str, int] = field(default_factory=dict)
    peak_flops: Mapping[str, float] = field(default_factory=dict)
    peak_bytes: float | None = None
