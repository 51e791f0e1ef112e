"""A recording that slices are cut from: its events as numbers, and the text of those that are chosen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from advisor_core.contracts.tables import Int64Array
from advisor_core.slicing.events import Events


class Recording(Protocol):
    """``files``: what it was read from, relative to the input."""

    @property
    def events(self) -> Events: ...

    def written(self, ordinals: Int64Array) -> Iterator[bytes]:
        """The events of these ordinals, which ascend, as JSON, each by itself."""
        ...

    def around(self, notes: Mapping[str, Any]) -> tuple[bytes, bytes]:
        """What a file of events begins and ends with. ``notes``: about the slice."""
        ...
