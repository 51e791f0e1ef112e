"""Typed registries that plugins add to; a duplicate name is an error that names both owners."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from advisor_core.result.run import RunResult


class Renderer(Protocol):
    """Writes one format of a report: a pure function of the result.

    A renderer may also have ``summary(result, lang, written) -> str``: the lines that a run prints when it is done.
    The first renderer that has it is asked.
    """

    @property
    def name(self) -> str: ...

    @property
    def filename(self) -> str: ...

    def render(self, result: RunResult, lang: str) -> str: ...


class Named(Protocol):
    @property
    def name(self) -> str: ...


T = TypeVar("T", bound=Named)


class DuplicateError(Exception):
    """Two plugins registered the same name."""


class Registry(Mapping[str, T], Generic[T]):
    """Names to things, each with the plugin that owns it."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._things: dict[str, T] = {}
        self._owners: dict[str, str] = {}
        self.plugin = ""
        """The plugin whose hook is being called; set by the host."""

    def add(self, *things: T) -> None:
        """Register. Raises `DuplicateError`."""
        for thing in things:
            owner = self._owners.get(thing.name)
            if owner is not None:
                raise DuplicateError(f"{self._kind} {thing.name!r} of {self.plugin} is already registered by {owner}")
            self._things[thing.name] = thing
            self._owners[thing.name] = self.plugin

    def owner(self, name: str) -> str:
        return self._owners[name]

    def __getitem__(self, name: str) -> T:
        return self._things[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._things)

    def __len__(self) -> int:
        return len(self._things)


class Ruleset:
    """A folder of rule files that a plugin brings; ``root`` is read when rules are loaded. ``names``: a folder of the
    registry of names that its texts use."""

    def __init__(self, name: str, root: Path, names: Path | None = None) -> None:
        self.name = name
        self.root = root
        self.names = names
