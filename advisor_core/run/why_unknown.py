"""Say why a ledger entry has no cause, and what to record to learn it."""

from __future__ import annotations

from advisor_core.contracts.facts import NotApplicable, Unavailable
from advisor_core.facts.store import FactStore
from advisor_core.text.base import Text
from advisor_core.text.messages import message

_DECIDED_BY = {"communication": "collective_state", "idle": "launches", "idle/host": "host_activity"}
"""Branch of the ledger to the fact that divides it by cause."""


def why_unknown(path: str, store: FactStore) -> tuple[Text | None, Text | None]:
    """Reason and remedy for ``.../unknown``: what kept the fact that divides the branch from being known, or what it
    did not find; neither for a path that is a cause."""
    branch, _, leaf = path.rpartition("/")
    if leaf != "unknown":
        return None, None
    if (name := _DECIDED_BY.get(branch)) is not None:
        try:
            store.get(name)
        except Unavailable as missing:
            return missing.reason, missing.collect
        except NotApplicable as other:
            return other.reason, None
    return message(f"ledger.unknown.{branch.replace('/', '.')}"), None
