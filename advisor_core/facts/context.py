"""Properties of the run, such as its phase: the names that rules use as ``profile.NAME``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from advisor_core.contracts.facts import Facts, fact
from advisor_core.contracts.profile import PROFILE
from advisor_core.contracts.tables import HOST_EVENTS, KERNELS
from advisor_core.facts.device.chip import chip
from advisor_core.facts.device.work import work
from advisor_core.facts.host.launches import launches
from advisor_core.facts.host.software import software
from advisor_core.facts.inference import part_of_inference
from advisor_core.facts.matching import matching
from advisor_core.facts.steps.parts import parts
from advisor_core.facts.steps.phases import phases
from advisor_core.facts.steps.steps import steps
from advisor_core.text.base import Scalar
from advisor_core.vocabulary.parts import DECODE, LEAST, MIXED, PARTS, PREFILL, TRAINING, UNKNOWN
from advisor_core.vocabulary.vocabulary import Vocabulary

GRAPH_SHARE = 0.5
"""A graph runs when more than this share of the kernels belongs to one, or of the launches to replays; our choice: the
most of a step."""


@fact(
    "context",
    needs=(PROFILE,),
    wants=(work, steps, KERNELS, HOST_EVENTS, launches, chip, parts, phases, software),
    shared=True,
)
def context(facts: Facts) -> Mapping[str, Scalar]:
    """The kind of run: the names that rules read as ``profile.NAME``, as far as they are known.

    ``kind``, ``serves``, ``phase``, ``parts``, ``level``, ``framework``, ``software``, ``chip``, ``amd``,
    ``compute_capability``, ``steps``, ``graph_mode``, ``with_stack``, ``l2_cache``, ``world_size``.
    """
    profile, device = facts[PROFILE], facts.get(work)
    amd = None if not profile.maker else profile.maker == "AMD"
    kind = None if device is None else _kind(device, facts.get(HOST_EVENTS), profile.vocabulary)
    large_parts = _large_parts(facts)
    if kind == "inference":
        phase: str | None = _part(facts, device, large_parts)
    else:
        phase = kind or (None if device is None else UNKNOWN)
    return {
        "kind": kind,
        "serves": _serves(facts, kind, large_parts),
        "phase": phase,
        "parts": " ".join(large_parts) or None,
        "level": profile.level,
        "framework": profile.framework,
        "software": " ".join(facts.get(software) or ()) or None,
        "chip": " ".join(facts[chip].generations) or None if chip in facts else None,
        "amd": amd,
        # ROCm reports the number of its architecture under this name: 9.4 for gfx942
        "compute_capability": None if amd else profile.chip.get("compute_capability"),
        "steps": len(facts[steps]) if steps in facts else None,
        "graph_mode": _graph_mode(facts),
        "with_stack": profile.profiler.get("with_stack"),
        "l2_cache": profile.profiler.get("l2_cache"),
        "world_size": profile.world_size,
    }


def _kind(device: pd.DataFrame, events: pd.DataFrame | None, words: Vocabulary) -> str | None:
    """``training`` where gradients are computed or weights updated, ``inference`` otherwise; ``None`` where a model in
    training mode, which draws masks for dropout, has neither."""
    if matching(device["type"], words.backward).any() or matching(device["name"], words.backward).any():
        return "training"
    if events is not None and matching(events["name"], words.optimizer).any():
        return "training"
    drops = matching(device["type"], words.dropout).any() or matching(device["name"], words.dropout).any()
    return None if drops else "inference"


def _serves(facts: Facts, kind: str | None, large_parts: Sequence[str]) -> bool | None:
    """Whether a service may be what runs: inference that is no part of an iteration of reinforcement learning."""
    if kind is None:
        return None
    spans = facts.get(phases)
    learns = bool(facts[PROFILE].role) or (spans is not None and not spans.empty)
    return kind == "inference" and not learns and TRAINING not in large_parts


def _part(facts: Facts, device: pd.DataFrame | None, large_parts: Sequence[str]) -> str:
    """``prefill``, ``decode``, both of them or neither known."""
    spans = facts.get(parts)
    if spans is not None and spans["marked"].any():
        of_inference = [part for part in large_parts if part in (PREFILL, DECODE, MIXED)]
        if of_inference:
            return of_inference[0] if len(of_inference) == 1 else MIXED
    kernels = facts.get(KERNELS)
    if kernels is None or device is None:
        return UNKNOWN
    return part_of_inference(kernels, device.set_index("row")["operator_class"].sort_index(), facts[PROFILE].vocabulary)


def _large_parts(facts: Facts) -> list[str]:
    """The parts that have a share of the steps that counts."""
    spans = facts.get(parts)
    if spans is None or spans.empty:
        return []
    lengths = (spans["end_ns"] - spans["start_ns"]).groupby(spans["part"].astype(str)).sum()
    large = set(lengths.index[lengths >= LEAST * lengths.sum()])
    return [part for part in PARTS if part in large]


def _graph_mode(facts: Facts) -> bool | None:
    """Whether captured or compiled graphs run: kernels with a graph id, or few host calls that replay many kernels."""
    kernels, events, launched = facts.get(KERNELS), facts.get(HOST_EVENTS), facts.get(launches)
    if kernels is not None and len(kernels) and (kernels["model"] >= 0).mean() > GRAPH_SHARE:
        return True
    if events is not None and matching(events["name"], facts[PROFILE].vocabulary.graph_replay).any():
        return True
    if launched is not None and len(launched.frame):
        return bool((launched.frame["siblings"] > facts[PROFILE].vocabulary.graph_siblings).mean() > GRAPH_SHARE)
    return (
        False if kernels is not None and (kernels["model"] >= -1).all() and facts[PROFILE].level != "level0" else None
    )
