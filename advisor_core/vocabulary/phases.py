"""Phases of an iteration of reinforcement learning, by name: of a mark in a trace, of the directory of a role."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from advisor_core.text.packaged import packaged_yaml

Aliases = Sequence[tuple[str, str]]
"""Part of a name, and the phase that the user says it stands for."""


@dataclass(frozen=True)
class PhaseMark:
    """A text in names, in whatever case, and the phase that they are about then. ``whole``: the name is this text, as
    it is too short to be looked for within others."""

    name: str
    phase: str
    whole: bool = False

    def __post_init__(self) -> None:
        if not self.name.strip() or not self.phase.strip():
            raise ValueError("a mark needs a text and a phase")

    def is_in(self, lower: str) -> bool:
        return lower == self.name.lower() if self.whole else self.name.lower() in lower


def phase_of(name: str, marks: Sequence[PhaseMark], aliases: Aliases = ()) -> str:
    """The phase that ``name`` is about, '' for none; the first mark that fits decides, the user's ``aliases`` before
    all.

    >>> phase_of("ActorRolloutHybrid.update_actor", [PhaseMark("update_actor", "update_actor")])
    'update_actor'
    """
    lower = name.strip().lower()
    own = (PhaseMark(text, phase) for text, phase in aliases)
    return next((mark.phase for mark in (*own, *marks) if mark.is_in(lower)), "")


def read_phase_marks(package: str, name: str) -> tuple[PhaseMark, ...]:
    """The marks of a YAML file of a package: ``parts`` and ``names``, each phase to texts."""
    read = packaged_yaml(package, name)
    return tuple(
        PhaseMark(text, phase, whole)
        for key, whole in (("parts", False), ("names", True))
        for phase, texts in read[key].items()
        for text in texts
    )
