"""Say that savings are time of kernels where no launches were recorded, from which a step could be replayed."""

from __future__ import annotations

from advisor_core.contracts.missing import Missing
from advisor_core.contracts.profile import Profile
from advisor_core.contracts.tables import OPERATORS
from advisor_core.facts.device.work import work
from advisor_core.facts.host.launches import launches
from advisor_core.facts.store import FactStore
from advisor_core.result.run import Diagnostic
from advisor_core.text.messages import message


def unknown_launches(profile: Profile, store: FactStore) -> list[Diagnostic]:
    """The diagnostic about it; a warning where a list of operators tells that the host was recorded, so that its
    launches were lost."""
    found = store.find(launches)
    if work not in store or not isinstance(found, Missing):
        return []
    source = profile.tables.get(OPERATORS.name)
    said = message("launches.unknown", reason=found.reason)
    if source is None:
        return [Diagnostic(severity="info", source=f"rank {profile.rank}", message=said)]
    return [Diagnostic(severity="warning", source=source.source.file, message=said)]
