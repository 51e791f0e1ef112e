"""The plugin that registered something."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Owner:
    """A plugin. ``distribution`` and ``version``: the installed package that it is of. ``builtin``: one of ours."""

    name: str
    distribution: str
    version: str = ""
    builtin: bool = False

    def __str__(self) -> str:
        return f"{self.name} ({' '.join(part for part in (self.distribution, self.version) if part)})"
