"""A recording that slices are cut from: its events as numbers, and those that are chosen as trace events."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

from advisor_core.contracts.tables import Int64Array
from advisor_core.slicing.events import Events

Event = dict[str, Any]


class Recording(Protocol):
    """``as_array``: whether its files are an array of events, and no object around one."""

    @property
    def events(self) -> Events: ...

    @property
    def as_array(self) -> bool: ...

    def chosen(self, ordinals: Int64Array) -> Iterator[Event]:
        """The events of these ordinals, which ascend; ``ts`` and ``dur`` as recorded."""
        ...
