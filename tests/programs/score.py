"""Compare what is found in a recorded program with what it is known to compute.

A program is a folder with a recording and ``occurrences.json``, as `tests.programs.prepare` writes it: the computations
of the program as told from its operators, each with the kernels that they became.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from advisor_core.loaders.discover import discover
from advisor_core.run.rank import FactStore, fact_store
from advisors.fusion.chains import fusion_chains
from advisors.fusion.clipping import gradient_clipping
from advisors.fusion.expert_loops import expert_loops
from advisors.layers.layers import layers
from advisors.network_structure.fusion import fused_ns
from advisors.step_kernels import step_kernels
from tests.advisors.build import host

CALLED = {
    "optimizer_adam": "adam",
    "optimizer_sgd": "sgd",
    "optimizer_sgd_weight_by_weight": "sgd",
    "swiglu_of_two_products": "swiglu",
    "geglu_of_two_products": "geglu",
    "optimizer_lion": "lion",
    "cross_entropy_by_logsumexp": "cross_entropy",
}
"""Computations that the truth calls otherwise."""

NOT_JUDGED = ("layer_norm", "add_layer_norm")
"""What is found and not told by the truth: in no program, or not from the operators alone."""

BYTES_PER_NS = 1_200
SHORTEST_NS = 3_000
"""What the recordings were made with: a kernel takes its bytes at 1.2 TB/s, and 3 us at least."""

WORTH = 0.01
"""A computation counts where all its occurrences take such a share of the kernel time."""

Key = tuple[str, bool]
"""A computation: its name, and whether it is what autograd runs for it."""


@dataclass(frozen=True)
class Score:
    """A computation in a program. ``true``: how often it is computed, ``found``: how often that was found, ``more``:
    how often it was found where it is not. ``share``: of the kernel time. ``gain_ns``: what one kernel for each of
    those found would save by the bytes that it has to move, ``gain_found_ns``: what we say; both 0 where products
    are among the kernels."""

    true: int
    found: int
    more: int
    share: float
    gain_ns: float
    gain_found_ns: float


@dataclass(frozen=True)
class Program:
    """``layers`` and ``layers_found``: of each stack; ``None`` where the truth does not tell."""

    name: str
    kernels: int
    scores: Mapping[Key, Score]
    layers: Sequence[int] | None
    layers_found: Sequence[int]


def programs(folder: Path) -> list[Path]:
    """The folders of programs below a folder."""
    return sorted(path.parent for path in folder.glob("*/occurrences.json"))


def scored(folder: Path) -> Program:
    """Read a program and look for its computations."""
    truth = json.loads((folder / "occurrences.json").read_text(encoding="utf-8"))
    loaders = host().loaders
    (source,) = discover(list(loaders.values()), folder)
    facts = fact_store(host(), loaders[source.loader].load(source))
    kernels = facts[step_kernels]
    if len(kernels.frame) != truth["kernels"]:
        raise ValueError(f"{truth['program']}: {len(kernels.frame)} kernels of {truth['kernels']} are in the step")
    known = facts.get(layers)
    stacks = [] if known is None else known.towers["layers"].tolist()
    name = truth["program"]
    scores = _scores(truth["occurrences"], _found(facts), kernels.frame["duration_ns"].to_numpy())
    return Program(name, truth["kernels"], scores, _layers().get(name), stacks)


def _found(facts: FactStore) -> list[tuple[Key, set[int], float]]:
    """What is found: the computation, its kernels, and what one kernel for them would save, ns (NaN: unknown)."""
    kernels, chains, loops = facts[step_kernels], facts[fusion_chains], facts[expert_loops]
    frame = chains.frame
    saved = (frame["chain_ns"] - fused_ns(kernels, frame)).where(frame["kept_ns"] == 0).to_numpy(dtype=np.float64)
    found = [
        ((CALLED.get(name, name), backward), set(chains.members[chains.chain_of == number].tolist()), saved[number])
        for number, (name, backward) in enumerate(zip(frame["pattern"], frame["backward"], strict=True))
        if name not in NOT_JUDGED
    ]
    clips = facts[gradient_clipping]
    found += [
        (("gradient_clipping", False), set(clips.members[clips.clip_of == number].tolist()), float("nan"))
        for number in range(len(clips.gradients))
    ]
    return found + [
        (("moe_expert_loop", bool(backward)), set(loops.members[loops.loop_of == number].tolist()), float("nan"))
        for number, backward in enumerate(loops.backward)
    ]


def _scores(
    true: Sequence[Mapping[str, Any]], found: Sequence[tuple[Key, set[int], float]], took: np.ndarray
) -> dict[Key, Score]:
    """An occurrence is found where more than half of its kernels, and half of those found, are the same."""
    found_at: dict[Key, list[int]] = defaultdict(list)
    for number, (key, _, _) in enumerate(found):
        found_at[key].append(number)
    count, hits, time_ns = Counter[Key](), Counter[Key](), Counter[Key]()
    gain, gain_found = Counter[Key](), Counter[Key]()
    used: set[int] = set()
    for one in true:
        key, members = (str(one["name"]), bool(one["backward"])), set(one["kernels"])
        if not members:
            continue
        count[key] += 1
        time_ns[key] += int(took[list(members)].sum())
        same = [
            number
            for number in found_at[key]
            if number not in used
            and 2 * (shared := len(members & found[number][1])) > len(members)
            and 2 * shared >= len(found[number][1])
        ]
        if same:
            used.add(same[0])
            hits[key] += 1
            saved = found[same[0]][2]
            if one["bytes"] and np.isfinite(saved):
                whole = float(took[list(members)].sum())
                gain[key] += max(whole - max(one["bytes"] / BYTES_PER_NS, SHORTEST_NS), 0.0)
                gain_found[key] += saved
    more = Counter(key for number, (key, _, _) in enumerate(found) if number not in used)
    total = float(took.sum())
    return {
        key: Score(count[key], hits[key], more[key], time_ns[key] / total, gain[key], gain_found[key])
        for key in {**count, **more}
    }


@cache
def _layers() -> dict[str, list[int]]:
    document: dict[str, list[int]] = yaml.safe_load((Path(__file__).parent / "layers.yaml").read_text(encoding="utf-8"))
    return document
