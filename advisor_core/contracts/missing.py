"""`Missing`: a value for what cannot be known; raising `Unavailable` or `NotApplicable` is how a function gives it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from advisor_core.text.base import Text


@dataclass(frozen=True)
class Missing:
    """The reason why something is not known.

    ``collect``: what to record to know it, ``options`` the same as ids of ``collecting/options.yaml``; empty where no
    option of the profiler would help. ``kind``: ``unavailable`` from this profile; ``not_applicable``, where the
    question does not arise (no collectives on a single rank); ``failed``, where a function raised by mistake.
    """

    reason: Text
    collect: Text | None = None
    options: tuple[str, ...] = ()
    kind: Literal["unavailable", "not_applicable", "failed"] = "unavailable"

    def error(self) -> Unanswered:
        """The exception that stops what cannot go on without the value."""
        if self.kind == "not_applicable":
            return NotApplicable(self.reason)
        return (Failed if self.kind == "failed" else Unavailable)(self.reason, self.collect, self.options)


class Unanswered(Exception):  # noqa: N818 - a state, not a mistake
    """A fact or an advisor has no answer; ``missing`` says why."""

    missing: Missing

    @property
    def reason(self) -> Text:
        return self.missing.reason

    @property
    def collect(self) -> Text | None:
        return self.missing.collect

    @property
    def options(self) -> tuple[str, ...]:
        return self.missing.options

    def __str__(self) -> str:
        return self.reason.en


class Unavailable(Unanswered):
    """Something could not be computed or answered from this profile."""

    def __init__(self, reason: Text, collect: Text | None = None, options: tuple[str, ...] = ()) -> None:
        super().__init__(reason, collect, options)  # what it is made of: it travels between processes
        self.missing = Missing(reason, collect, options)


class Failed(Unavailable):
    """The function of a fact raised by mistake; the reason names the fact and the plugin that it belongs to."""

    def __init__(self, reason: Text, collect: Text | None = None, options: tuple[str, ...] = ()) -> None:
        super().__init__(reason, collect, options)
        self.missing = Missing(reason, collect, options, kind="failed")


class NotApplicable(Unanswered):
    """The question does not arise for this profile."""

    def __init__(self, reason: Text) -> None:
        super().__init__(reason)
        self.missing = Missing(reason, kind="not_applicable")
