"""Which jobs are diagnosed: all of the catalogue, and a part held out, which the tests never run."""

from __future__ import annotations

from dataclasses import replace

from advisor_core.sample.causes import (
    AllocatorChurn,
    Cause,
    FrequentItem,
    NoOverlap,
    SinglePrecision,
    SlowHost,
    SlowHostOfRank,
    SlowLink,
    SlowLoader,
    SlowNetwork,
    ThrottledClock,
    UnalignedVocabulary,
    Unfused,
)
from advisor_core.sample.scenarios import SCENARIOS, Scenario, Text
from advisor_core.sample.setup import RankSetup, Setup

Case = tuple[Scenario, int]
"""A scenario and a seed."""

CATALOGUE: tuple[Case, ...] = tuple((scenario, 0) for scenario in SCENARIOS.values())

FAST: tuple[str, ...] = (
    "healthy-decode",
    "healthy-prefill",
    "launch-blocking",
    "slow-data-loader",
    "unaligned-vocabulary",
    "unfused-cross-entropy",
    "no-overlap",
    "leak",
)
"""The part that the tests run on every change."""

ABSTAINING: tuple[str, ...] = ("transformer-training", "no-overlap", "slow-python")
"""The scenarios that are judged again without each file and at each level."""


def _sized(job: Setup, ranks: int, **shape: int) -> Setup:
    training = replace(job.training, shape=replace(job.training.shape, **shape))
    return replace(job, training=training, ranks=(RankSetup(),) * ranks)


def _held_out(name: str, job: Setup, *causes: Cause) -> Scenario:
    return Scenario(f"held-out-{name}", Text(name, name), "2025", job, causes)


_COMPACT = SCENARIOS["healthy-compact"].job
_DENSE = SCENARIOS["healthy-training-single"].job
_NARROW = _sized(_COMPACT, 1, layers=8, hidden=1536, heads=12, kv_heads=4, ffn=4096 - 256, vocab=48128, batch=4)
_LONG = _sized(_DENSE, 1, layers=2, hidden=2560, heads=20, kv_heads=5, ffn=6912, vocab=64256, sequence=4096, batch=2)

HELD_OUT: tuple[Case, ...] = (
    (_held_out("healthy", _NARROW), 7),
    (_held_out("healthy-long", _LONG), 8),
    (_held_out("healthy-six", _sized(_COMPACT, 6)), 9),
    (_held_out("python", _NARROW, SlowHost("python", 400_000)), 11),
    (_held_out("runtime", _NARROW, SlowHost("runtime", 250_000)), 12),
    (_held_out("items", _NARROW, FrequentItem(300_000)), 13),
    (_held_out("loader", _NARROW, SlowLoader(70_000_000)), 14),
    (_held_out("allocator", _LONG, AllocatorChurn(20 << 20, 900_000)), 15),
    (_held_out("vocabulary", _sized(_NARROW, 1, vocab=48000), UnalignedVocabulary(48001)), 16),
    (_held_out("norm", _LONG, Unfused("rms-norm")), 17),
    (_held_out("loss", _LONG, Unfused("cross-entropy")), 18),
    (_held_out("optimizer", _NARROW, Unfused("optimizer")), 19),
    (_held_out("fp32", _LONG, SinglePrecision()), 20),
    (_held_out("no-overlap", _sized(_COMPACT, 6), NoOverlap()), 21),
    (_held_out("network", _sized(_COMPACT, 6), SlowNetwork(2e9)), 22),
    (_held_out("link", _sized(_COMPACT, 6), SlowLink((0, 5), 4.0)), 23),
    (_held_out("late-clock", _sized(_COMPACT, 6), ThrottledClock(1_400, (4,))), 24),
    (_held_out("late-host", _sized(_COMPACT, 3), SlowHostOfRank(12.0, (0,))), 25),
    (_held_out("pair", _LONG, Unfused("swiglu"), UnalignedVocabulary(64001)), 26),
)
"""A fixed list of other sizes, seeds and rank counts; only ``python -m tests.diagnosis`` runs it."""
