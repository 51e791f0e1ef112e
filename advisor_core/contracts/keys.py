"""Typed keys: what facts, tables and the profile are asked for by.

The type of a key is the type of its value, so that a type checker knows what ``facts[steps]`` is, and a misspelt name
is a mistake that Python and the type checker see.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Generic, TypeVar

from advisor_core.contracts.missing import Missing
from advisor_core.text.messages import message

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, eq=False)
class Key(Generic[T_co]):
    """Something of a rank that can be asked for; its value is a ``T_co``. The name is for people and for registries."""

    name: str
    meaning: str


AnyKey = Key[object]


class Source(ABC):
    """Gives values by key."""

    @abstractmethod
    def find(self, key: Key[T]) -> T | Missing:
        """The value, or why it is not known."""

    def __getitem__(self, key: Key[T]) -> T:
        """The value. Raises `Unavailable` or `NotApplicable`."""
        found = self.find(key)
        if isinstance(found, Missing):
            raise found.error()
        return found

    def get(self, key: Key[T]) -> T | None:
        """The value, ``None`` where it is not known."""
        found = self.find(key)
        return None if isinstance(found, Missing) else found

    def __contains__(self, key: AnyKey) -> bool:
        """Whether the value is known."""
        return not isinstance(self.find(key), Missing)

    def missing(self, key: AnyKey) -> Missing | None:
        """The reason why the value is not known, ``None`` where it is."""
        found = self.find(key)
        return found if isinstance(found, Missing) else None

    def knows(self, *keys: AnyKey) -> bool:
        """Whether all of these values are known."""
        return all(key in self for key in keys)


class Answers(Source):
    """Values, and why others are missing, as they were told. Small enough to travel: between processes a key is its
    name."""

    def __init__(self) -> None:
        self._by_name: dict[str, object] = {}

    def put(self, key: Key[T], value: T | Missing) -> None:
        self._by_name[key.name] = value

    def answers(self, key: AnyKey) -> bool:
        """Whether there is an answer, be it that the value is missing."""
        return key.name in self._by_name

    def find(self, key: Key[T]) -> T | Missing:
        if key.name not in self._by_name:
            return unknown(key)
        return self._by_name[key.name]  # type: ignore[return-value]  # `put` took a value of the key's type

    def copy(self) -> Answers:
        other = Answers()
        other._by_name = dict(self._by_name)
        return other


def unknown(key: AnyKey) -> Missing:
    """The message about a key that nobody gives a value for."""
    return Missing(message("fact.unknown", name=key.name))
