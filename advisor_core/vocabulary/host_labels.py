"""Labels of what the host does, by the calls that it makes, and their leaves of the ledger."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from advisor_core.text.base import Text

ACTIVITIES: Final = (
    "gc", "compile", "dataloader", "memory", "sync", "copy", "runtime", "framework", "python",
)  # fmt: skip
"""Labels, outermost cause first: where several hold at once the first one is the cause. Garbage collection stops every
thread; compiling, allocating, synchronising and copying are named calls within the runtime; the runtime is what the
launching thread does; the framework is what the threads that feed it do inside operators; Python is the rest of a
step, in which no operator is running."""
UNNAMED: Final = ("runtime", "framework", "python")
"""Labels of time in which the host does its work, as opposed to calls that have a name."""

_PARENT: Final = "idle/host/"
_LEAF: Final = re.compile(rf"{_PARENT}[a-z][a-z0-9_]*")


@dataclass(frozen=True)
class LedgerLeaf:
    """A leaf of the ledger for idle time in which the host makes certain calls.

    ``name``: its path, ``idle/host/...``. ``calls``: a regular expression, searched in the names of host events
    (operators, calls of the runtime, annotations, Python functions), in whatever case. Calls that have a label
    already, such as copies, keep it.
    """

    name: str
    calls: str
    label: Text

    def __post_init__(self) -> None:
        if not _LEAF.fullmatch(self.name):
            raise ValueError(f"{self.name!r} is not a leaf that can be added: {_PARENT} and a name in small letters")
        if self.activity in ACTIVITIES:
            raise ValueError(f"{self.name!r} is a leaf of the ledger already")
        try:
            re.compile(self.calls)
        except re.error as error:
            raise ValueError(f"{self.calls!r} is not a regular expression: {error}") from None

    @property
    def activity(self) -> str:
        """The label of the host's time."""
        return self.name.removeprefix(_PARENT)
