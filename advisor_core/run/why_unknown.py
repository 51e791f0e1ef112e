"""Say why a ledger entry has no cause, and what to record to learn it."""

from __future__ import annotations

from advisor_core.contracts.keys import AnyKey
from advisor_core.contracts.ledger_paths import LedgerPath
from advisor_core.contracts.missing import Missing
from advisor_core.facts.communication.state import collective_state
from advisor_core.facts.host.activity import host_activity
from advisor_core.facts.host.launches import launches
from advisor_core.facts.store import FactStore
from advisor_core.text.base import Text
from advisor_core.text.messages import message

_DECIDED_BY: dict[str, AnyKey] = {"communication": collective_state, "idle": launches, "idle/host": host_activity}
"""Branch of the ledger to the fact that divides it by cause."""


def why_unknown(path: str, store: FactStore) -> tuple[Text | None, Text | None]:
    """Reason and remedy for ``.../unknown``: what kept the fact that divides the branch from being known, or what it
    did not find; neither for a path that is a cause."""
    branch = LedgerPath(path).parent
    if LedgerPath(path).name != "unknown":
        return None, None
    if (key := _DECIDED_BY.get(branch)) is not None and isinstance(found := store.find(key), Missing):
        return found.reason, found.collect
    return message(f"ledger.unknown.{branch.replace('/', '.')}"), None
