"""Patterns of chains that a fused kernel replaces, from ``patterns.yaml``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from advisor_core.api import packaged_yaml


@dataclass(frozen=True)
class Step:
    """A step of a chain: globs of operator types; ``optional``: may be missing; ``foreign``: may stand there and is no
    part of the chain."""

    globs: tuple[str, ...]
    optional: bool
    foreign: bool


@dataclass(frozen=True)
class Pattern:
    """An entry of the file, of one direction; see there. ``passes`` is 0 where the fused kernel moves the inputs of the
    chain and its last output."""

    name: str
    backward: bool
    api: str
    chains: tuple[tuple[Step, ...], ...]
    fused: tuple[str, ...]
    keeps: tuple[str, ...]
    passes: float
    wide: bool


@cache
def patterns() -> tuple[Pattern, ...]:
    """The patterns of the file, in its order."""
    return tuple(
        Pattern(
            name,
            backward,
            entry["api"],
            tuple(tuple(_step(word) for word in chain.split()) for chain in entry[key]),
            tuple(entry["fused"]),
            tuple(entry.get("keeps", ())),
            float(entry.get("backward_passes" if backward else "passes", 0)),
            bool(entry.get("wide", False)),
        )
        for name, entry in packaged_yaml("advisors.fusion", "patterns.yaml").items()
        for key, backward in (("chains", False), ("backward", True))
        if key in entry
    )


def _step(word: str) -> Step:
    foreign = word.endswith("~")
    return Step(tuple(word.rstrip("?~").split("|")), foreign or word.endswith("?"), foreign)


def matches(operator: str, globs: Iterable[str]) -> bool:
    """Whether an operator type fits one of the globs."""
    return any(_glob(pattern).fullmatch(operator) for pattern in globs)


@cache
def _glob(pattern: str) -> re.Pattern[str]:
    return re.compile(".*".join(re.escape(part) for part in pattern.split("*")), re.I)


def expression(pattern: Pattern, characters: Mapping[str, str]) -> re.Pattern[str] | None:
    """The pattern over the characters of the types that occur, ``None`` if it cannot occur. Groups of the expression
    hold what is no part of the chain."""
    chains = []
    for chain in pattern.chains:
        parts = []
        for step in chain:
            found = "".join(char for operator, char in characters.items() if matches(operator, step.globs))
            if found:
                one = f"([{found}])" if step.foreign else f"[{found}]"
                parts.append(f"{one}{'?' if step.optional else ''}")
            elif not step.optional:
                break
        else:
            chains.append("".join(parts))
    return re.compile("|".join(f"(?:{chain})" for chain in chains)) if chains else None
