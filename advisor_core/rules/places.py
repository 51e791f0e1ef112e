"""The places in a recording where the time of a finding lies, and the advice that holds there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from advisor_core.rules.model import HoldsFor
from advisor_core.text.base import Text
from advisor_core.text.listed import listed
from advisor_core.text.messages import message
from advisor_core.vocabulary.parts import KINDS, LEAST, PHASES

Possible = frozenset[str] | None
"""The values that a property of the job can have; ``None`` where nothing is known of it."""


@dataclass(frozen=True)
class Place:
    """A part of the recording, of a marked ``phase`` of reinforcement learning ('' none) that stands for ``role``, and
    the ``share`` of the time of a finding that lies there."""

    part: str
    phase: str
    role: str
    share: float

    @property
    def named(self) -> Text:
        """``decode``, ``decode (rollout)``."""
        return named_place(self.part, self.phase)


def named_place(part: str, phase: str) -> Text:
    """A part and a marked phase, '' none, in words."""
    words = message(f"part.{part}")
    return Text(en=f"{words.en} ({phase})", zh=f"{words.zh}（{phase}）") if phase else words


def decide(possible: Possible, wanted: Sequence[str]) -> bool | None:
    """True where a property that can have the ``possible`` values has one of the ``wanted``."""
    if possible is None:
        return None
    if possible <= set(wanted):
        return True
    return None if possible & set(wanted) else False


def kind_and_part(places: Sequence[Place]) -> tuple[str | None, str | None]:
    """``profile.kind`` and ``profile.phase`` for a finding: of the place that has most of its time."""
    if not places:
        return None, None
    most = max(places, key=lambda place: place.share)
    kind = KINDS[most.part]
    return kind, "training" if kind == "training" else most.part


def holds_in(holds: HoldsFor, places: Sequence[Place]) -> Iterator[tuple[bool | None, Text]]:
    """An answer whether advice holds for the phase and role of the places, with the condition in words where it holds
    for some of them, or it is not known; nothing where it asks for neither."""
    if not holds.phase and not holds.role:
        return
    decided = [_decided(holds, place) for place in places]
    held_in = list(zip(places, decided, strict=True))
    yes, no = (sum(place.share for place, held in held_in if held is told) for told in (True, False))
    if no > 1 - LEAST:
        yield False, _only(holds)
    elif yes > 1 - LEAST:
        yield True, _only(holds)
    elif no < LEAST:
        yield None, _only(holds)
    else:
        inside = [place.named for place, held in held_in if held is not False]
        share = f"{100 * (1 - no):.0f} %"
        yield None, message("advice.in_part", share=share, **dict(listed(inside)))
        if yes < LEAST:  # nothing is known of where it would hold
            yield None, _only(holds)


def _decided(holds: HoldsFor, place: Place) -> bool | None:
    answers = [
        decide(PHASES[place.part], holds.phase) if holds.phase else True,
        decide(frozenset({place.role}) if place.role else None, holds.role) if holds.role else True,
    ]
    return False if False in answers else (None if None in answers else True)


def _only(holds: HoldsFor) -> Text:
    texts = [
        message(f"advice.only.{key}", **dict(listed([message(f"advice.{key}.{name}") for name in names], " or ")))
        for key, names in (("phase", holds.phase), ("role", holds.role))
        if names
    ]
    return Text(en=" ".join(text.en for text in texts), zh="".join(text.zh for text in texts))
