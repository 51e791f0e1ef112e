"""HD007: waiting for the data loader."""

from __future__ import annotations

from advisor_core.api.facts import HOST_EVENTS, PROFILE, Facts, NotApplicable, matching
from advisors.host_dispatch.activity import activity_advisor
from advisors.messages import message


def _require_loader(facts: Facts) -> None:
    if not matching(facts[HOST_EVENTS]["name"], facts[PROFILE].vocabulary.data_loader).any():
        raise NotApplicable(message("host_dispatch.no_dataloader"))


data_loading = activity_advisor(
    "host_dispatch.dataloader",
    "Waiting for the data loader while the device waited.",
    "idle/host/dataloader",
    lambda events, words: matching(events["name"], words.data_loader),
    _require_loader,
)
