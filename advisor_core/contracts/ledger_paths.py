"""Paths in the ledger, and those that a rule may claim. A separate module, so that checking rules does not import
pandas."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from advisor_core.vocabulary.host_labels import ACTIVITIES


class LedgerPath(str):
    """A place in the ledger, a leaf or what is above leaves, as names between slashes.

    >>> path = LedgerPath("idle/host/python")
    >>> path.parent, path.trunk, path.name
    ('idle/host', 'idle', 'python')
    """

    __slots__ = ()

    def covers(self, other: str) -> bool:
        """Whether another path is this one, or below it.

        >>> LedgerPath("idle/host").covers("idle/host/python"), LedgerPath("idle").covers("idle_time")
        (True, False)
        """
        return self == other or self.above(other)

    def above(self, other: str) -> bool:
        """Whether another path is below this one."""
        return other.startswith(f"{self}/")

    @property
    def parent(self) -> LedgerPath:
        """The path one step up; '' at the top."""
        return LedgerPath(self.rpartition("/")[0])

    @property
    def trunk(self) -> LedgerPath:
        """The topmost step: compute, communication or idle."""
        return LedgerPath(self.partition("/")[0])

    @property
    def name(self) -> str:
        """The last step."""
        return self.rpartition("/")[2]


def summed(entries: Iterable[tuple[str, int]], place: Callable[[LedgerPath], str]) -> dict[str, int]:
    """The ns of entries (path, ns) by what ``place`` says of their paths, in order of appearance.

    >>> summed([("idle/host", 2), ("idle/sync", 3)], lambda path: path.trunk)
    {'idle': 5}
    """
    sums: dict[str, int] = {}
    for path, ns in entries:
        at = place(LedgerPath(path))
        sums[at] = sums.get(at, 0) + ns
    return sums


def covered(leaf: str, paths: Iterable[str]) -> bool:
    """Whether a path is at or below one of ``paths``."""
    return any(LedgerPath(path).covers(leaf) for path in paths)


_LEAVES: Final = (
    "compute/unknown",
    "communication/transmit",
    "communication/wait/rank N",
    "communication/wait/group rank N",
    "communication/wait/pipeline",
    "communication/wait/unknown",
    "communication/launch",
    "communication/unknown",
    *(f"idle/host/{activity}" for activity in ACTIVITIES if activity != "sync"),
    "idle/host/unknown",
    "idle/sync",
    "idle/copy",
    "idle/dependency",
    "idle/task_switch",
    "idle/launch_latency",
    "idle/step_boundary",
    "idle/unknown",
)
_PLACEHOLDER: Final = re.compile(r"\{\{ \w+ \}\}")
_ANYTHING: Final = "{{ any }}"
_NUMBER: Final = re.compile(r"\d+")


@dataclass(frozen=True)
class LedgerPaths:
    """``classes``: the operator classes of all vendors and plugins, ``None`` where they are not known: then any name is
    taken for one. ``added``: leaves of plugins."""

    classes: Collection[str] | None = None
    added: Collection[str] = ()

    @cached_property
    def all(self) -> frozenset[str]:
        """Every leaf, and everything above one. ``N`` stands for the number of a rank."""
        classes = [_ANYTHING] if self.classes is None else self.classes
        leaves = (*_LEAVES, *self.added, *(f"compute/{name}" for name in classes))
        return frozenset("/".join(parts[:end]) for leaf in leaves for parts in [leaf.split("/")] for end in range(1, 4))

    def __contains__(self, path: str) -> bool:
        """Whether a path, in which ``{{ column }}`` stands for anything, can be one of the ledger."""
        steps = _NUMBER.sub("N", path).split("/")
        if all(_PLACEHOLDER.fullmatch(step) for step in steps):
            return True
        return any(
            len(known) == len(steps)
            and all(
                _PLACEHOLDER.fullmatch(step) or place in (step, _ANYTHING)
                for step, place in zip(steps, known, strict=True)
            )
            for known in (found.split("/") for found in self.all)
        )
