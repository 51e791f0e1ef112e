"""Count what is found in a recorded program beside what it is known to compute.

A program is a folder with a recording and ``truth.json``: ``{"program": name, "per_step": {computation: times}}``, as
counted from the operators of the framework and not from the names of kernels. A computation that autograd runs for
another one ends in " backward".
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml

from advisor_core.loaders.discover import discover
from advisor_core.run.rank import fact_store
from advisors.fusion.chains import fusion_chains
from advisors.layers.layers import layers
from advisors.step_kernels import step_kernels
from tests.advisors.build import host

CALLED = {
    "optimizer_adam": "adam",
    "optimizer_sgd": "sgd",
    "swiglu_of_two_products": "swiglu",
    "geglu_of_two_products": "geglu",
    "vocab_parallel_cross_entropy": "cross_entropy",
    "log_probs": "cross_entropy",
}
"""Computations that the truth calls otherwise."""

JUDGED = ("rms_norm", "rotary", "swiglu", "geglu", "attention", "cross_entropy", "adam")
"""The computations that both sides know; each but the last two also backward, which the truth does
not count for GeGLU."""


@dataclass(frozen=True)
class Program:
    """``true`` and ``found``: how often the program computes something in a step, and how often that was found.
    ``layers`` and ``layers_found``: of each stack; ``None`` where the truth does not tell."""

    name: str
    kernels: int
    true: Mapping[str, int]
    found: Mapping[str, int]
    layers: Sequence[int] | None
    layers_found: Sequence[int]


def programs(folder: Path) -> list[Path]:
    """The folders of programs below a folder."""
    return sorted(path.parent for path in folder.glob("*/truth.json"))


def scored(folder: Path) -> Program:
    """Read a program and look for its computations."""
    truth = json.loads((folder / "truth.json").read_text(encoding="utf-8"))
    loaders = host().loaders
    (source,) = discover(list(loaders.values()), folder)
    facts = fact_store(host(), loaders[source.loader].load(source))
    kernels, chains = facts[step_kernels], facts[fusion_chains].frame
    counted = Counter(
        CALLED.get(name, name) + (" backward" if backward else "")
        for name, backward in zip(chains["pattern"], chains["backward"], strict=True)
    )
    found = {name: round(count / kernels.steps) for name, count in counted.items()}
    known = facts.get(layers)
    stacks = [] if known is None else known.towers["layers"].tolist()
    name = truth["program"]
    count = round(len(kernels.frame) / kernels.steps)
    return Program(name, count, truth["per_step"], found, _layers().get(name), stacks)


@cache
def _layers() -> dict[str, list[int]]:
    document: dict[str, list[int]] = yaml.safe_load((Path(__file__).parent / "layers.yaml").read_text(encoding="utf-8"))
    return document
