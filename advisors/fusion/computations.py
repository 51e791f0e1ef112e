"""The computations that a fused kernel replaces, from ``computations.yaml``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from advisor_core.api import packaged_yaml
from advisors.fusion.expressions import Expression, parse

MATCHED = 8192
"""Answers that are kept: some 150 operator types of a program, each asked about by some 50 lists of globs."""


@dataclass(frozen=True)
class Computation:
    """An entry of the file, of one direction; see there. ``on_gpus``: what replaces the kernels there, '' if
    it is not looked for. ``absorbs`` and ``followed_by``: operations with the role that
    they must have. ``passes`` is 0 where the fused kernel moves what comes from outside and the last tensor, or
    (``appends``) only the smallest that comes from outside.
    ``in_a_row`` is 1 where it counts wherever it stands. ``at_once``: one fused kernel takes all of them that stand
    right behind one another. ``plain_input``: the fused kernel needs the copy that makes a plain array of its input.
    ``across``: its forward kernels lie on both sides of a collective."""

    name: str
    backward: bool
    api: str
    on_gpus: str
    forms: tuple[Expression, ...]
    absorbs: tuple[tuple[str, str], ...]
    followed_by: tuple[tuple[str, str], ...]
    fused: tuple[str, ...]
    keeps: tuple[str, ...]
    passes: float
    in_a_row: int
    at_once: bool
    wide: bool
    appends: bool
    plain_input: bool
    across: bool


@dataclass(frozen=True)
class Vocabulary:
    """``operations``: globs of operator types by operation; ``carrying`` and ``creating``: see the file."""

    operations: dict[str, tuple[str, ...]]
    carrying: frozenset[str]
    creating: frozenset[str]

    def operation_of(self, operator: str) -> str:
        """The first operation that has the operator type, '' if none has."""
        plain = operator.removesuffix("_") if operator.startswith("aten::") else operator
        return next((name for name, globs in self.operations.items() if matches(plain, globs)), "")


@cache
def _file() -> dict[str, Any]:
    return dict(packaged_yaml("advisors.fusion", "computations.yaml"))


@cache
def vocabulary() -> Vocabulary:
    """The operations of the file."""
    operations = {name: tuple(globs) for name, globs in _file()["operations"].items()}
    return Vocabulary(operations, frozenset(_file()["carrying"]), frozenset(_file()["creating"]))


@cache
def computations() -> tuple[Computation, ...]:
    """The computations of the file, in its order. Raises ValueError for an expression that cannot be read or that
    names an operation that the file does not have."""
    return tuple(
        _computation(name, entry, backward=backward)
        for name, entry in _file()["computations"].items()
        for backward in (False, True)
        if ("backward" if backward else "forward") in entry
    )


@cache
def fused_kernels() -> tuple[str, ...]:
    """Globs of the operator types that do a whole computation at once, forward or backward."""
    entries = [entry for entry in _file()["computations"].values() if not entry.get("simple")]
    globs = [glob for entry in entries for glob in entry["fused"]]
    return tuple(f"{glob}{end}" for glob in globs for end in ("", "Grad*"))


def _computation(name: str, entry: dict[str, Any], *, backward: bool) -> Computation:
    forms = tuple(parse(text) for text in entry["backward" if backward else "forward"])
    absorbs = _operations_with_roles(entry.get("backward_absorbs" if backward else "absorbs", ()))
    followed_by = _operations_with_roles(entry.get("backward_followed_by" if backward else "followed_by", ()))
    used = {operation for form in forms for step in form.steps() for operation in step.operations}
    unknown = (used | {operation for operation, _ in (*absorbs, *followed_by)}) - set(vocabulary().operations)
    if unknown:
        raise ValueError(f"{name}: no operation {', '.join(sorted(unknown))}")
    return Computation(
        name,
        backward,
        entry["api"],
        entry.get("on_gpus", ""),
        forms,
        absorbs,
        followed_by,
        tuple(entry["fused"]),
        tuple(entry.get("keeps", ())),
        float(entry.get("backward_passes" if backward else "passes", 0)),
        int(entry.get("in_a_row", 1)),
        bool(entry.get("at_once", False)),
        bool(entry.get("wide", False)),
        bool(entry.get("appends", False)),
        bool(entry.get("plain_input", False)),
        bool(entry.get("across_collectives", False)) and not backward,
    )


def _operations_with_roles(texts: Iterable[str]) -> tuple[tuple[str, str], ...]:
    return tuple((text.partition(".")[0], text.partition(".")[2]) for text in texts)


def matches(operator: str, globs: Iterable[str]) -> bool:
    """Whether an operator type fits one of the globs."""
    return _matches(operator, tuple(globs))


@lru_cache(MATCHED)
def _matches(operator: str, globs: tuple[str, ...]) -> bool:
    return any(pattern.fullmatch(operator) for pattern in _patterns(globs))


@cache
def _patterns(globs: tuple[str, ...]) -> list[re.Pattern[str]]:
    """One pattern for all of the globs; none where there is no glob."""
    any_of = "|".join(".*".join(re.escape(part) for part in glob.split("*")) for glob in globs)
    return [re.compile(any_of, re.I)] if globs else []
